"""Common base of objectives between layers of two Transformer encoders: the layer map and the distance.

Shapes: B batch, P pieces, D size.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.objectives.protocol import Objective
from raykd.signals import Need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float, Int
    from torch import Tensor

Layer = Annotated[int, Field(ge=0)]


class LayerMap(Objective):
    """Base of objectives on pairs of layers, piece by piece (Soltan et al. 2021, Eq. 3).

    Teacher and student read the same pieces. The teacher reads each batch in the training step: nothing is stored.
    Distances are summed over the pieces of a sentence (special ones included) and over the layers of the map.
    """

    layers: Annotated[tuple[Layer, ...], Field(min_length=1)] | None = None
    """Layers of the teacher, one for each student layer that is trained on one. null: those of a student that is cut
    from its teacher, each trained on the layer that it was."""
    student_layers: Annotated[tuple[Layer, ...], Field(min_length=1)] | None = None
    """Layers of the student, in the order of `layers`; null: the embeddings for the teacher's layer 0, and layers
    1, 2, … for the others."""
    distance: Literal["l2", "mse"] = "l2"
    """The Euclidean distance, or the mean squared difference of the components (TinyBERT's code)."""
    anneals: ClassVar[bool] = False
    by_label: ClassVar[bool] = False
    signal: ClassVar[str]
    """Signal that is read from the teacher's layers."""

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.student_layers is not None and len(self.student_layers) != len(self.layers or ()):
            lengths = f"{len(self.layers or ())} in layers and {len(self.student_layers)} in student_layers"
            raise ValueError(
                f"each teacher layer needs one student layer; got {lengths}; give lists of one length"
            )
        return self

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a teacher layer and the student layer trained on it."""
        layers = self.layers or ()
        if self.student_layers is not None:
            return tuple(zip(layers, self.student_layers, strict=True))
        numbers = itertools.count(1)
        return tuple((layer, next(numbers) if layer else 0) for layer in layers)

    @property
    @override
    def lacks_layers(self) -> bool:
        return self.layers is None

    @override
    def with_layers_of(self, layers: Sequence[int]) -> Self:
        return self if self.layers or not layers else self.model_copy(update={"layers": tuple(layers[1:])})

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(self.signal, layer=layer) for layer in dict.fromkeys(self.layers or ()))

    @property
    def mapped_student_layers(self) -> tuple[int, ...]:
        """Student layers of the map, without repetition."""
        return tuple(dict.fromkeys(student_layer for _, student_layer in self.pairs))

    def vector_distance(
        self, difference: Float[Tensor, "*rows size"], compared: int | Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows"]:
        """Return the distance between two vectors, row by row.

        Args:
            difference: Difference of the vectors; 0 in components that are not compared.
            compared: Number of components that are compared.
        """
        if self.distance == "mse":
            return difference.square().sum(-1) / compared
        import torch

        return torch.linalg.vector_norm(difference, dim=-1)


def teacher_layer(values: Mapping[int, Tensor], layer: int, objective: LayerMap) -> Tensor:
    """Return the teacher's values of a layer, detached from every gradient.

    Args:
        values: Layer to values.
        layer: Layer of the teacher.
        objective: The objective that reads it, for the message.

    Raises:
        ValueError: The batch has no values of this layer.
    """
    if layer not in values:
        signal = objective.signal.replace("_", " ")
        raise ValueError(
            f"objective {objective.kind!r} reads the teacher's {signal} of layer {layer} and this batch has none"
        )
    return values[layer].detach()
