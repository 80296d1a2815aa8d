"""The one interface of teachers and students: what a model is asked for, what it gives, and its weights as bytes."""

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
    """What a model gives for a batch.

    `distribution` is over the labels of each sentence: one label per word, or one for the sentence (a chain of
    length 1). `hidden` holds, of the layers that were asked for, the states [B, T, D] that labels are predicted from: a
    word's is that of its first piece, so models with other pieces have the same. Layer 0 is the input of the encoder, 1
    the output of its first layer.

    Of the layers that were asked for `pieces` holds the states [B, P, D] of every piece, and `attention` the scores
    [B, H, P, P] of each head, q · k / √d before the softmax: −∞ throughout of a sentence that is not read whole.
    `piece_lengths_B` goes with both. Among the `legal` labellings the best one is sought.
    """

    distribution: Distribution
    hidden: Mapping[int, Float[Tensor, "batch label size"]] = field(default_factory=dict)
    pieces: Mapping[int, Float[Tensor, "batch piece size"]] = field(default_factory=dict)
    attention: Mapping[int, Float[Tensor, "batch head piece piece"]] = field(default_factory=dict)
    piece_lengths_B: Int[Tensor, " batch"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    legal: LegalTransitions | None = None


class Model(nn.Module, ABC):
    """Reads a batch of sentences and gives an `Output`. Teachers and students are both such models.

    Transformers encoders take `pieces` and `attention` beside `layers`: the layers of which an output has these.
    """

    legal: LegalTransitions | None = None
    """The labellings among which the best one is sought, in its outputs and its ONNX graph; None: all of them."""

    @abstractmethod
    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        """The output for `batch`, with the hidden states of `layers`; the distribution is at least float32.

        Raises:
            ValueError: the model has no such layer.
        """

    def hidden_size(self, layer: int) -> int:
        """Components D of the states of `layer`; ValueError where the model has no such layer."""
        raise ValueError(f"{type(self).__name__} gives no hidden states, so not those of layer {layer}")

    def projected(self, layer: int) -> bool:
        """Whether the states of `layer` are the model's own projection to another model's width."""
        return False

    def draw_head(self) -> None:
        """Draw the parameters of its head anew from torch's generator; ValueError where it has no head of its own."""
        raise ValueError(f"{type(self).__name__} has no head that could be drawn anew")

    def fixed(self) -> Sequence[nn.Parameter]:
        """Those of its `parameters()` that are never trained."""
        return ()

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        """Its parameters by layer group, from the top (`head`) down; the order of gradual unfreezing."""
        return {"all": list(self.parameters())}

    def embedding_matrix(self) -> Float[Tensor, "piece size"]:
        """Its vectors of pieces, as its parameter; ValueError where it has none."""
        raise ValueError(f"{type(self).__name__} has no vectors of pieces")

    def frozen(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """What it reads of frozen encoders and is none of its `parameters()`: by key, the parameters of each, without
        their values. Models with the same key share them.
        """
        return {}

    def all_parameters(self) -> Iterator[nn.Parameter]:
        """Every parameter that it computes with, once."""
        every = [*self.parameters(), *(each for own in self.frozen().values() for each in own)]
        yield from {id(parameter): parameter for parameter in every}.values()

    @property
    def piece_limit(self) -> int | None:
        """The most pieces that it reads at once, where there is such a limit. Longer sentences are read in parts, but
        not by `to_onnx`.
        """
        return None

    def to_onnx(self) -> ModelProto:
        """The model and its decoding as one ONNX graph: from the numbers of a batch to its best labels
        (`layers/graph.py` has the names of inputs and outputs).

        Raises:
            ExportError: there is no such graph of this model.
        """
        raise ExportError(
            f"{type(self).__name__}: no ONNX graph is made of this kind of model; export a student"
        )

    def architecture(self) -> PlainObject | None:
        """What of its shape only a given checkpoint says, as JSON-able data; None where its configuration says all."""
        return None


def checked_layer(layer: int, depth: int, name: str) -> int:
    """`layer` from 0 to `depth`; a negative one counts from the end. Raises ValueError where there is none."""
    if not -depth - 1 <= layer <= depth:
        raise ValueError(f"{name} has no layer {layer}; choose from 0 (the encoder's input) to {depth}")
    return layer % (depth + 1)


def save_weights(model: nn.Module) -> bytes:
    """Parameters and buffers of `model` as safetensors. The same weights always give the same bytes."""
    state = model.state_dict()
    # Cloned because safetensors refuses tensors that share memory (tied weights, cuDNN's flat LSTM weights).
    return save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})


def load_weights(model: nn.Module, data: bytes) -> None:
    """Set parameters and buffers of `model` to what `save_weights` wrote.

    Raises:
        StoreError: the bytes are damaged, or are the weights of a model of another shape.
    """
    try:
        stored = load(data)
    except SafetensorError as error:
        raise StoreError(
            "weights", f"damaged ({error})", "remove the folder that holds them and run again"
        ) from error
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    unlike = sorted(name for name in own.keys() | got.keys() if own.get(name) != got.get(name))
    if unlike:
        first = f"{unlike[0]}: stored {got.get(unlike[0])}, model {own.get(unlike[0])}"
        problem = f"they belong to another model: {len(unlike)} differences, the first is {first}"
        raise StoreError("weights", problem, "use the model configuration that is stored with them")
    model.load_state_dict(stored)
