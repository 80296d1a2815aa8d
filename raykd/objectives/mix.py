"""Several objectives at once: a weighted sum whose weights may follow λ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.labels import Gold, Top1
from raykd.objectives.protocol import Objective, Text
from raykd.objectives.table import SingleObjective
from raykd.spec import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raykd.objectives.losses import Loss
    from raykd.signals import Need, Sizes

Anneal = Literal["none", "falling", "rising"]


class Part(Frozen):
    """One objective of a mix."""

    objective: SingleObjective
    weight: Annotated[float, Field(ge=0)] = 1.0
    anneal: Anneal = "none"
    """`falling` multiplies the weight by λ, `rising` by 1 − λ (see `schedule`)."""
    text: Text = "all"
    """Sentences on which the loss counts. With `labelled` or `unlabelled`, the weight is that of the mean over these
    sentences, whatever their share in the stage's text (Mukherjee & Awadallah 2020, Eq. 7)."""

    @property
    def effective_text(self) -> Text:
        """Text on which the objective has an effect."""
        return self.objective.text if self.text == "all" else self.text


class Mix(Objective):
    """Σ_i w_i · loss_i of several objectives; weights may be searched.

    A stage with one objective that anneals trains on such a mix: λ · loss + (1 − λ) · labels (teacher annealing,
    Wang et al., ACL 2020, §3.3).

    Parts may be restricted to labelled or to unlabelled text. Their losses are divided by the share of that text, a
    constant of the stage. So the mean over an epoch is Eq. 7 of Mukherjee & Awadallah 2020 (without gradient clipping):
    α times the mean over labelled sentences, plus the mean over unlabelled ones of (β · representation + γ · logits).
    The share within one batch would depend on how the workers divide the batch.
    """

    kind: Literal["mix"] = "mix"
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]

    @override
    def with_layers_of(self, layers: Sequence[int]) -> Mix:
        objectives = [part.objective.with_layers_of(layers) for part in self.parts]
        if objectives == [part.objective for part in self.parts]:
            return self
        return self.model_copy(
            update={
                "parts": tuple(
                    part.model_copy(update={"objective": objective})
                    for part, objective in zip(self.parts, objectives, strict=True)
                )
            }
        )

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return tuple(need for part in self.parts for need in part.objective.needs)

    @property
    @override
    def label_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.label_layers))

    @property
    @override
    def piece_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.piece_layers))

    @property
    @override
    def attention_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.attention_layers))

    @property
    @override
    def reads_scores(self) -> bool:
        return any(part.objective.reads_scores for part in self.parts)

    @property
    @override
    def text(self) -> Text:
        read: set[Text] = {part.effective_text for part in self.parts}
        return read.pop() if len(read) == 1 else "all"

    @property
    @override
    def anneals(self) -> bool:
        return False

    @property
    @override
    def follows_lambda(self) -> bool:
        return any(part.anneal != "none" for part in self.parts)

    @property
    @override
    def reads_labels(self) -> bool:
        return any(part.objective.reads_labels for part in self.parts)

    @property
    @override
    def maxent_only(self) -> bool:
        return any(part.objective.maxent_only for part in self.parts)

    @property
    @override
    def reads_pairs(self) -> bool:
        return any(part.objective.reads_pairs for part in self.parts)

    @override
    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        from raykd.objectives.weighted_losses import MixLoss, loss_on_text

        shares = {"labelled": labelled, "unlabelled": 1 - labelled, "all": 1.0}
        losses = [
            loss_on_text(part, part.objective.build(student, teacher), shares[part.text])
            for part in self.parts
        ]
        return MixLoss(self.parts, losses)


def annealed_objective(objective: Objective, *, unlabelled: bool) -> Objective:
    """Return the objective trained in a stage: `objective`, weighed by λ against labels if it anneals.

    The labels of unlabelled text are the teacher's best labelling (Wang et al., ACL 2021, §4).

    Args:
        objective: The stage's objective.
        unlabelled: Whether the stage reads unlabelled text.
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
