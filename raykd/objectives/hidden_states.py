"""Hidden states, piece by piece: the student's brought to the teacher's; with layer 0 these are the embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import nn

from raykd.objectives.layer_map import LayerMap, of_layer
from raykd.objectives.protocol import Loss, Losses
from raykd.structures.padding import mask_of

if TYPE_CHECKING:
    from raykd.corpora.targets import Targets
    from raykd.layers import Output
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
        return self.own_layers

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        sizes = [(student.hidden[own], teacher.hidden[layer]) for layer, own in self.pairs]
        return HiddenStatesLoss(
            self, [nn.Identity() if own == wanted else nn.Linear(own, wanted) for own, wanted in sizes]
        )


class HiddenStatesLoss(Loss):
    """See `HiddenStates`."""

    def __init__(self, objective: HiddenStates, projections: list[nn.Module]):
        super().__init__()
        self.objective, self.projections = objective, nn.ModuleList(projections)

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        apart = []
        for (layer, own), projection in zip(self.objective.pairs, self.projections, strict=True):
            wanted_BPD = of_layer(teacher.pieces, layer, self.objective)
            states_BPD = projection(output.pieces[own])
            inside_BP = mask_of(output.piece_lengths_B, states_BPD.shape[1])
            apart_BPD = (states_BPD - wanted_BPD.to(states_BPD.dtype)).masked_fill(~inside_BP[..., None], 0)
            apart.append(self.objective.length_of(apart_BPD, states_BPD.shape[2]).sum(1))
        total_B = torch.stack(apart).sum(0)
        return Losses(total_B, {self.objective.kind: total_B})
