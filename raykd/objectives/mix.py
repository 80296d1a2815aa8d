"""Several objectives at once: a weighted sum, whose weights may follow λ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raykd.objectives.labels import Gold, Top1
from raykd.objectives.protocol import Objective, Text
from raykd.objectives.table import SingleObjective
from raykd.spec import Frozen

if TYPE_CHECKING:
    from raykd.objectives.losses import Loss
    from raykd.signals import Need, Sizes

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
    def effective_text(self) -> Text:
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
        read: set[Text] = {part.effective_text for part in self.parts}
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
        from raykd.objectives.weighted_losses import MixLoss, loss_on_text

        shares = {"labelled": labelled, "unlabelled": 1 - labelled, "all": 1.0}
        losses = [
            loss_on_text(part, part.objective.build(student, teacher), shares[part.text])
            for part in self.parts
        ]
        return MixLoss(self.parts, losses)


def annealed_objective(objective: Objective, *, unlabelled: bool) -> Objective:
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
