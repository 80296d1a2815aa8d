"""Cross-entropy between softmaxed rows, for objectives that treat tokens separately.

Shapes: B batch, T time, Y tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from raykd.objectives.temperature import Soften, soften_student

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.structures import Chain


def softmax_cross_entropy(
    teacher: Chain, student: Chain, *, temperature: float, soften: Soften
) -> Float[Tensor, " batch"]:
    """Return Σ_t CE(softmax e_t/ϑ, softmax e_s) [B] over the tokens of a sentence.

    A tag that the teacher excludes (emission −∞) counts for nothing, whatever score the student gives it.

    Args:
        teacher: Chain of the teacher.
        student: Chain of the student.
        temperature: ϑ.
        soften: With "both", the result is ϑ² Σ_t CE(softmax e_t/ϑ, softmax e_s/ϑ).
    """
    softened, factor = soften_student(student, temperature, soften)
    padding_BT1 = ~softened.mask_BT[:, :, None]
    # Padding may hold anything, NaN included, which a product with 0 would keep.
    target_BTY = torch.softmax(teacher.emissions_BTY.masked_fill(padding_BT1, 0) / temperature, dim=-1)
    target_BTY = target_BTY.masked_fill(padding_BT1, 0).to(softened.dtype)
    log_student_BTY = torch.log_softmax(softened.emissions_BTY.masked_fill(padding_BT1, 0), dim=-1)
    return -factor * (target_BTY * log_student_BTY.masked_fill(target_BTY == 0, 0)).sum((1, 2))
