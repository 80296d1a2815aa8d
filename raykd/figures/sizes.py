"""Sizes of a model, each a function of its shape.

To add a size, write its function here, and an entry with it into `COSTS` of `table.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """An untrained model, or a part of one that other models may have too.

    Attributes:
        weights: All tensors that the model computes with.
        embeddings: Its tables of piece vectors, [V, D]; an ensemble has several.
        pieces: Pieces of its vocabulary. This and the next two are 0 if the pieces are not a checkpoint's.
        all_pieces: Pieces of the vocabulary before pruning; 0 if unknown.
        text_pieces: Pieces of the vocabulary that occur in training and transfer text; 0 if unknown.
        export: The export in float32; empty if there is none.
    """

    weights: Sequence[Tensor]
    embeddings: Sequence[Tensor] = ()
    pieces: int = 0
    all_pieces: int = 0
    text_pieces: int = 0
    export: bytes = b""

    def change(self, pieces: int) -> int | None:
        """Return the difference in the number of parameters if the vocabulary had `pieces` pieces.

        Args:
            pieces: Pieces of the other vocabulary; 0 if unknown.

        Returns:
            Parameters with the other vocabulary less those of the model; None if unknown.
        """
        if pieces == self.pieces:
            return 0
        return sum((pieces - len(table)) * table.shape[1] for table in self.embeddings) if pieces else None

    @property
    def text_change(self) -> int:
        """The change in the number of parameters with only the text's pieces; 0 if they are unknown."""
        return self.change(self.text_pieces) or 0


def parameters(shape: Shape) -> int:
    """Return the number of all parameters, trained or frozen."""
    return sum(tensor.numel() for tensor in shape.weights)


def parameters_unpruned(shape: Shape) -> int | None:
    """Return the number of parameters with every piece of the checkpoint's vocabulary; None if unknown."""
    change = shape.change(shape.all_pieces)
    return None if change is None else parameters(shape) + change


def parameters_pruned(shape: Shape) -> int | None:
    """Return the number of parameters with only the pieces of training and transfer text; None if unknown."""
    change = shape.change(shape.text_pieces)
    return None if change is None else parameters(shape) + change


def weight_bytes(shape: Shape) -> int:
    """Return the bytes of the weights in PyTorch, with only the pieces of its text."""
    return sum(tensor.numel() * tensor.element_size() for tensor in shape.weights) + 4 * shape.text_change


def export_bytes(shape: Shape) -> int | None:
    """Return the bytes of the export in float32, with only the pieces of its text; None without an export."""
    return len(shape.export) + 4 * shape.text_change if shape.export else None
