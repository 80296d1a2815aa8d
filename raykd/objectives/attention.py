"""Attention scores: what each piece of the student looks at, brought to the teacher's."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from raykd.objectives.layer_map import LayerMap, teacher_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import TeacherBatch


class Attention(LayerMap):
    """Σ over layers m and pieces of the distance between the rows of self-attention scores, q · k / √d before the
    softmax (Soltan et al. 2021, Eq. 3): over the pieces of the sentence that a piece may look at, averaged over heads.
    Where the two have different numbers of heads, scores are averaged over heads first. Zero iff the scores are equal.

    Of sentences that are longer than one of the two reads at once nothing is compared.
    """

    kind: Literal["attention"] = "attention"
    layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    """Of the teacher, one for each layer of the student that learns from one; the first layer is 1."""
    student_layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] | None = None
    signal: ClassVar[str] = "attention"

    @property
    def attention_layers(self) -> tuple[int, ...]:
        return self.mapped_student_layers

    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        import torch

        from raykd.structures.padding import length_mask

        apart = []
        for layer, own in self.pairs:
            own_BHPQ, wanted_BHPQ = output.attention[own], teacher_layer(teacher.attention, layer, self)
            if own_BHPQ.shape[1] != wanted_BHPQ.shape[1]:
                own_BHPQ, wanted_BHPQ = (each.mean(1, keepdim=True) for each in (own_BHPQ, wanted_BHPQ))
            inside_BP = length_mask(output.piece_lengths_B, own_BHPQ.shape[2])
            unread_B = (own_BHPQ[:, 0, 0, 0] == -inf) | (wanted_BHPQ[:, 0, 0, 0] == -inf)
            inside_BP = inside_BP & ~unread_B[:, None]
            outside_B1PQ = ~(inside_BP[:, None, :, None] & inside_BP[:, None, None, :])
            apart_BHPQ = (own_BHPQ - wanted_BHPQ.to(own_BHPQ.dtype)).masked_fill(outside_B1PQ, 0)
            rows_BHP = self.vector_distance(apart_BHPQ, output.piece_lengths_B[:, None, None])
            apart.append(rows_BHP.mean(1).sum(1))
        return torch.stack(apart).sum(0)
