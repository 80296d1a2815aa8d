"""Small Transformer encoders over ragged sequences: the layers of BERT, with sinusoidal positions.

Shapes: B batch, T time, D size of the inputs, E size of the states, H heads, F = E / H size of a head, I = E / 2 waves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention
from typing_extensions import override

from raykd.layers.dropout import VariationalDropout
from raykd.layers.piece_vectors import add_mean_of_sentence_to, mean_of_sentence
from raykd.layers.sequence_encoder import SequenceEncoder
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value

LONGEST_WAVE = 10_000.0


class Transformer(SequenceEncoder):
    """Stacked layers of BERT (Devlin et al. 2019, §3): post-norm, GELU. Outputs on padding have no meaning.

    Inputs of another size are projected to E and normalised, so that they weigh as much as the positions whatever their
    scale is. The sines and cosines of Vaswani et al. (2017, §3.5) are added as positions, so no length is too long. The
    state of a sentence is the mean over its pieces.

    Args:
        inputs: input size D.
        size: size E of the states, divisible by `heads`.
        layers: number of stacked layers.
        heads: attention heads of a layer.
        feed_forward: hidden size of the two linear layers that follow the attention.
        dropout: variational dropout of the outputs of attention and linear layers.
    """

    def __init__(
        self, inputs: int, size: int, *, layers: int, heads: int, feed_forward: int, dropout: float = 0.0
    ):
        super().__init__()
        self.projection = nn.Identity() if inputs == size else nn.Linear(inputs, size)
        self.norm, self.positions = nn.LayerNorm(size), Positions(size)
        self.layers: Any = nn.ModuleList(
            EncoderLayer(size, heads, feed_forward, dropout) for _ in range(layers)
        )
        self.input_size, self.output_size, self.depth = inputs, size, layers

    def forward(
        self, inputs_BTD: Float[Tensor, "batch time input"], lengths_B: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time size"]:
        """Return the outputs [B, T, E] of the last layer; those on padding have no meaning.

        Args:
            inputs_BTD: input vectors.
            lengths_B: lengths of the sequences.
        """
        return self.states(inputs_BTD, lengths_B)[-1]

    @override
    def states(self, inputs_BTD: Tensor, lengths_B: Tensor) -> list[Tensor]:
        time = inputs_BTD.shape[1]
        inside_BT = length_mask(lengths_B, time)
        below_BTE = self.norm(self.projection(inputs_BTD)) + self.positions(time)
        states = [inputs_BTD]
        for layer in self.layers:
            below_BTE = layer(below_BTE, inside_BT)
            states.append(below_BTE)
        return states

    @override
    def sentence_state(self, states_BTD: Tensor, lengths_B: Tensor) -> Float[Tensor, "batch 1 size"]:
        return mean_of_sentence(states_BTD, lengths_B)

    @override
    def add_to(self, graph: Graph, inputs_BTD: Value, lengths_B: Value) -> Value:
        positions_T = graph.positions(inputs_BTD, 1)
        projection = self.projection
        inputs_BTE = graph.linear(projection, inputs_BTD) if isinstance(projection, nn.Linear) else inputs_BTD
        states_BTE = graph.add(
            "Add", graph.norm(self.norm, inputs_BTE), self.positions.add_to(graph, positions_T)
        )
        inside_B11T = graph.unsqueeze(graph.length_mask(positions_T, lengths_B), 1, 2)
        mask_B11T = graph.add("Where", inside_B11T, graph.constant(0.0), graph.constant(float("-inf")))
        for layer in self.layers:
            states_BTE = layer.add_to(graph, states_BTE, mask_B11T)
        return states_BTE

    @override
    def add_sentence_state_to(self, graph: Graph, states_BTD: Value, lengths_B: Value) -> Value:
        return add_mean_of_sentence_to(graph, states_BTD, lengths_B)


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
        """Return the outputs of the layer."""
        attended_BTE = self.attention_dropout(self.output(self._attention(states_BTE, inside_BT)))
        states_BTE = self.attention_norm(states_BTE + attended_BTE)
        added_BTE = self.dropout(self.outer(gelu(self.inner(states_BTE))))
        return self.norm(states_BTE + added_BTE)

    def add_to(self, graph: Graph, states_BTE: Value, mask_B11T: Value) -> Value:
        """Add the layer to a graph and return the name of the outputs [B, T, E]."""
        attended_BTE = graph.linear(self.output, self._add_attention_to(graph, states_BTE, mask_B11T))
        states_BTE = graph.norm(self.attention_norm, graph.add("Add", states_BTE, attended_BTE))
        inner_BTD = graph.add("Gelu", graph.linear(self.inner, states_BTE))
        return graph.norm(self.norm, graph.add("Add", states_BTE, graph.linear(self.outer, inner_BTD)))

    def _attention(self, states_BTE: Tensor, inside_BT: Tensor) -> Tensor:
        split_BT3HF = self.queries_keys_values(states_BTE).unflatten(-1, (3, self.heads, -1))
        queries_BHTF, keys_BHTF, values_BHTF = split_BT3HF.transpose(1, 3).unbind(2)
        mask_B11T = inside_BT[:, None, None]
        read_BHTF = scaled_dot_product_attention(queries_BHTF, keys_BHTF, values_BHTF, attn_mask=mask_B11T)
        return read_BHTF.transpose(1, 2).flatten(2)

    def _add_attention_to(self, graph: Graph, states_BTE: Value, mask_B11T: Value) -> Value:
        """Add the attention; the mask is 0 within a sentence and −∞ on padding."""
        size = self.output.in_features
        whole_BT3E = graph.linear(self.queries_keys_values, states_BTE)
        split_BTHF = [
            graph.reshape(part, 0, 0, self.heads, size // self.heads)
            for part in graph.add_with_outputs("Split", whole_BT3E, outputs=3, axis=2, num_outputs=3)
        ]
        queries_BHTF, values_BHTF = (graph.add("Transpose", split_BTHF[i], perm=[0, 2, 1, 3]) for i in (0, 2))
        keys_BHFT = graph.add("Transpose", split_BTHF[1], perm=[0, 2, 3, 1])
        scaled_BHTF = graph.add("Mul", queries_BHTF, graph.constant((size // self.heads) ** -0.5))
        scores_BHTT = graph.add("Add", graph.add("MatMul", scaled_BHTF, keys_BHFT), mask_B11T)
        read_BHTF = graph.add("MatMul", graph.add("Softmax", scores_BHTT, axis=3), values_BHTF)
        return graph.reshape(graph.add("Transpose", read_BHTF, perm=[0, 2, 1, 3]), 0, 0, size)


class Positions(nn.Module):
    """sin(t / w^{2i/E}) in component 2i and the cosine in 2i + 1, w = 10,000 (Vaswani et al. 2017, §3.5)."""

    rates: Tensor

    def __init__(self, size: int):
        super().__init__()
        even = torch.arange(0, size, 2, dtype=torch.float64)
        rates = (LONGEST_WAVE ** (-even / size)).float()
        # Not stored with the weights: these are constants.
        self.register_buffer("rates", rates, persistent=False)
        self._size = size

    def forward(self, time: int) -> Float[Tensor, "time size"]:
        """Return the vectors of the first `time` positions."""
        steps_T1 = torch.arange(time, device=self.rates.device)[:, None]
        angles_TI = steps_T1 * self.rates
        return torch.stack((angles_TI.sin(), angles_TI.cos()), -1).flatten(1)[:, : self._size]

    def add_to(self, graph: Graph, places_T: Value) -> Value:
        """Add the vectors [T, E] of positions to a graph and return their name."""
        steps_T1 = graph.unsqueeze(graph.cast(places_T, "float32"), 1)
        angles_TI = graph.add("Mul", steps_T1, graph.constant(self.rates))
        waves = (graph.unsqueeze(graph.add(wave, angles_TI), 2) for wave in ("Sin", "Cos"))
        both_TE = graph.reshape(graph.add("Concat", *waves, axis=2), 0, -1)
        return graph.add("Slice", both_TE, *(graph.constant([bound]) for bound in (0, self._size, 1)))
