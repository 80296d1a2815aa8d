"""Emission distillation: a chain's emissions are treated as the logits of a softmax classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from raykd.objectives.protocol import Objective, teacher_chain
from raykd.objectives.temperature import Soften, Temperature
from raykd.signals import Need

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import TeacherBatch
    from raykd.structures import Chain


class Emission(Objective):
    """Σ_t CE(softmax e_t, softmax e_s) over emission scores (Wang et al., ACL 2020, Eq. 3).

    Minimal, at the entropy of the softmaxed teacher emissions, iff the softmaxed emissions agree (at ϑ = 1,
    or with both sides tempered). Transitions are neither read nor trained.
    """

    kind: Literal["emission"] = "emission"
    temperature: Temperature = 1.0
    soften: Soften = "teacher"

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (Need("emissions"),)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        from raykd.objectives.softmax import softmax_cross_entropy

        chain = teacher_chain(teacher, self.kind)
        return softmax_cross_entropy(chain, student, temperature=self.temperature, soften=self.soften)
