"""Several objectives at once: a weighted sum, whose weights may follow λ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from torch import nn

from raykd.errors import RunError
from raykd.objectives.labels import Gold, Top1
from raykd.objectives.protocol import Loss, Losses, Objective
from raykd.objectives.table import SingleObjective
from raykd.signals import Need, Sizes, TeacherBatch
from raykd.spec import Frozen

if TYPE_CHECKING:
    from raykd.corpora.labels import Targets
    from raykd.layers import Output

Anneal = Literal["none", "falling", "rising"]


class Part(Frozen):
    """One objective of a mix."""

    objective: SingleObjective
    weight: Annotated[float, Field(ge=0)] = 1.0
    anneal: Anneal = "none"
    """`falling`: the weight is multiplied by λ, `rising`: by 1 − λ (see `schedule`)."""


class Mix(Objective):
    """Σ_i w_i · loss_i of several objectives; weights may be searched.

    An objective that stands alone in a stage, and is annealed, is such a mix: λ · loss + (1 − λ) · labels (teacher
    annealing, Wang et al., ACL 2020, §3.3).
    """

    kind: Literal["mix"] = "mix"
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(need for part in self.parts for need in part.objective.needs)

    @property
    def student_layers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer for part in self.parts for layer in part.objective.student_layers))

    @property
    def text(self) -> Literal["labelled", "all"]:
        return "all" if any(part.objective.text == "all" for part in self.parts) else "labelled"

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

    def build(self, student: Sizes, teacher: Sizes) -> Loss:
        return MixLoss(self.parts, [part.objective.build(student, teacher) for part in self.parts])


class MixLoss(Loss):
    """See `Mix`."""

    def __init__(self, parts: tuple[Part, ...], losses: list[Loss]):
        super().__init__()
        self.parts, self.losses = parts, nn.ModuleList(losses)

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        factors = {"none": 1.0, "falling": kd_weight, "rising": 1 - kd_weight}
        total_B, parts, seen = None, {}, Counter()
        for part, loss in zip(self.parts, self.losses, strict=True):
            weight = part.weight * factors[part.anneal]
            # Labels are computed even at weight 0, and so are losses with parameters of their own: then every parameter
            # has a gradient at every λ, so that optimiser and DDP treat all alike.
            if weight == 0 and not part.objective.reads_labels and next(loss.parameters(), None) is None:
                continue
            own: Losses = loss(output, targets, teacher, kd_weight=kd_weight)
            weighted_B = weight * own.total_B
            total_B = weighted_B if total_B is None else total_B + weighted_B
            for kind, value_B in own.parts.items():
                seen[kind] += 1
                parts[kind if seen[kind] == 1 else f"{kind}.{seen[kind]}"] = value_B
        if total_B is None:
            got = ", ".join(f"{part.objective.kind} {part.weight:g} {part.anneal}" for part in self.parts)
            raise RunError(
                f"objective.parts: every weight of the mix is 0 at λ = {kd_weight:g} ({got}); "
                "give one part a weight that λ does not set to 0"
            )
        return Losses(total_B, parts)


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
