"""Hidden states, piece by piece: the student's brought to the teacher's; with layer 0 these are the embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from raykd.objectives.layer_map import LayerMap, teacher_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import Sizes, TeacherBatch


class HiddenStates(LayerMap):
    """Σ over layers m and pieces of ‖x_t,m − f(x_s,g(m))‖₂ (Soltan et al. 2021, Eq. 3), or of the mean squared
    difference. Zero iff f(x_s) = x_t everywhere.

    f is the identity where both are as wide, else a linear layer of the loss's own for each pair of layers: it is
    trained with the student and does not ship. Layer 0 is what the encoder reads: embeddings with their positions.
    """

    kind: Literal["hidden_states"] = "hidden_states"
    signal: ClassVar[str] = "piece_states"

    @property
    def piece_layers(self) -> tuple[int, ...]:
        return self.mapped_student_layers

    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        from torch import nn

        sizes = [(student.hidden[own], teacher.hidden[layer]) for layer, own in self.pairs]
        return [nn.Identity() if own == wanted else nn.Linear(own, wanted) for own, wanted in sizes]

    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        import torch

        from raykd.structures.padding import length_mask

        apart = []
        for (layer, own), projection in zip(self.pairs, modules, strict=True):
            wanted_BPD = teacher_layer(teacher.pieces, layer, self)
            states_BPD = projection(output.pieces[own])
            inside_BP = length_mask(output.piece_lengths_B, states_BPD.shape[1])
            apart_BPD = (states_BPD - wanted_BPD.to(states_BPD.dtype)).masked_fill(~inside_BP[..., None], 0)
            apart.append(self.vector_distance(apart_BPD, states_BPD.shape[2]).sum(1))
        return torch.stack(apart).sum(0)
