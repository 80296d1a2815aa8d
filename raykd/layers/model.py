"""The one interface of teachers and students, and how their weights become bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from raykd.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from raykd.corpora.encoding import TokenBatch
    from raykd.structures import Distribution


class Tagger(nn.Module, ABC):
    """A model that reads a batch of sentences and gives a distribution over their tag sequences."""

    @abstractmethod
    def forward(self, batch: TokenBatch) -> Distribution:
        """The distribution over the tag sequences of `batch`: one tag per word, at least float32."""

    def all_parameters(self) -> Iterator[nn.Parameter]:
        """Every parameter that it computes with; those of a frozen encoder are not among its `parameters()`."""
        return self.parameters()


def save_weights(model: nn.Module) -> bytes:
    """Parameters and buffers of `model` as safetensors; the same weights always give the same bytes."""
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
        hint = "remove what holds them and run again"
        raise StoreError("weights", f"damaged ({error})", hint) from error
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    got = {name: tuple(tensor.shape) for name, tensor in stored.items()}
    unlike = sorted(name for name in own.keys() | got.keys() if own.get(name) != got.get(name))
    if unlike:
        first = f"{unlike[0]}: stored {got.get(unlike[0])}, model {own.get(unlike[0])}"
        hint = "build the model from the configuration stored beside them"
        raise StoreError("weights", f"not of this model in {len(unlike)} places, first {first}", hint)
    model.load_state_dict(stored)
