"""Heads: the layers that turn an encoder's states into a distribution over tag sequences.

Shapes: B batch, T time, D size, Y tags. Orientation: `transitions[from, to]`. Row 0 of an array [2, Y] is for the first
word of a sentence, row 1 for all later words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from torch import nn
from typing_extensions import override

from raykd.layers.graph_viterbi import add_best_labels_to, add_viterbi_to
from raykd.structures import Chain
from raykd.structures.labelled_arcs import FORBIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value
    from raykd.structures import Distribution, LegalTransitions


def full_precision(scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return scores in float32 at least: sums over a sentence lose too much in bf16 or fp16.

    Args:
        scores: scores of any shape and floating-point type.
    """
    return scores if scores.dtype == torch.float64 else scores.float()


def append_one(vectors: Float[Tensor, "*shape size"]) -> Float[Tensor, "*shape larger"]:
    """Return vectors with a further component 1, so that a bilinear form of them has linear terms and a bias."""
    return torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1)


class Head(nn.Module, ABC):
    """A layer from the states of an encoder to a distribution over labels."""

    @abstractmethod
    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Distribution:
        """Return the distribution over labels.

        Args:
            states_BTD: states of the words.
            lengths_B: words of each sentence.
        """

    @abstractmethod
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        """Add the head with decoding to an ONNX graph.

        Args:
            graph: graph that the nodes are added to.
            states_BTD: name of the words' states.
            lengths_B: name of the sentences' lengths.
            legal: labellings among which the best one is sought; None: all of them.

        Returns:
            Names of the best labels [B, T], int64 and 0 on padding, and of the emission scores [B, T, Y].

        Raises:
            ExportError: the head has no ONNX form.
        """


class TagMask(nn.Module):
    """Set the score of forbidden tags to `FORBIDDEN`: some tags cannot stand at the first word, others only there.

    Args:
        allowed: bool [2, Y], the tags allowed at the first word and at later words; None: all of them.
    """

    forbidden_2Y: Tensor | None

    def __init__(self, allowed: Bool[np.ndarray, "2 tag"] | None):
        super().__init__()
        # Not stored with the weights: it follows from the tag set.
        forbidden_2Y = None if allowed is None else ~torch.from_numpy(allowed)
        self.register_buffer("forbidden_2Y", forbidden_2Y, persistent=False)

    def forward(self, emissions_BTY: Float[Tensor, "batch time tag"]) -> Float[Tensor, "batch time tag"]:
        """Return the emissions with `FORBIDDEN` in place of the scores of forbidden tags."""
        if self.forbidden_2Y is None:
            return emissions_BTY
        row_T = torch.arange(emissions_BTY.shape[1], device=emissions_BTY.device).clamp(max=1)
        return emissions_BTY.masked_fill(self.forbidden_2Y[row_T], FORBIDDEN)

    def add_to(self, graph: Graph, emissions_BTY: Value) -> Value:
        """Add the mask to an ONNX graph and return the name of the output."""
        if self.forbidden_2Y is None:
            return emissions_BTY
        row_T = graph.add("Min", graph.positions(emissions_BTY, 1), graph.constant(1))
        forbidden_TY = graph.add("Gather", graph.constant(self.forbidden_2Y), row_T, axis=0)
        return graph.add("Where", forbidden_TY, graph.constant(FORBIDDEN), emissions_BTY)


class CRFHead(Head):
    """Linear-chain CRF: emissions by a linear layer; transitions, start and end scores are parameters.

    Args:
        inputs: components D of a word's state.
        tags: number of tags Y.
        allowed: bool [2, Y], the tags allowed at the first word and at later words; None: all of them.
    """

    def __init__(self, inputs: int, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None):
        super().__init__()
        self.emissions, self.tag_mask = nn.Linear(inputs, tags), TagMask(allowed)
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))

    @override
    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        emissions_BTY = self.tag_mask(full_precision(self.emissions(states_BTD)))
        return Chain(emissions_BTY, lengths_B, self.transitions, self.start, self.end)

    @override
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        emissions_BTY = self.tag_mask.add_to(graph, graph.linear(self.emissions, states_BTD))
        learned = (self.transitions, self.start, self.end)
        parts = (
            learned
            if legal is None
            else (part + penalty for part, penalty in zip(learned, legal.parts, strict=True))
        )
        return add_viterbi_to(graph, emissions_BTY, lengths_B, *map(graph.constant, parts)), emissions_BTY


class MaxEntHead(Head):
    """A softmax over the emissions of single words: a chain without transitions.

    Args:
        inputs: components D of a word's state.
        tags: number of tags Y.
        allowed: bool [2, Y], the tags allowed at the first word and at later words; None: all of them.
    """

    def __init__(self, inputs: int, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None):
        super().__init__()
        self.emissions, self.tag_mask = nn.Linear(inputs, tags), TagMask(allowed)

    @override
    def forward(
        self, states_BTD: Float[Tensor, "batch time size"], lengths_B: Int[Tensor, " batch"]
    ) -> Chain:
        return Chain(self.tag_mask(full_precision(self.emissions(states_BTD))), lengths_B)

    @override
    def add_to(
        self, graph: Graph, states_BTD: Value, lengths_B: Value, legal: LegalTransitions | None = None
    ) -> tuple[Value, Value]:
        emissions_BTY = self.tag_mask.add_to(graph, graph.linear(self.emissions, states_BTD))
        return add_best_labels_to(graph, emissions_BTY, lengths_B, legal), emissions_BTY


DECODERS = MappingProxyType({"crf": CRFHead, "maxent": MaxEntHead})


def head_builder(
    decoder: str, tags: int, allowed: Bool[np.ndarray, "2 tag"] | None = None
) -> Callable[[int], Head]:
    """Return a builder of a decoder's head. The builder takes the size of the states.

    Args:
        decoder: key of `DECODERS`.
        tags: number of tags Y.
        allowed: bool [2, Y], the tags allowed at the first word and at later words; None: all of them.
    """
    return partial(DECODERS[decoder], tags=tags, allowed=allowed)
