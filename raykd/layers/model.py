"""The interface of all models, teachers and students alike: outputs, parameters, and weights as bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from raykd.errors import ExportError, StoreError
from raykd.identity import PlainObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jaxtyping import Float, Int
    from onnx import ModelProto
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.structures import Distribution, LegalTransitions


@dataclass(frozen=True)
class Output:
    """The output of a model for a batch of sentences.

    Attributes:
        distribution: distribution over the labels of each sentence: one label per word, or one for the sentence (a
            chain of length 1).
        hidden: for each requested layer, the states [B, T, D] that labels are predicted from. A word's state is that of
            its first piece, so that models with other pieces have states of the same words. Layer 0 is the input of the
            encoder, 1 the output of its first layer.
        pieces: for each requested layer, the states [B, P, D] of all pieces.
        attention: for each requested layer, the attention scores [B, H, P, P] of all heads, q · k / √d before the
            softmax; −∞ throughout for a sentence that is too long to be read at once.
        piece_lengths_B: pieces of each sentence, for `pieces` and `attention`.
        legal: labellings among which the best one is sought; None: all of them.
    """

    distribution: Distribution
    hidden: Mapping[int, Float[Tensor, "batch label size"]] = field(default_factory=dict)
    pieces: Mapping[int, Float[Tensor, "batch piece size"]] = field(default_factory=dict)
    attention: Mapping[int, Float[Tensor, "batch head piece piece"]] = field(default_factory=dict)
    piece_lengths_B: Int[Tensor, " batch"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    legal: LegalTransitions | None = None


class Model(nn.Module, ABC):
    """A network from a batch of sentences to an `Output`: a teacher or a student.

    Transformers encoders take the arguments `pieces` and `attention` beside `layers`: layers whose piece states and
    attention scores the output has.
    """

    legal: LegalTransitions | None = None
    """Labellings among which outputs and ONNX graph seek the best one; None: all of them."""

    @abstractmethod
    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        """Return the output for a batch; scores of the distribution have float32 precision at least.

        Args:
            batch: encoded sentences.
            layers: layers whose hidden states the output has.

        Raises:
            ValueError: the model has no such layer.
        """

    def hidden_size(self, layer: int) -> int:
        """Return the number of components D of the states of a layer.

        Raises:
            ValueError: the model has no such layer.
        """
        raise ValueError(f"{type(self).__name__} has no hidden states, so none of layer {layer}")

    def is_projection(self, layer: int) -> bool:
        """Return True if the layer is a projection to the width of another model.

        Args:
            layer: number of the layer; a negative number counts from the last one.
        """
        return False

    def reset_head(self) -> None:
        """Draw the parameters of the head anew from torch's generator.

        Raises:
            ValueError: the model has no head of its own.
        """
        raise ValueError(f"{type(self).__name__} has no head whose parameters could be drawn anew")

    def fixed_parameters(self) -> Sequence[nn.Parameter]:
        """Return the parameters among `parameters()` that are never trained."""
        return ()

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        """Return the parameters by layer group, from the top (`head`) down: the order of gradual unfreezing."""
        return {"all": list(self.parameters())}

    def embedding_matrix(self) -> Float[Tensor, "piece size"]:
        """Return the parameter with the piece vectors.

        Raises:
            ValueError: the model has none.
        """
        raise ValueError(f"{type(self).__name__} has no vectors of pieces")

    def external_parameters(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """Return the parameters of frozen encoders and vector tables, by key and without their values.

        They are not among `parameters()`. Models with the same key share them.
        """
        return {}

    def all_parameters(self) -> Iterator[nn.Parameter]:
        """Yield all parameters of the computation once, external ones included."""
        external = (parameter for group in self.external_parameters().values() for parameter in group)
        yield from {id(parameter): parameter for parameter in (*self.parameters(), *external)}.values()

    @property
    def piece_limit(self) -> int | None:
        """Largest number of pieces read at once; None: any number.

        Longer sentences are read in parts, but not by the graph of `to_onnx`.
        """
        return None

    def to_onnx(self) -> ModelProto:
        """Return the model with decoding as one ONNX graph, from an encoded batch to its best labels.

        `layers/graph.py` has the names of inputs and outputs.

        Raises:
            ExportError: there is no such graph of this model.
        """
        raise ExportError(f"{type(self).__name__}: this kind of model has no ONNX form; export a student")

    def architecture(self) -> PlainObject | None:
        """Return the sizes known from a pretrained checkpoint only, as JSON-able data.

        None where the model's configuration states all sizes.
        """
        return None


def resolve_layer(layer: int, depth: int, name: str) -> int:
    """Return a layer's number, counted from 0.

    Args:
        layer: from 0 to `depth`; a negative number counts from the last layer.
        depth: number of layers.
        name: name of the model in the error.

    Raises:
        ValueError: there is no such layer.
    """
    if not -depth - 1 <= layer <= depth:
        raise ValueError(f"{name} has no layer {layer}; choose from 0 (the encoder's input) to {depth}")
    return layer % (depth + 1)


def save_weights(model: nn.Module) -> bytes:
    """Return parameters and buffers as safetensors; the same weights always give the same bytes.

    Args:
        model: the network.
    """
    state = model.state_dict()
    # Cloned because safetensors refuses tensors that share memory (tied weights, cuDNN's flat LSTM weights).
    return save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})


def load_weights(model: nn.Module, data: bytes) -> None:
    """Set parameters and buffers to the output of `save_weights`.

    Args:
        model: the network.
        data: safetensors.

    Raises:
        StoreError: the bytes are damaged, or are the weights of a model of another shape.
    """
    try:
        stored = load(data)
    except SafetensorError as error:
        raise StoreError(
            "weights", f"damaged ({error})", "remove the folder that holds them and run again"
        ) from error
    model_shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    stored_shapes = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    different = sorted(
        name
        for name in model_shapes.keys() | stored_shapes.keys()
        if model_shapes.get(name) != stored_shapes.get(name)
    )
    if different:
        first = f"{different[0]}: stored {stored_shapes.get(different[0])}, model {model_shapes.get(different[0])}"
        problem = f"they belong to another model: {len(different)} differences, the first is {first}"
        raise StoreError("weights", problem, "use the model configuration that is stored with them")
    model.load_state_dict(stored)
