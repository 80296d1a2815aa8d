"""Vectors of pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from raykd.layers.dropout import WordDropout

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from raykd.layers.graph import Graph, Value


class TokenEmbedding(nn.Module):
    """One trained vector per piece, with word dropout before it.

    Weights are drawn uniformly from ±√(3 / size), which gives a vector length 1 on average (Ma & Hovy 2016, §4.1).
    Padding has a vector like any piece; layers above ignore positions beyond the lengths.

    Args:
        pieces: number of pieces.
        size: components of a vector.
        word_dropout: share of pieces replaced by piece `unknown` in training.
        unknown: id of the unknown piece.
    """

    def __init__(self, pieces: int, size: int, *, word_dropout: float = 0.0, unknown: int = 1):
        super().__init__()
        self.words = WordDropout(word_dropout, unknown=unknown)
        self.table = nn.Embedding(pieces, size)
        bound = (3 / size) ** 0.5
        nn.init.uniform_(self.table.weight, -bound, bound)

    def forward(self, pieces_BP: Int[Tensor, "batch piece"]) -> Float[Tensor, "batch piece size"]:
        """Return the vectors of the pieces."""
        return self.table(self.words(pieces_BP))

    def add_to(self, graph: Graph, pieces: Value) -> Value:
        """Add the embedding to a graph and return the name of the vectors of `pieces`, in any shape."""
        return graph.add("Gather", graph.constant(self.table.weight), pieces)
