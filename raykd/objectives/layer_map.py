"""What objectives between the layers of two Transformers encoders share: the layer map, and the distance.

Shapes: B batch, P pieces, D size.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raykd.objectives.protocol import Objective
from raykd.signals import Need

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float, Int
    from torch import Tensor

Layer = Annotated[int, Field(ge=0)]


class LayerMap(Objective):
    """Reads layers of the teacher's encoder, each beside one of the student's, piece by piece (Soltan et al. 2021,
    Eq. 3). Both read the same pieces. The teacher reads each batch in the training step: nothing is stored.

    Distances are of what is said of one piece, summed over the pieces of a sentence (special ones included) and over
    the layers of the map.
    """

    layers: Annotated[tuple[Layer, ...], Field(min_length=1)]
    """Of the teacher, one for each layer of the student that learns from one."""
    student_layers: Annotated[tuple[Layer, ...], Field(min_length=1)] | None = None
    """Of the student, in the order of `layers`; null: its embeddings for the teacher's layer 0, its layers 1, 2, … for
    the others."""
    distance: Literal["l2", "mse"] = "l2"
    """The Euclidean distance, or the mean squared difference of the components (TinyBERT's code)."""
    anneals: ClassVar[bool] = False
    by_label: ClassVar[bool] = False
    signal: ClassVar[str]
    """What it reads of the teacher's layers."""

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.student_layers is not None and len(self.student_layers) != len(self.layers):
            got = f"{len(self.layers)} in layers and {len(self.student_layers)} in student_layers"
            raise ValueError(f"every layer of the teacher is for one of the student, got {got}")
        return self

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The layers of teacher and student that belong together."""
        if self.student_layers is not None:
            return tuple(zip(self.layers, self.student_layers, strict=True))
        numbers = itertools.count(1)
        return tuple((layer, next(numbers) if layer else 0) for layer in self.layers)

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(self.signal, layer=layer) for layer in dict.fromkeys(self.layers))

    @property
    def mapped_student_layers(self) -> tuple[int, ...]:
        """The student's, each once."""
        return tuple(dict.fromkeys(own for _, own in self.pairs))

    def vector_distance(
        self, difference: Float[Tensor, "*rows size"], compared: int | Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows"]:
        """The distance between two vectors of each row, by their difference, of which so many components are
        `compared`; the others are 0.
        """
        if self.distance == "mse":
            return difference.square().sum(-1) / compared
        import torch

        return torch.linalg.vector_norm(difference, dim=-1)


def teacher_layer(given: Mapping[int, Tensor], layer: int, objective: LayerMap) -> Tensor:
    """What the teacher gives of a layer, outside every gradient; ValueError where it gives nothing."""
    if layer not in given:
        signal = objective.signal.replace("_", " ")
        raise ValueError(
            f"objective {objective.kind!r} reads the teacher's {signal} of layer {layer} and this batch has none"
        )
    return given[layer].detach()
