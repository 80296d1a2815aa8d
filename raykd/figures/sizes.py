"""Sizes of a model, each a function of its shape.

To add one, write its function here, and an entry with it into `COSTS` of `table.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """An untrained model, or a part of one that other models may have too."""

    weights: Sequence[Tensor]
    """All that it computes with."""
    embeddings: Sequence[Tensor] = ()
    """Its vectors of pieces, [V, D]; several of an ensemble."""
    pieces: int = 0
    """Of its vocabulary. This and the next two are 0 where pieces are no checkpoint's."""
    all_pieces: int = 0
    """Of the vocabulary that its own was pruned from; 0: not known."""
    text_pieces: int = 0
    """Those of its vocabulary that training and transfer text have; 0: not known."""
    export: bytes = b""
    """In float32; empty where it has none."""

    def change(self, pieces: int) -> int | None:
        """How many numbers more, or below 0 fewer, it has with so many pieces; None where that is not known."""
        if pieces == self.pieces:
            return 0
        return sum((pieces - len(each)) * each.shape[1] for each in self.embeddings) if pieces else None

    @property
    def text_change(self) -> int:
        """The same with the pieces of its text; 0 where they are not known."""
        return self.change(self.text_pieces) or 0


def parameters(shape: Shape) -> int:
    """All numbers that are trained or read."""
    return sum(each.numel() for each in shape.weights)


def parameters_unpruned(shape: Shape) -> int | None:
    """With every piece of a checkpoint's vocabulary."""
    change = shape.change(shape.all_pieces)
    return None if change is None else parameters(shape) + change


def parameters_pruned(shape: Shape) -> int | None:
    """With the pieces alone that training and transfer text have."""
    change = shape.change(shape.text_pieces)
    return None if change is None else parameters(shape) + change


def weight_bytes(shape: Shape) -> int:
    """Bytes of the weights in PyTorch, with the pieces of its text."""
    return sum(each.numel() * each.element_size() for each in shape.weights) + 4 * shape.text_change


def export_bytes(shape: Shape) -> int | None:
    """Bytes of the export in float32, with the pieces of its text."""
    return len(shape.export) + 4 * shape.text_change if shape.export else None
