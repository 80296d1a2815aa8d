"""Dropout for sentences: one mask for all tokens of a sentence, whole words at a time, or single components.

A mask is drawn for the *global* batch, and each worker takes the rows of its sentences. Whether an element is dropped
is a hash of the step's seed, the number of masks drawn before in the same pass, the sentence's row in the global batch,
and the element's place in the sentence. It does not depend on padding, on the worker that has the sentence, or on the
device.

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
from typing_extensions import override

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

# The constants of splitmix64 (Steele et al. 2014), as signed numbers.
_STRIDE, _FIRST, _SECOND = (
    constant - 2**64 for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass
class _Masks:
    """The seed of a step, the rows in the global batch, and the number of masks drawn so far."""

    seed: int
    rows_B: Tensor
    drawn: int = 0


_masks: ContextVar[_Masks | None] = ContextVar("masks", default=None)


@contextmanager
def step_masks(seed: int, rows_B: Int[Tensor, " batch"]) -> Iterator[None]:
    """Draw the masks of one training step reproducibly inside the `with` block.

    Outside of it masks are drawn from torch's generator.

    Args:
        seed: seed of the step.
        rows_B: row in the global batch of each sentence of this worker.
    """
    token = _masks.set(_Masks(seed, rows_B))
    try:
        yield
    finally:
        _masks.reset(token)


@contextmanager
def masks_by_sentence(sentence_N: Int[Tensor, " row"]) -> Iterator[None]:
    """Draw masks by sentence inside the `with` block, where rows are not the sentences of the batch.

    Masks drawn inside are not counted outside: workers may enter the block different numbers of times.

    Args:
        sentence_N: place in the batch of the sentence that each row comes from.
    """
    outer = _masks.get()
    token = _masks.set(outer and replace(outer, rows_B=outer.rows_B[sentence_N]))
    try:
        yield
    finally:
        _masks.reset(token)


def keep_mask(
    shape: tuple[int, ...], rate: float, device: torch.device, *, keys_N: Int[Tensor, " row"] | None = None
) -> Bool[Tensor, "row ..."]:
    """Return a mask, True with probability 1 − `rate` (in steps of 2⁻¹⁶) for elements to keep.

    Args:
        shape: shape [N, …] of the mask.
        rate: share of elements that are dropped.
        device: device of the mask.
        keys_N: a number for each row, where rows are not the sentences of the batch; the same on every worker. Such
            masks are not counted: workers may draw different numbers of them.
    """
    masks = _masks.get()
    if masks is None:
        masks = _Masks(int(torch.randint(2**62, ())), torch.arange(shape[0], device=device))
    if keys_N is None:
        masks.drawn += 1
        keys_N, count = masks.rows_B, masks.drawn
    else:
        count = 0
    state_N = _splitmix64(_splitmix64(keys_N.to(device) * _STRIDE + masks.seed) + count * _FIRST % 2**62)
    *places, size = shape[1:]
    state = state_N
    for length in places:
        state = _child_states(state, length)
    # One number of 64 bits serves four elements: each gets 16 bits, as a number from −2¹⁵ to 2¹⁵ − 1.
    bits = _child_states(state, -(-size // 4)).view(torch.int16)[..., :size]
    return bits < min(round((1 - rate) * 2**16) - 2**15, 2**15 - 1)


def hash_rows(numbers_NC: Int[Tensor, "row column"]) -> Int[Tensor, " row"]:
    """Return one number per row, a hash of the content; columns of zeros at the end change nothing.

    Args:
        numbers_NC: rows of integers.
    """
    places_C = torch.arange(1, numbers_NC.shape[1] + 1, device=numbers_NC.device)
    return (_splitmix64(numbers_NC + places_C * _STRIDE) * (numbers_NC != 0)).sum(1)


def apply_dropout(inputs: Tensor, rate: float, *, keys_N: Int[Tensor, " row"] | None = None) -> Tensor:
    """Return inputs with a share of the elements zeroed and the rest scaled, so that the mean stays.

    Args:
        inputs: values [N, …].
        rate: share of elements that are zeroed.
        keys_N: see `keep_mask`.
    """
    mask = keep_mask(tuple(inputs.shape), rate, inputs.device, keys_N=keys_N)
    return inputs * (mask.to(inputs.dtype) / (1 - rate))


class _DropoutLayer(nn.Module):
    """A dropout layer, without effect in evaluation mode or at rate 0."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    @property
    def active(self) -> bool:
        """True in training mode at a rate above 0."""
        return self.training and self.rate > 0

    @override
    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class Dropout(_DropoutLayer):
    """Zero single elements of [N, …]."""

    def forward(self, inputs: Tensor, *, keys_N: Int[Tensor, " row"] | None = None) -> Tensor:
        """Return the inputs with dropout; `keys_N` as of `keep_mask`."""
        return apply_dropout(inputs, self.rate, keys_N=keys_N) if self.active else inputs


class VariationalDropout(_DropoutLayer):
    """Zero the same components at all positions of a sentence (Gal & Ghahramani 2016)."""

    def forward(self, inputs_BTD: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
        """Return the inputs with dropout."""
        if not self.active:
            return inputs_BTD
        mask_BD = keep_mask((len(inputs_BTD), inputs_BTD.shape[2]), self.rate, inputs_BTD.device)
        return inputs_BTD * (mask_BD[:, None].to(inputs_BTD.dtype) / (1 - self.rate))


class WordDropout(_DropoutLayer):
    """Replace pieces by the unknown piece at random, so that its vector is learned from text without unknown pieces."""

    def __init__(self, rate: float, *, unknown: int):
        super().__init__(rate)
        self.unknown = unknown

    def forward(self, pieces_BP: Int[Tensor, "batch piece"]) -> Int[Tensor, "batch piece"]:
        """Return the pieces, some of them replaced."""
        if not self.active:
            return pieces_BP
        mask_BP = keep_mask(tuple(pieces_BP.shape), self.rate, pieces_BP.device)
        return pieces_BP.masked_fill(~mask_BP, self.unknown)


class ReproducibleDropout(TorchFunctionMode):
    """Draw the masks of `torch.nn.functional.dropout` with `keep_mask` inside the `with` block.

    For models whose layers are not raykd's.
    """

    def __torch_function__(
        self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        if func is nn.functional.dropout:
            return _reproducible_dropout(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _reproducible_dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    if not training or not p:
        return input
    masks = _masks.get()
    if masks is None or len(input) == len(masks.rows_B):
        return apply_dropout(input, p)
    # DeBERTa drops components of its relative positions [positions, D], which belong to no sentence: the mask is the
    # same on every worker, and another one for each layer.
    masks.drawn += 1
    return apply_dropout(input, p, keys_N=torch.arange(len(input), device=input.device) + (masks.drawn << 32))


def _child_states(state: Tensor, count: int) -> Tensor:
    """Return `count` states per element of `state`."""
    return _splitmix64(state[..., None] + torch.arange(1, count + 1, device=state.device) * _STRIDE)


def _splitmix64(numbers: Tensor) -> Tensor:
    """Apply the finaliser of splitmix64; products wrap around at 64 bits."""
    numbers = (numbers ^ _logical_shift(numbers, 30)) * _FIRST
    numbers = (numbers ^ _logical_shift(numbers, 27)) * _SECOND
    return numbers ^ _logical_shift(numbers, 31)


def _logical_shift(numbers: Tensor, bits: int) -> Tensor:
    return (numbers >> bits) & (2 ** (64 - bits) - 1)
