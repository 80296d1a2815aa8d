"""Hidden-state distillation of all pieces; layer 0 is the embeddings.

Shapes: B batch, P pieces, D size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from typing_extensions import override

from raykd.objectives.layer_map import LayerMap, teacher_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import Sizes, TeacherBatch


class HiddenStates(LayerMap):
    """Σ over layers m and pieces of ‖x_t,m − f(x_s,g(m))‖₂, or of the mean squared difference.

    (Soltan et al. 2021, Eq. 3.) Zero iff f(x_s) = x_t everywhere. f is the identity if both states are equally wide,
    else one linear layer for each pair of layers, which belongs to the loss: it is trained with the student and does
    not ship. Layer 0 is the input of the encoder: embeddings with their positions.
    """

    kind: Literal["hidden_states"] = "hidden_states"
    signal: ClassVar[str] = "piece_states"

    @property
    @override
    def piece_layers(self) -> tuple[int, ...]:
        return self.mapped_student_layers

    @override
    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        from torch import nn

        sizes = [
            (student.hidden[student_layer], teacher.hidden[layer]) for layer, student_layer in self.pairs
        ]
        return [nn.Identity() if width == target else nn.Linear(width, target) for width, target in sizes]

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        import torch

        from raykd.structures.padding import length_mask

        losses = []
        for (layer, student_layer), projection in zip(self.pairs, modules, strict=True):
            teacher_BPD = teacher_layer(teacher.pieces, layer, self)
            states_BPD = projection(output.pieces[student_layer])
            inside_BP = length_mask(output.piece_lengths_B, states_BPD.shape[1])
            difference_BPD = (states_BPD - teacher_BPD.to(states_BPD.dtype)).masked_fill(
                ~inside_BP[..., None], 0
            )
            losses.append(self.vector_distance(difference_BPD, states_BPD.shape[2]).sum(1))
        return torch.stack(losses).sum(0)
