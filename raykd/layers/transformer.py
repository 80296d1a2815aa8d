"""Small Transformer encoders over ragged sequences: the layers of BERT, with sinusoidal positions.

Shapes: B batch, T time, D size of the inputs, E size, H heads, F E / H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from raykd.layers.dropout import VariationalDropout
from raykd.layers.pieces import mean_of_sentence

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

LONGEST_WAVE = 10_000.0


class Transformer(nn.Module):
    """Stacked layers of BERT (Devlin et al. 2019, §3): post-norm, GELU. Outputs on padding have no meaning.

    Inputs of another size are projected to E. They are normalised, so that they weigh as much as the positions whatever
    their scale is, and the sines and cosines of Vaswani et al. (2017, §3.5) are added: no length is too long.

    Args:
        inputs: input size D.
        size: size E of the states, divisible by `heads`.
        layers: number of stacked layers.
        heads: attention heads of a layer.
        feed_forward: hidden size of the two linear layers that follow the attention.
        dropout: variational dropout of what attention and linear layers add.
    """

    def __init__(
        self, inputs: int, size: int, *, layers: int, heads: int, feed_forward: int, dropout: float = 0.0
    ):
        super().__init__()
        self.projection = nn.Identity() if inputs == size else nn.Linear(inputs, size)
        self.norm, self.positions = nn.LayerNorm(size), Positions(size)
        self.layers = nn.ModuleList(EncoderLayer(size, heads, feed_forward, dropout) for _ in range(layers))
        self.input_size, self.output_size, self.depth = inputs, size, layers

    def forward(
        self, inputs_BTD: Float[Tensor, "batch time input"], lengths_B: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time size"]:
        return self.states(inputs_BTD, lengths_B)[-1]

    def states(self, inputs_BTD: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """The inputs, and the outputs [B, T, E] of every layer in order."""
        time = inputs_BTD.shape[1]
        inside_BT = torch.arange(time, device=lengths_B.device) < lengths_B[:, None]
        below_BTE = self.norm(self.projection(inputs_BTD)) + self.positions(time)
        states = [inputs_BTD]
        for layer in self.layers:
            below_BTE = layer(below_BTE, inside_BT)
            states.append(below_BTE)
        return states

    def of_sentence(self, states_BTD: Tensor, lengths_B: Tensor) -> Float[Tensor, "batch 1 size"]:
        """The mean over the pieces."""
        return mean_of_sentence(states_BTD, lengths_B)


class EncoderLayer(nn.Module):
    """x' = norm(x + attention(x)), norm(x' + W₂ GELU(W₁ x')); nothing attends to padding."""

    def __init__(self, size: int, heads: int, feed_forward: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.queries_keys_values, self.output = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.inner, self.outer = nn.Linear(size, feed_forward), nn.Linear(feed_forward, size)
        self.attention_norm, self.norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention_dropout, self.dropout = VariationalDropout(dropout), VariationalDropout(dropout)

    def forward(
        self, states_BTE: Float[Tensor, "batch time size"], inside_BT: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time size"]:
        attended_BTE = self.attention_dropout(self.output(self._attention(states_BTE, inside_BT)))
        states_BTE = self.attention_norm(states_BTE + attended_BTE)
        added_BTE = self.dropout(self.outer(gelu(self.inner(states_BTE))))
        return self.norm(states_BTE + added_BTE)

    def _attention(self, states_BTE: Tensor, inside_BT: Tensor) -> Tensor:
        split_BT3HF = self.queries_keys_values(states_BTE).unflatten(-1, (3, self.heads, -1))
        queries_BHTF, keys_BHTF, values_BHTF = split_BT3HF.transpose(1, 3).unbind(2)
        mask_B11T = inside_BT[:, None, None]
        read_BHTF = scaled_dot_product_attention(queries_BHTF, keys_BHTF, values_BHTF, attn_mask=mask_B11T)
        return read_BHTF.transpose(1, 2).flatten(2)


class Positions(nn.Module):
    """sin(t / w^{2i/E}) in component 2i and the cosine in 2i + 1, w = 10,000 (Vaswani et al. 2017, §3.5)."""

    rates: Tensor

    def __init__(self, size: int):
        super().__init__()
        even = torch.arange(0, size, 2, dtype=torch.float64)
        rates = (LONGEST_WAVE ** (-even / size)).float()
        # Not stored: it has nothing to learn.
        self.register_buffer("rates", rates, persistent=False)
        self._size = size

    def forward(self, time: int) -> Float[Tensor, "time size"]:
        """The vectors of the first `time` positions."""
        steps_T1 = torch.arange(time, device=self.rates.device)[:, None]
        angles_TI = steps_T1 * self.rates
        return torch.stack((angles_TI.sin(), angles_TI.cos()), -1).flatten(1)[:, : self._size]
