"""Representation transfer: the student's hidden states brought to the teacher's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import torch
from pydantic import Field

from raykd.layers.tagger import Projection
from raykd.objectives.protocol import Loss, Losses, Objective
from raykd.signals import Need, Sizes

if TYPE_CHECKING:
    from raykd.corpora.targets import Targets
    from raykd.layers import Output
    from raykd.signals import TeacherBatch


class Representation(Objective):
    """Σ_t KL(softmax z_t ‖ softmax z̃_s,t) over labels, z̃_s = GELU(W h_s + b) (Mukherjee & Awadallah 2020, Eq. 3).

    z_t is the teacher's state in `layer` that the label is predicted from, h_s the student's in `student_layer`. The
    paper does not normalise the vectors; a softmax over their components makes the divergence one between
    distributions. Zero iff they are equal up to a constant. Where the student's layer is its own projection, that is
    z̃; else W and b belong to the loss: they are trained with the student and do not ship.
    """

    kind: Literal["representation"] = "representation"
    layer: Annotated[int, Field(ge=0)] = 1
    """Of the teacher: 0 is the input of its encoder, 1 the output of the first layer."""
    student_layer: int = -1
    """Of the student; -1 is its last, or its projection."""
    anneals: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("hidden", layer=self.layer),)

    @property
    def student_layers(self) -> tuple[int, ...]:
        return (self.student_layer,)

    def build(self, student: Sizes, teacher: Sizes) -> Loss:
        layer, wanted = self.student_layer, teacher.hidden[self.layer]
        projection = None if layer in student.projected else Projection(student.hidden[layer], wanted)
        return RepresentationLoss(self, projection)


class RepresentationLoss(Loss):
    """See `Representation`."""

    def __init__(self, objective: Representation, projection: Projection | None):
        super().__init__()
        self.objective, self.projection = objective, projection

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        objective = self.objective
        if objective.layer not in teacher.hidden:
            raise ValueError(
                f"objective 'representation' reads the teacher's hidden states of layer {objective.layer} "
                "and this batch has none"
            )
        states_BWD, lengths_B = teacher.hidden[objective.layer]
        own_BWD = output.hidden[objective.student_layer]
        if self.projection is not None:
            own_BWD = self.projection(own_BWD)
        own_BWD = own_BWD.to(torch.promote_types(own_BWD.dtype, torch.float32))
        target_BWD = torch.log_softmax(states_BWD.detach().to(own_BWD.dtype), dim=-1)
        terms_BWD = target_BWD.exp() * (target_BWD - torch.log_softmax(own_BWD, dim=-1))
        inside_BW = torch.arange(terms_BWD.shape[1], device=lengths_B.device) < lengths_B[:, None]
        loss_B = terms_BWD.sum(-1).masked_fill(~inside_BW, 0.0).sum(-1)
        return Losses(loss_B, {objective.kind: loss_B})
