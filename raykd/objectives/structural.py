"""Structural distillation: the exact cross-entropy between distributions over whole labellings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from raykd.objectives.protocol import Objective, target_moments
from raykd.objectives.temperature import (
    Soften,
    Temperature,
    TemperatureMode,
    marginal_needs,
    soften_student,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import Need, TeacherBatch
    from raykd.structures import Chain


class Structural(Objective):
    """−Σ_u P_t(u) Score_s(u) + log Z_s, u over the student's substructures (Wang et al., ACL 2021, Eq. 3).

    The student decides the substructures: pairs of neighbouring tags for a chain (case 1a; a MaxEnt teacher's pairs are
    products of its token distributions, case 3), single tags for a MaxEnt student (case 2a; case 4 for a teacher that
    is no chain and offers token marginals; cases 1b and 2b for a parser: labelled arcs, Eq. 5 and 6).

    At least the (tempered) teacher's entropy at ϑ = 1 and with global temperature; reached iff the distributions agree.
    Locally tempered pairs belong to no distribution over labellings, so at ϑ ≠ 1 a chain student has no such bound.
    """

    kind: Literal["structural"] = "structural"
    temperature: Temperature = 1.0
    temperature_mode: TemperatureMode = "local"
    soften: Soften = "teacher"
    reads_pairs: ClassVar[bool] = True

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return marginal_needs(self.temperature, self.temperature_mode)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        from raykd.structures import fenchel_young

        pairwise = any(part is not None for part in (student.transitions, student.start, student.end))
        target = target_moments(
            teacher, self.kind, self.temperature, self.temperature_mode, pairwise=pairwise, tags=student.tags
        )
        softened, factor = soften_student(student, self.temperature, self.soften)
        if teacher.on_labels is not None:
            # Eq. 6: a word counts by the share of the teacher's arcs that its labels express.
            softened = softened.map(lambda scores: scores.log_softmax(2))
        return factor * fenchel_young(softened, target)
