"""Representation transfer: the student's hidden states are drawn to the teacher's.

Shapes: B batch, W labels of a sentence, D size of the teacher's states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.errors import RunError
from raykd.objectives.protocol import Objective
from raykd.signals import Need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import Sizes, TeacherBatch

KERAS_EPSILON = 1e-7
SIGNALS_OF = {"float16": "hidden", "int8": "hidden_int8"}
"""Precision to the signal that stores hidden states in it."""


class Representation(Objective):
    """Σ_t D(z_t, z̃_s,t) over labels, z̃_s = GELU(W h_s + b) (Mukherjee & Awadallah 2020, Eq. 3 and 5).

    z_t is the teacher's state in `layer` from which the label is predicted, h_s the student's state in `student_layer`.
    If that layer is the student's projection, its state is z̃; else W and b belong to the loss: they are trained with
    the student and do not ship. D is one of

        kld, softmax   KL(softmax z ‖ softmax z̃), a divergence between distributions; zero iff z, z̃ are equal up to a
                       constant. The paper does not normalise the vectors.
        kld, none      the authors' code: Keras' Kullback-Leibler divergence of the raw vectors, Σ_d z_d log(z_d / z̃_d)
                       with both clipped to [1e-7, 1]. Not a divergence: it may be negative, and values outside these
                       bounds have no gradient.
        mse            the mean of (z_d − z̃_d)² over components d, softmaxed or raw; zero iff they are equal.
    """

    kind: Literal["representation"] = "representation"
    layer: Annotated[int, Field(ge=0)] = 1
    """Layer of the teacher: 0 is the input of its encoder, 1 the output of the first layer."""
    student_layer: int = -1
    """Layer of the student; -1 is its last layer, or its projection."""
    distance: Literal["kld", "mse"] = "kld"
    """D: Kullback-Leibler divergence, or mean squared error."""
    normalise: Literal["softmax", "none"] = "softmax"
    """Normalisation of both vectors before the comparison."""
    precision: Literal["float16", "int8"] = "float16"
    """Stored precision of the teacher's states: int8 takes half the bytes of float16."""
    anneals: ClassVar[bool] = False
    by_label: ClassVar[bool] = False

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (Need(SIGNALS_OF[self.precision], layer=self.layer),)

    @property
    @override
    def label_layers(self) -> tuple[int, ...]:
        return (self.student_layer,)

    @override
    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        from raykd.layers.tagger import Projection

        layer = self.student_layer
        student_size, teacher_size = student.hidden[layer], teacher.hidden[self.layer]
        if layer not in student.projected:
            return [Projection(student_size, teacher_size)]
        if student_size != teacher_size:
            raise RunError(
                f"objective.layer: the teacher's layer {self.layer} has {teacher_size} components and the student's "
                f"projection {student_size}; set student.projection: teacher, or to {teacher_size}"
            )
        return []

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        (need,) = self.needs
        if need not in teacher.hidden:
            raise ValueError(
                f"objective 'representation' reads the teacher's hidden states of layer {self.layer} "
                f"in {self.precision} and this batch has none"
            )
        from raykd.structures.padding import length_mask

        teacher_BWD, lengths_B = teacher.hidden[need]
        student_BWD = output.hidden[self.student_layer]
        for projection in modules:
            student_BWD = projection(student_BWD)
        distance_BW = _distance(teacher_BWD.detach().to(student_BWD.dtype), student_BWD, self)
        return distance_BW.masked_fill(~length_mask(lengths_B, distance_BW.shape[1]), 0.0).sum(-1)


def _distance(
    teacher_BWD: Float[Tensor, "batch label size"],
    student_BWD: Float[Tensor, "batch label size"],
    objective: Representation,
) -> Float[Tensor, "batch label"]:
    """Return D between the two vectors of all labels."""
    softmax = objective.normalise == "softmax"
    if objective.distance == "mse":
        if softmax:
            teacher_BWD, student_BWD = teacher_BWD.softmax(-1), student_BWD.softmax(-1)
        return (teacher_BWD - student_BWD).square().mean(-1)
    if softmax:
        teacher_BWD = teacher_BWD.log_softmax(-1)
        return (teacher_BWD.exp() * (teacher_BWD - student_BWD.log_softmax(-1))).sum(-1)
    teacher_BWD, student_BWD = teacher_BWD.clamp(KERAS_EPSILON, 1.0), student_BWD.clamp(KERAS_EPSILON, 1.0)
    return (teacher_BWD * (teacher_BWD.log() - student_BWD.log())).sum(-1)
