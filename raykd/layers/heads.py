"""What turns an encoder's states into a distribution over tag sequences.

Shapes: B batch, T time, D size, Y tags. Orientation: `transitions[from, to]`.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.graph_viterbi import add_viterbi_to
from raykd.structures import Chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value


def full_precision(scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Scores in float32 at least: sums over a sentence lose too much in bf16 or fp16."""
    return scores if scores.dtype == torch.float64 else scores.float()


class CRFHead(nn.Module):
    """Linear-chain CRF: emissions by a linear layer; transitions, start and end are parameters."""

    def __init__(self, inputs: int, tags: int):
        super().__init__()
        self.emissions = nn.Linear(inputs, tags)
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        emissions_BTY = full_precision(self.emissions(states_BTD))
        return Chain(emissions_BTY, lengths_B, self.transitions, self.start, self.end)

    def add_to(self, graph: Graph, states_BTD: Value, lengths_B: Value) -> tuple[Value, Value]:
        """The best labels [B, T], and the emissions."""
        emissions_BTY = graph.linear(self.emissions, states_BTD)
        parts = (graph.constant(part) for part in (self.transitions, self.start, self.end))
        return add_viterbi_to(graph, emissions_BTY, lengths_B, *parts), emissions_BTY


class MaxEntHead(nn.Module):
    """Each tag by itself: a softmax over the emissions, which is a chain without transitions."""

    def __init__(self, inputs: int, tags: int):
        super().__init__()
        self.emissions = nn.Linear(inputs, tags)

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        return Chain(full_precision(self.emissions(states_BTD)), lengths_B)

    def add_to(self, graph: Graph, states_BTD: Value, lengths_B: Value) -> tuple[Value, Value]:
        """The best labels [B, T], and the emissions."""
        emissions_BTY = graph.linear(self.emissions, states_BTD)
        best_BT = graph.add("ArgMax", emissions_BTY, axis=2, keepdims=0)
        inside_BT = graph.inside(graph.places(emissions_BTY, 1), lengths_B)
        return graph.add("Where", inside_BT, best_BT, graph.constant(0)), emissions_BTY


DECODERS = MappingProxyType({"crf": CRFHead, "maxent": MaxEntHead})


def head_of(decoder: str, tags: int) -> Callable[[int], nn.Module]:
    """What makes the head of a decoder over `tags` from the size of its inputs."""
    return partial(DECODERS[decoder], tags=tags)
