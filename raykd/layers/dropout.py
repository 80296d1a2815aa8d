"""Dropout for sentences: one mask for all tokens of a sentence, and whole words at a time.

Shapes: B batch, P pieces, T time (words), D size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class VariationalDropout(nn.Module):
    """Zeroes the same components at every position of a sentence (Gal & Ghahramani 2016).

    Does nothing in evaluation mode or at rate 0.
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, inputs_BTD: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
        if not self.training or self.rate == 0:
            return inputs_BTD
        kept_B1D = torch.empty_like(inputs_BTD[:, :1]).bernoulli_(1 - self.rate)
        return inputs_BTD * (kept_B1D / (1 - self.rate))

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class WordDropout(nn.Module):
    """Replaces pieces by the unknown one at random: so the unknown piece is learned from text that has none.

    Does nothing in evaluation mode or at rate 0.
    """

    def __init__(self, rate: float, *, unknown: int):
        super().__init__()
        self.rate, self.unknown = rate, unknown

    def forward(self, pieces_BP: Int[Tensor, "batch piece"]) -> Int[Tensor, "batch piece"]:
        if not self.training or self.rate == 0:
            return pieces_BP
        dropped_BP = torch.rand(pieces_BP.shape, device=pieces_BP.device) < self.rate
        return pieces_BP.masked_fill(dropped_BP, self.unknown)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
