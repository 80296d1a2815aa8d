"""Attention distillation: the student's attention scores are drawn to the teacher's.

Shapes: B batch, H heads, P pieces, Q pieces that a piece attends to.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.layer_map import LayerMap, teacher_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import TeacherBatch


class Attention(LayerMap):
    """Σ over layers m and pieces of the distance between rows of self-attention scores (Soltan et al. 2021, Eq. 3).

    A row holds q · k / √d before the softmax, over the pieces of the sentence that a piece may attend to. Distances are
    averaged over heads; models with different numbers of heads have their scores averaged over heads first. Zero iff
    the scores are equal. Sentences that exceed the length limit of either model have loss 0.
    """

    kind: Literal["attention"] = "attention"
    layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] | None = None
    """Layers of the teacher, one for each student layer that is trained on one; the first layer is 1. null: those of a
    student that is cut from its teacher, each trained on the layer that it was."""
    student_layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] | None = None
    signal: ClassVar[str] = "attention"

    @property
    @override
    def attention_layers(self) -> tuple[int, ...]:
        return self.mapped_student_layers

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        import torch

        from raykd.structures.padding import length_mask

        losses = []
        for layer, student_layer in self.pairs:
            student_BHPQ, teacher_BHPQ = (
                output.attention[student_layer],
                teacher_layer(teacher.attention, layer, self),
            )
            if student_BHPQ.shape[1] != teacher_BHPQ.shape[1]:
                student_BHPQ, teacher_BHPQ = (
                    scores_BHPQ.mean(1, keepdim=True) for scores_BHPQ in (student_BHPQ, teacher_BHPQ)
                )
            inside_BP = length_mask(output.piece_lengths_B, student_BHPQ.shape[2])
            # a model that did not read a sentence, which exceeds its length limit, leaves −∞
            unread_B = (student_BHPQ[:, 0, 0, 0] == -inf) | (teacher_BHPQ[:, 0, 0, 0] == -inf)
            inside_BP = inside_BP & ~unread_B[:, None]
            outside_B1PQ = ~(inside_BP[:, None, :, None] & inside_BP[:, None, None, :])
            difference_BHPQ = (student_BHPQ - teacher_BHPQ.to(student_BHPQ.dtype)).masked_fill(
                outside_B1PQ, 0
            )
            rows_BHP = self.vector_distance(difference_BHPQ, output.piece_lengths_B[:, None, None])
            losses.append(rows_BHP.mean(1).sum(1))
        return torch.stack(losses).sum(0)
