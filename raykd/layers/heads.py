"""What turns an encoder's states into a distribution over tag sequences.

Shapes: B batch, T time, D size, Y tags. Orientation: `transitions[from, to]`. Row 0 of what is [2, Y] is for the first
word of a sentence, row 1 for the others.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.graph_viterbi import add_best_labels_to, add_viterbi_to
from raykd.structures import Chain
from raykd.structures.labelled_arcs import FORBIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value
    from raykd.structures import LegalTransitions


def full_precision(scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Scores in float32 at least: sums over a sentence lose too much in bf16 or fp16."""
    return scores if scores.dtype == torch.float64 else scores.float()


class Places(nn.Module):
    """Gives FORBIDDEN for the tags that a word may not have by its place in the sentence: `allowed` [2, Y]; None: any."""

    forbidden_2Y: Tensor | None

    def __init__(self, allowed: Bool[np.ndarray, "2 tag"] | None):
        super().__init__()
        # The tag set says it: it is no weight.
        forbidden_2Y = None if allowed is None else ~torch.from_numpy(allowed)
        self.register_buffer("forbidden_2Y", forbidden_2Y, persistent=False)

    def forward(self, emissions_BTY: Float[Tensor, "batch time tag"]) -> Float[Tensor, "batch time tag"]:
        if self.forbidden_2Y is None:
            return emissions_BTY
        later_T = torch.arange(emissions_BTY.shape[1], device=emissions_BTY.device).clamp(max=1)
        return emissions_BTY.masked_fill(self.forbidden_2Y[later_T], FORBIDDEN)

    def add_to(self, graph: Graph, emissions_BTY: Value) -> Value:
        if self.forbidden_2Y is None:
            return emissions_BTY
        later_T = graph.add("Min", graph.places(emissions_BTY, 1), graph.constant(1))
        forbidden_TY = graph.add("Gather", graph.constant(self.forbidden_2Y), later_T, axis=0)
        return graph.add("Where", forbidden_TY, graph.constant(FORBIDDEN), emissions_BTY)


class CRFHead(nn.Module):
    """Linear-chain CRF: emissions by a linear layer; transitions, start and end are parameters. `allowed` [2, Y]: the
    tags that the first word may have, and the others; None: any.
    """

    def __init__(self, inputs: int, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None):
        super().__init__()
        self.emissions, self.places = nn.Linear(inputs, tags), Places(allowed)
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        emissions_BTY = self.places(full_precision(self.emissions(states_BTD)))
        return Chain(emissions_BTY, lengths_B, self.transitions, self.start, self.end)

    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        """The best labels [B, T] (the best `legal` labelling), and the emissions."""
        emissions_BTY = self.places.add_to(graph, graph.linear(self.emissions, states_BTD))
        own = (self.transitions, self.start, self.end)
        parts = own if legal is None else (part + more for part, more in zip(own, legal.parts, strict=True))
        return add_viterbi_to(graph, emissions_BTY, lengths_B, *map(graph.constant, parts)), emissions_BTY


class MaxEntHead(nn.Module):
    """Each tag by itself: a softmax over the emissions, which is a chain without transitions. `allowed` as of
    `CRFHead`.
    """

    def __init__(self, inputs: int, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None):
        super().__init__()
        self.emissions, self.places = nn.Linear(inputs, tags), Places(allowed)

    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        return Chain(self.places(full_precision(self.emissions(states_BTD))), lengths_B)

    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        """The best labels [B, T] (the best `legal` labelling), and the emissions."""
        emissions_BTY = self.places.add_to(graph, graph.linear(self.emissions, states_BTD))
        return add_best_labels_to(graph, emissions_BTY, lengths_B, legal), emissions_BTY


DECODERS = MappingProxyType({"crf": CRFHead, "maxent": MaxEntHead})


def head_of(
    decoder: str, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None
) -> Callable[[int], nn.Module]:
    """What makes the head of a decoder over `tags` from the size of its inputs; `allowed` as of `CRFHead`."""
    return partial(DECODERS[decoder], tags=tags, allowed=allowed)
