"""Random chains for Hypothesis, and the two kinds of code that every operation is tested with.

Shapes: B batch, T time, Y tags. Hypothesis draws shapes, magnitudes and which parts exist; a seed draws the numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from raykd.structures import Chain, engine

settings.register_profile("structures", deadline=None, max_examples=20, derandomize=True)
SETTINGS = settings.get_profile("structures")

CODES = ("kernels", "torch")
DTYPES = (torch.float32, torch.float64)
MINUS_INFINITY = float("-inf")


@contextmanager
def using(code: str) -> Iterator[None]:
    """Run the compiled kernels, or plain PyTorch as on a machine that has none."""
    original = engine.kernels
    if code == "torch":
        engine.kernels = lambda chain, operation="": None
    try:
        yield
        assert not engine._broken, "the compiled kernels have failed, so this tested plain PyTorch"
    finally:
        engine.kernels = original


@st.composite
def chains(
    draw,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    magnitudes: tuple[float, ...] = (0.1, 1.0, 5.0, 50.0),
    tags: int = 4,
    time: int = 5,
    forbid: bool = True,
    transitions: bool | None = None,
) -> Chain:
    """A ragged chain small enough to enumerate; with `forbid`, some transitions, starts and ends are −∞."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    B, T, Y = draw(st.integers(1, 4)), draw(st.integers(1, time)), draw(st.integers(1, tags))
    dtype, scale = draw(st.sampled_from(dtypes)), draw(st.sampled_from(magnitudes))
    lengths = torch.randint(1, T + 1, (B,), generator=generator)

    def part(*shape: int, forbidden: float = 0.0) -> Tensor:
        values = torch.randn(*shape, generator=generator, dtype=torch.float64).clamp(-3, 3) * scale
        blocked = torch.rand(*shape, generator=generator) < forbidden
        return values.masked_fill(blocked, MINUS_INFINITY).to(dtype)

    def own_or_shared(*shape: int) -> Tensor:
        return part(*((B,) if draw(st.booleans()) else ()), *shape, forbidden=0.25 * forbid)

    present = [draw(st.booleans()) if transitions is None else transitions]
    present += [draw(st.booleans()) for _ in range(2)]
    parts = [
        own_or_shared(*shape) if p else None for p, shape in zip(present, ((Y, Y), (Y,), (Y,)), strict=True)
    ]
    emissions = part(B, T, Y)
    chain = Chain(emissions, lengths, *parts)
    emissions[~chain.mask_BT] = float("nan")  # padding must never be read
    return chain


def like(chain: Chain, *, seed: int = 0) -> Chain:
    """A new chain over the same sentences, nothing forbidden, with transitions, start and end."""
    generator = torch.Generator().manual_seed(seed)

    def part(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(chain.dtype)

    B, T, Y = chain.emissions_BTY.shape
    return Chain(part(B, T, Y), chain.lengths_B, part(Y, Y), part(Y), part(Y))


def padded(chain: Chain, extra: int) -> Chain:
    """The same sentences in a longer batch, garbage on the padding."""
    tail = torch.full((chain.batch, extra, chain.tags), float("nan"), dtype=chain.dtype)
    return replace(chain, emissions_BTY=torch.cat([chain.emissions_BTY, tail], 1))


def tolerance(chain: Chain) -> float:
    """Absolute error allowed of a probability."""
    return 2e-5 if chain.dtype == torch.float32 else 1e-10


def close(actual: Tensor, expected: Tensor, chain: Chain, *, size: float = 1.0) -> None:
    """Equal to the chain's precision, relative to `size`, the largest input; infinities must agree."""
    torch.testing.assert_close(
        actual.double(), expected.double(), atol=tolerance(chain) * max(size, 1.0), rtol=tolerance(chain) / 10
    )


def size_of(chain: Chain) -> float:
    """An upper bound on the score of a path."""
    largest = 0.0
    for part in chain.scores():
        usable = part.detach()[part.isfinite()]
        largest = max(largest, float(usable.abs().max()) if usable.numel() else 0.0)
    return largest * chain.time
