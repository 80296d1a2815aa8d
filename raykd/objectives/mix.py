"""Several objectives at once: a weighted sum, whose weights may follow λ."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from raykd.errors import RunError
from raykd.objectives.chunks import losses_of
from raykd.objectives.labels import Gold, Top1
from raykd.objectives.protocol import Loss, Losses, Objective, Text
from raykd.objectives.table import SingleObjective
from raykd.signals import Need, Sizes, TeacherBatch
from raykd.spec import Frozen

if TYPE_CHECKING:
    from raykd.forms.targets import Targets
    from raykd.layers import Output

Anneal = Literal["none", "falling", "rising"]


class Part(Frozen):
    """One objective of a mix."""

    objective: SingleObjective
    weight: Annotated[float, Field(ge=0)] = 1.0
    anneal: Anneal = "none"
    """`falling`: the weight is multiplied by λ, `rising`: by 1 − λ (see `schedule`)."""
    text: Text = "all"
    """With `labelled` or `unlabelled`, the sentences on which the loss counts; its weight is then that of the mean over
    these, whatever their share in the stage's text (Mukherjee & Awadallah 2020, Eq. 7)."""

    @property
    def read_text(self) -> Text:
        """The text on which it says something."""
        return self.objective.text if self.text == "all" else self.text


class Mix(Objective):
    """Σ_i w_i · loss_i of several objectives; weights may be searched.

    An objective that stands alone in a stage, and is annealed, is such a mix: λ · loss + (1 − λ) · labels (teacher
    annealing, Wang et al., ACL 2020, §3.3).

    Parts may be of labelled or of unlabelled text alone. Their losses are divided by the share of that text, a constant
    of the stage: so the mean over an epoch is Eq. 7 of Mukherjee & Awadallah 2020 (where gradients are not clipped),
    α · the mean over labelled sentences + the mean over unlabelled ones of (β · representation + γ · logits), and no
    batch depends on how the workers divide it.
    """

    kind: Literal["mix"] = "mix"
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(need for part in self.parts for need in part.objective.needs)

    @property
    def label_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.label_layers))

    @property
    def piece_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.piece_layers))

    @property
    def attention_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.attention_layers))

    @property
    def reads_scores(self) -> bool:
        return any(part.objective.reads_scores for part in self.parts)

    @property
    def text(self) -> Text:
        read: set[Text] = {part.read_text for part in self.parts}
        return read.pop() if len(read) == 1 else "all"

    @property
    def anneals(self) -> bool:
        return False

    @property
    def follows_lambda(self) -> bool:
        return any(part.anneal != "none" for part in self.parts)

    @property
    def reads_labels(self) -> bool:
        return any(part.objective.reads_labels for part in self.parts)

    @property
    def maxent_only(self) -> bool:
        return any(part.objective.maxent_only for part in self.parts)

    @property
    def reads_pairs(self) -> bool:
        return any(part.objective.reads_pairs for part in self.parts)

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        shares = {"labelled": labelled, "unlabelled": 1 - labelled, "all": 1.0}
        losses = [
            _of_text(part, part.objective.build(student, teacher), shares[part.text]) for part in self.parts
        ]
        return MixLoss(self.parts, losses)


class MixLoss(Loss):
    """See `Mix`."""

    def __init__(self, parts: tuple[Part, ...], losses: list[Loss]):
        super().__init__()
        self.parts, self.losses = parts, nn.ModuleList(losses)

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        factors = {"none": 1.0, "falling": kd_weight, "rising": 1 - kd_weight}
        weights = [part.weight * factors[part.anneal] for part in self.parts]
        read = [number for number, weight in enumerate(weights) if weight or self._always(number)]
        # Gradients add up in the reverse of the order in which losses are computed, and rounding with them: labels
        # come first, wherever they are listed.
        order = sorted(read, key=lambda number: not self.parts[number].objective.reads_labels)
        losses: list[Any] = [self.losses[number] for number in order]
        given = losses_of(losses, output, targets, teacher, kd_weight=kd_weight)
        own = dict(zip(order, given, strict=True))
        if not own:
            got = ", ".join(f"{part.objective.kind} {part.weight:g} {part.anneal}" for part in self.parts)
            raise RunError(
                f"objective.parts: every weight of the mix is 0 at λ = {kd_weight:g} ({got}); "
                "give one part a weight that λ does not set to 0"
            )
        total_B = functools.reduce(torch.add, [weights[number] * own[number].total_B for number in read])
        return Losses(total_B, _by_kind(own[number].parts for number in read))

    def _always(self, number: int) -> bool:
        # Labels are computed even at weight 0, and so are losses with parameters of their own: then every parameter
        # has a gradient at every λ, so that optimiser and DDP treat all alike.
        with_parameters = next(self.losses[number].parameters(), None) is not None
        return self.parts[number].objective.reads_labels or with_parameters


class TextLoss(Loss):
    """A loss on labelled or on unlabelled sentences alone, 0 on the others, divided by their `share`."""

    def __init__(self, loss: Loss, *, labelled: bool, share: float):
        super().__init__()
        self.loss, self._labelled, self._share = loss, labelled, share
        self.by_label = loss.by_label

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        losses = self.loss(output, targets, teacher, kd_weight=kd_weight)
        counts_B = targets.labelled_B == self._labelled

        def counted(loss_B: Tensor) -> Tensor:
            return torch.where(counts_B, loss_B, 0.0) / self._share

        return Losses(
            counted(losses.total_B), {kind: counted(part_B) for kind, part_B in losses.parts.items()}
        )


def _of_text(part: Part, loss: Loss, share: float) -> Loss:
    """The loss of a part on its text; RunError where there is none."""
    if part.text == "all":
        return loss
    if share <= 0:
        raise RunError(
            f"objective.parts: {part.objective.kind} is of {part.text} text, and the stage has no such sentence; "
            "give the corpus some, or omit the part"
        )
    return TextLoss(loss, labelled=part.text == "labelled", share=share)


def _by_kind(parts: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The losses of all parts by kind; the second of a kind is `kind.2`."""
    found, seen = {}, Counter()
    for kind, value_B in (item for part in parts for item in part.items()):
        seen[kind] += 1
        found[kind if seen[kind] == 1 else f"{kind}.{seen[kind]}"] = value_B
    return found


def annealed(objective: Objective, *, unlabelled: bool) -> Objective:
    """What a stage with `objective` trains on: itself, weighed by λ against labels where it is annealed.

    On `unlabelled` text the teacher's best labelling is the label (Wang et al., ACL 2021, §4).
    """
    if not objective.anneals:
        return objective
    labels = Top1() if unlabelled else Gold()
    return Mix(
        parts=(
            Part(objective=objective, anneal="falling"),  # type: ignore[arg-type]
            Part(objective=labels, anneal="rising"),
        )
    )
