"""Posterior distillation: the distribution of each token given the whole sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from typing_extensions import override

from raykd.objectives.protocol import Objective, target_moments
from raykd.objectives.temperature import (
    Soften,
    Temperature,
    TemperatureMode,
    marginal_needs,
    soften_chain,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.signals import Need, TeacherBatch
    from raykd.structures import Chain


def tempered_posterior_kl(
    teacher_BTY: Float[Tensor, "batch time tag"], student: Chain, temperature: float
) -> Float[Tensor, " batch"]:
    """Return Σ_t KL(q_t ‖ q_s^(1/ϑ) renormalised) [B] between token marginals.

    Args:
        teacher_BTY: Token marginals of the teacher.
        student: Chain of the student.
        temperature: ϑ, which softens the student's marginals.
    """
    import torch

    from raykd.structures import token_marginals

    mask_BT1 = student.mask_BT[:, :, None]
    # A marginal that underflows is clamped to the smallest number: the loss stays finite and has no gradient there.
    marginals_BTY = token_marginals(student).clamp_min(torch.finfo(student.dtype).tiny)
    log_student_BTY = torch.log_softmax(marginals_BTY.log() / temperature, dim=-1)
    teacher_BTY = teacher_BTY.to(student.dtype)
    terms_BTY = torch.xlogy(teacher_BTY, teacher_BTY) - teacher_BTY * log_student_BTY
    return terms_BTY.masked_fill(~mask_BT1, 0).sum((1, 2))


class Posterior(Objective):
    """Σ_t KL(q_t(y_t) ‖ q_s(y_t)) between token marginals from forward-backward (Wang et al., ACL 2020, Eq. 8).

    Eq. 8 is the cross-entropy; the KL differs by a constant and has the same gradient. Zero iff the token marginals
    agree (at ϑ = 1, or with both sides tempered).
    """

    kind: Literal["posterior"] = "posterior"
    temperature: Temperature = 1.0
    temperature_mode: TemperatureMode = "local"
    soften: Soften = "teacher"

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return marginal_needs(self.temperature, self.temperature_mode)

    @override
    def loss(self, student: Chain, teacher: TeacherBatch) -> Float[Tensor, " batch"]:
        import torch

        from raykd.structures import posterior_kl

        target_BTY = target_moments(
            teacher, self.kind, self.temperature, self.temperature_mode, pairwise=False, tags=student.tags
        ).token_BTY
        if teacher.on_labels is not None:
            # A divergence needs distributions, but labels express only a part of the arcs: renormalise that part.
            target_BTY = target_BTY / target_BTY.sum(2, keepdim=True).clamp_min(
                torch.finfo(target_BTY.dtype).tiny
            )
        if self.soften == "teacher":
            return posterior_kl(target_BTY, student)
        if self.temperature_mode == "global":
            return self.temperature**2 * posterior_kl(target_BTY, soften_chain(student, self.temperature))
        return self.temperature**2 * tempered_posterior_kl(target_BTY, student, self.temperature)
