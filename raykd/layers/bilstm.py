"""Bidirectional LSTM over ragged sequences.

Shapes: B batch, T time, D input size, H hidden size per direction.

Each direction runs separately over the padded batch, the backward one on sequences reversed within their lengths.
oneDNN does this 1.3–2 times faster than a packed sequence (one thread, batches bucketed by length), and a GPU need
not wait until the CPU has read the lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.layers.dropout import VariationalDropout
from raykd.layers.piece_vectors import add_last_states_to, last_states
from raykd.layers.sequence_encoder import SequenceEncoder
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value


def reversal(lengths_B: Int[Tensor, " batch"], steps: int) -> Int[Tensor, "batch time"]:
    """Return the index that reverses sequences within their lengths; padding stays. Applied twice it changes nothing.

    Args:
        lengths_B: lengths of the sequences.
        steps: steps T of the padded batch.
    """
    steps_T = torch.arange(steps, device=lengths_B.device)
    return torch.where(steps_T < lengths_B[:, None], lengths_B[:, None] - 1 - steps_T, steps_T)


class BiLSTM(SequenceEncoder):
    """Stacked bidirectional LSTM; outputs are zero on padding.

    Args:
        inputs: input size D.
        hidden: hidden size H of each direction; the output has 2·H components, forward ones first.
        layers: number of stacked layers.
        dropout: variational dropout between layers.
    """

    def __init__(self, inputs: int, hidden: int, *, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.LSTM(inputs if layer == 0 else 2 * hidden, hidden, batch_first=True, bidirectional=True)
            for layer in range(layers)
        )
        self.layer_dropout = VariationalDropout(dropout)
        self.input_size, self.output_size, self.depth = inputs, 2 * hidden, layers

    def forward(
        self, inputs_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time output"]:
        """Return the outputs [B, T, 2H] of the last layer, zero on padding.

        Args:
            inputs_BTD: input vectors.
            lengths_B: lengths of the sequences.
        """
        return self.states(inputs_BTD, lengths_B)[-1]

    @override
    def states(self, inputs_BTD: Tensor, lengths_B: Tensor) -> list[Tensor]:
        states = [inputs_BTD]
        for index, layer in enumerate(self.layers):
            states.append(_run(layer, self.layer_dropout(states[-1]) if index else states[-1], lengths_B))
        return states

    @override
    def sentence_state(self, states_BTD: Tensor, lengths_B: Tensor) -> Float[Tensor, "batch 1 output"]:
        return last_states(states_BTD, lengths_B)

    @override
    def add_to(self, graph: Graph, inputs_BTD: Value, lengths_B: Value) -> Value:
        for layer in self.layers:
            outputs_T2BH, _ = _add_layer_to(graph, layer, inputs_BTD, lengths_B)
            outputs_BT2H = graph.add("Transpose", outputs_T2BH, perm=[2, 0, 1, 3])
            inputs_BTD = graph.reshape(outputs_BT2H, 0, 0, self.output_size)
        return inputs_BTD

    def add_ends_to(self, graph: Graph, inputs_BTD: Value, lengths_B: Value) -> Value:
        """Add a BiLSTM of one layer to a graph and return the name of the last states [B, 2H] only.

        Args:
            graph: graph that the nodes are added to.
            inputs_BTD: name of the input vectors.
            lengths_B: name of the sequences' lengths.
        """
        (layer,) = self.layers
        _, ends_2BH = _add_layer_to(graph, layer, inputs_BTD, lengths_B)
        return graph.reshape(graph.add("Transpose", ends_2BH, perm=[1, 0, 2]), -1, self.output_size)

    @override
    def add_sentence_state_to(self, graph: Graph, states_BTD: Value, lengths_B: Value) -> Value:
        return add_last_states_to(graph, states_BTD, lengths_B)


def _run(lstm: nn.Module, inputs_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    if inputs_BTD.device.type != "cpu":
        return _run_by_direction(lstm, inputs_BTD, lengths_B)
    # oneDNN trains an LSTM in bf16 only on processors with AVX-512, and PyTorch has no other kernel for it.
    if torch.is_autocast_enabled("cpu") and "AVX512" not in torch.backends.cpu.get_cpu_capability():
        with torch.autocast("cpu", enabled=False):
            return _run(lstm, inputs_BTD.float(), lengths_B)
    if int(lengths_B.min()) == inputs_BTD.shape[1]:
        return lstm(inputs_BTD)[0]  # without padding both directions can run in one call
    return _run_by_direction(lstm, inputs_BTD, lengths_B)


def _run_by_direction(lstm: nn.Module, inputs_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    steps = inputs_BTD.shape[1]
    rows_BT = torch.arange(len(inputs_BTD), device=lengths_B.device)[:, None]
    places_N = (rows_BT * steps + reversal(lengths_B, steps)).flatten()
    backward_BTH = _one_direction(lstm, _gather_rows(inputs_BTD, places_N), suffix="_reverse")
    outputs_BTD = torch.cat(
        [_one_direction(lstm, inputs_BTD, suffix=""), _gather_rows(backward_BTH, places_N)], dim=-1
    )
    return outputs_BTD.masked_fill(~length_mask(lengths_B, steps)[:, :, None], 0.0)


def _gather_rows(inputs_BTD: Tensor, places_N: Tensor) -> Tensor:
    # Copies whole rows: an index for each of their elements took a tenth of the LSTM's time.
    return inputs_BTD.flatten(0, 1).index_select(0, places_N).view_as(inputs_BTD)


def _one_direction(lstm: nn.Module, inputs_BTD: Tensor, *, suffix: str) -> Tensor:
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = [getattr(lstm, name + suffix) for name in names]
    start_1BH = inputs_BTD.new_zeros(1, len(inputs_BTD), weights[1].shape[1])
    settings = {"num_layers": 1, "dropout": 0.0, "bidirectional": False, "batch_first": True}
    return torch.lstm(
        inputs_BTD, (start_1BH, start_1BH), weights, has_biases=True, train=lstm.training, **settings
    )[0]


def _add_layer_to(graph: Graph, lstm: nn.Module, inputs_BTD: Value, lengths_B: Value) -> list[Value]:
    """Return the outputs [T, 2, B, H] of a layer, zero on padding, and the last one of each direction [2, B, H]."""
    inputs_TBD = graph.add("Transpose", inputs_BTD, perm=[1, 0, 2])
    weights = [_stacked_directions(lstm, f"weight_{part}") for part in ("ih", "hh")]
    biases = torch.cat([_stacked_directions(lstm, "bias_ih"), _stacked_directions(lstm, "bias_hh")], 1)
    inputs = (
        inputs_TBD,
        *map(graph.constant, weights),
        graph.constant(biases),
        graph.cast(lengths_B, "int32"),
    )
    hidden = weights[1].shape[-1]
    return graph.add_with_outputs("LSTM", *inputs, outputs=2, direction="bidirectional", hidden_size=hidden)


def _stacked_directions(lstm: nn.Module, name: str) -> Tensor:
    """Return a weight of both directions, in ONNX's order of the gates: input, output, forget, cell."""
    directions = [getattr(lstm, f"{name}_l0{suffix}").detach().chunk(4) for suffix in ("", "_reverse")]
    return torch.stack([torch.cat([gates[0], gates[3], gates[1], gates[2]]) for gates in directions])
