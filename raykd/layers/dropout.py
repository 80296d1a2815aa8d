"""Dropout for sentences: one mask for all tokens of a sentence, whole words at a time, or each component.

A mask is drawn for the *global* batch and each worker takes the rows of its sentences: an element's fate is a hash of
the step's seed, how many masks were drawn before in the same pass, the sentence's row in the global batch, and the
element's place in the sentence. It depends neither on padding, nor on which worker has the sentence, nor on the device.

Shapes: B batch, N rows (sentences, or words), P pieces, T time (words), D size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

# The constants of splitmix64 (Steele et al. 2014), as signed numbers.
_STRIDE, _FIRST, _SECOND = (
    constant - 2**64 for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass
class _Masks:
    seed: int
    rows_B: Tensor
    drawn: int = 0


_masks: ContextVar[_Masks | None] = ContextVar("masks", default=None)


@contextmanager
def masks_of(seed: int, rows_B: Int[Tensor, " batch"]) -> Iterator[None]:
    """Draws the masks of one training step; `rows_B`: where the sentences of this worker stand in the global batch.

    Outside, every mask is drawn anew from torch's generator.
    """
    token = _masks.set(_Masks(seed, rows_B))
    try:
        yield
    finally:
        _masks.reset(token)


@contextmanager
def of_sentences(sentence_N: Int[Tensor, " row"]) -> Iterator[None]:
    """For what reads other rows than the sentences: the sentence that each row comes from, counted in the batch.

    Masks are counted within alone: workers may enter it different numbers of times.
    """
    outer = _masks.get()
    token = _masks.set(outer and replace(outer, rows_B=outer.rows_B[sentence_N]))
    try:
        yield
    finally:
        _masks.reset(token)


def kept(
    shape: tuple[int, ...], rate: float, device: torch.device, *, keys_N: Int[Tensor, " row"] | None = None
) -> Bool[Tensor, "row ..."]:
    """Which elements of `shape` [N, …] stay, each with probability 1 − `rate` (in steps of 2⁻¹⁶).

    `keys_N`: what stands for each row where it is no sentence of the batch, the same on every worker. Such masks are
    not counted: workers may draw different numbers of them.
    """
    masks = _masks.get()
    if masks is None:
        masks = _Masks(int(torch.randint(2**62, ())), torch.arange(shape[0], device=device))
    if keys_N is None:
        masks.drawn += 1
        keys_N, count = masks.rows_B, masks.drawn
    else:
        count = 0
    state_N = _mixed(_mixed(keys_N.to(device) * _STRIDE + masks.seed) + count * _FIRST % 2**62)
    *places, size = shape[1:]
    state = state_N
    for length in places:
        state = _within(state, length)
    # One number of 64 bits serves four elements.
    bits = _within(state, -(-size // 4)).view(torch.int16)[..., :size]
    return bits < min(round((1 - rate) * 2**16) - 2**15, 2**15 - 1)


def hashed_rows(numbers_NC: Int[Tensor, "row column"]) -> Int[Tensor, " row"]:
    """One number for each row's content; columns of zeros at the end change nothing."""
    places_C = torch.arange(1, numbers_NC.shape[1] + 1, device=numbers_NC.device)
    return (_mixed(numbers_NC + places_C * _STRIDE) * (numbers_NC != 0)).sum(1)


def dropped(inputs: Tensor, rate: float, *, keys_N: Int[Tensor, " row"] | None = None) -> Tensor:
    """`inputs` [N, …] with a share of its elements zeroed and the others scaled, so that the mean stays."""
    mask = kept(tuple(inputs.shape), rate, inputs.device, keys_N=keys_N)
    return inputs * (mask.to(inputs.dtype) / (1 - rate))


class _Dropping(nn.Module):
    """Does nothing in evaluation mode or at rate 0."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        return self.training and self.rate > 0

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class Dropout(_Dropping):
    """Zeroes each element of [N, …] by itself."""

    def forward(self, inputs: Tensor, *, keys_N: Int[Tensor, " row"] | None = None) -> Tensor:
        return dropped(inputs, self.rate, keys_N=keys_N) if self.active else inputs


class VariationalDropout(_Dropping):
    """Zeroes the same components at every position of a sentence (Gal & Ghahramani 2016)."""

    def forward(self, inputs_BTD: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
        if not self.active:
            return inputs_BTD
        kept_BD = kept((len(inputs_BTD), inputs_BTD.shape[2]), self.rate, inputs_BTD.device)
        return inputs_BTD * (kept_BD[:, None].to(inputs_BTD.dtype) / (1 - self.rate))


class WordDropout(_Dropping):
    """Replaces pieces by the unknown one at random: so the unknown piece is learned from text that has none."""

    def __init__(self, rate: float, *, unknown: int):
        super().__init__(rate)
        self.unknown = unknown

    def forward(self, pieces_BP: Int[Tensor, "batch piece"]) -> Int[Tensor, "batch piece"]:
        if not self.active:
            return pieces_BP
        kept_BP = kept(tuple(pieces_BP.shape), self.rate, pieces_BP.device)
        return pieces_BP.masked_fill(~kept_BP, self.unknown)


class OwnDropout(TorchFunctionMode):
    """Within it `torch.nn.functional.dropout` draws its masks here: for models whose layers are not ours."""

    def __torch_function__(
        self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        if func is nn.functional.dropout:
            return _own_dropout(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _own_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return dropped(input, p) if training and p else input


def _within(state: Tensor, count: int) -> Tensor:
    """A state for each of `count` places in each of `state`."""
    return _mixed(state[..., None] + torch.arange(1, count + 1, device=state.device) * _STRIDE)


def _mixed(numbers: Tensor) -> Tensor:
    """The finaliser of splitmix64: products wrap around at 64 bits."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shifted(numbers, 27)) * _SECOND
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    return (numbers >> bits) & (2 ** (64 - bits) - 1)
