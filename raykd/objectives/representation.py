"""Representation transfer: the student's hidden states brought to the teacher's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import torch
from pydantic import Field

from raykd.errors import RunError
from raykd.layers.tagger import Projection
from raykd.objectives.protocol import Loss, Losses, Objective
from raykd.signals import Need, Sizes
from raykd.structures.padding import mask_of

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.corpora.targets import Targets
    from raykd.layers import Output
    from raykd.signals import TeacherBatch

KERAS_EPSILON = 1e-7
SIGNALS_OF = {"float16": "hidden", "int8": "hidden_int8"}
"""The signal that stores hidden states in a precision."""


class Representation(Objective):
    """Σ_t D(z_t, z̃_s,t) over labels, z̃_s = GELU(W h_s + b) (Mukherjee & Awadallah 2020, Eq. 3 and 5).

    z_t is the teacher's state in `layer` that the label is predicted from, h_s the student's in `student_layer`. Where
    the student's layer is its own projection, that is z̃; else W and b belong to the loss: they are trained with the
    student and do not ship. D is one of

        kld, softmax   KL(softmax z ‖ softmax z̃), a divergence between distributions; zero iff z and z̃ are equal up to a
                       constant. The paper does not normalise the vectors.
        kld, none      the authors' code: Keras' Kullback-Leibler divergence of the vectors as they are,
                       Σ_d z_d log(z_d / z̃_d) with both clipped to [1e-7, 1]. Not a divergence: it may be negative, and
                       what is outside these bounds has no gradient.
        mse            the mean of (z_d − z̃_d)² over components d, of both after a softmax or as they are; zero iff
                       these are equal.
    """

    kind: Literal["representation"] = "representation"
    layer: Annotated[int, Field(ge=0)] = 1
    """Of the teacher: 0 is the input of its encoder, 1 the output of the first layer."""
    student_layer: int = -1
    """Of the student; -1 is its last, or its projection."""
    distance: Literal["kld", "mse"] = "kld"
    """D: Kullback-Leibler divergence, or mean squared error."""
    normalise: Literal["softmax", "none"] = "softmax"
    """What is done to both vectors before they are compared."""
    precision: Literal["float16", "int8"] = "float16"
    """How the teacher's states are stored: int8 takes half the bytes."""
    anneals: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need(SIGNALS_OF[self.precision], layer=self.layer),)

    @property
    def label_layers(self) -> tuple[int, ...]:
        return (self.student_layer,)

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        layer = self.student_layer
        own, wanted = student.hidden[layer], teacher.hidden[self.layer]
        if layer not in student.projected:
            return RepresentationLoss(self, Projection(own, wanted))
        if own != wanted:
            raise RunError(
                f"objective.layer: the teacher's layer {self.layer} has {wanted} components, and the student's "
                f"projection {own}; set student.projection: teacher, or to {wanted}"
            )
        return RepresentationLoss(self, None)


class RepresentationLoss(Loss):
    """See `Representation`."""

    def __init__(self, objective: Representation, projection: Projection | None):
        super().__init__()
        self.objective, self.projection = objective, projection
        (self._need,) = objective.needs

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        objective = self.objective
        if self._need not in teacher.hidden:
            raise ValueError(
                f"objective 'representation' reads the teacher's hidden states of layer {objective.layer} "
                f"in {objective.precision} and this batch has none"
            )
        states_BWD, lengths_B = teacher.hidden[self._need]
        own_BWD = output.hidden[objective.student_layer]
        if self.projection is not None:
            own_BWD = self.projection(own_BWD)
        apart_BW = _distance(states_BWD.detach().to(own_BWD.dtype), own_BWD, objective)
        loss_B = apart_BW.masked_fill(~mask_of(lengths_B, apart_BW.shape[1]), 0.0).sum(-1)
        return Losses(loss_B, {objective.kind: loss_B})


def _distance(
    wanted_BWD: Float[Tensor, "batch label size"],
    own_BWD: Float[Tensor, "batch label size"],
    objective: Representation,
) -> Float[Tensor, "batch label"]:
    """D of each label's two vectors."""
    softmax = objective.normalise == "softmax"
    if objective.distance == "mse":
        if softmax:
            wanted_BWD, own_BWD = wanted_BWD.softmax(-1), own_BWD.softmax(-1)
        return (wanted_BWD - own_BWD).square().mean(-1)
    if softmax:
        wanted_BWD = torch.log_softmax(wanted_BWD, dim=-1)
        return (wanted_BWD.exp() * (wanted_BWD - torch.log_softmax(own_BWD, dim=-1))).sum(-1)
    wanted_BWD, own_BWD = wanted_BWD.clamp(KERAS_EPSILON, 1.0), own_BWD.clamp(KERAS_EPSILON, 1.0)
    return (wanted_BWD * (wanted_BWD.log() - own_BWD.log())).sum(-1)
