"""Rows of unequal length in one flat array: encoded text and labels are such, and are padded here.

Shapes: N rows, B rows of a batch, W width of the batch (its longest row).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from jaxtyping import Integer


def offsets_from_lengths(lengths: np.ndarray) -> np.ndarray:
    """The int64 offsets [N + 1] of rows of these lengths [N]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Ragged:
    """N rows of unequal length: row i is `values[offsets[i] : offsets[i + 1]]`.

    Raises ValueError when the offsets do not cover the values from 0 to their end in ascending order.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self):
        covers = len(self.offsets) > 0 and self.offsets[0] == 0 and self.offsets[-1] == len(self.values)
        if not covers or np.any(np.diff(self.offsets) < 0):
            raise ValueError(f"the offsets must ascend from 0 to {len(self.values)}, the number of values")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of every row, int64 [N]."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> Ragged:
        """The rows at `indices`, in that order; a row may be taken more than once."""
        starts, lengths = self.spans(indices)
        offsets = offsets_from_lengths(lengths)
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.values[positions], offsets)

    def pad(
        self, indices: np.ndarray, *, fill: int = 0
    ) -> tuple[Integer[np.ndarray, "*rows width"], Integer[np.ndarray, "*rows"]]:
        """The rows at `indices` (any shape), padded with `fill`: int64 [*rows, W], and their lengths int64 [*rows].
        W is the longest row taken, 0 when there is none.
        """
        return RaggedBlocks((self,)).pad(indices, fill=fill)

    def spans(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows at `indices` begin in the values, and their lengths."""
        indices = np.asarray(indices, dtype=np.int64)
        starts = self.offsets[indices]
        return starts, self.offsets[indices + 1] - starts


@dataclass(frozen=True)
class RaggedBlocks:
    """Rows of unequal length in several blocks, one after the other; each may be mapped from a file of its own."""

    blocks: tuple[Ragged, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> np.ndarray:
        """The first row of each block, and the number of all rows, int64 [blocks + 1]."""
        return offsets_from_lengths(np.fromiter(map(len, self.blocks), np.int64, len(self.blocks)))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of every row, int64 [N]."""
        return np.concatenate([np.zeros(0, np.int64), *(np.diff(block.offsets) for block in self.blocks)])

    def block_of(self, rows: np.ndarray) -> np.ndarray:
        """The block that has each row, int64."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def pad(
        self, indices: np.ndarray, *, fill: int = 0
    ) -> tuple[Integer[np.ndarray, "*rows width"], Integer[np.ndarray, "*rows"]]:
        """As `Ragged.padded`."""
        rows = np.asarray(indices, dtype=np.int64)
        own, starts, lengths = self.block_of(rows), np.zeros_like(rows), np.zeros_like(rows)
        present = np.unique(own).tolist()
        for block in present:
            mine = own == block
            starts[mine], lengths[mine] = self.blocks[block].spans(rows[mine] - self.starts[block])
        columns = np.arange(lengths.max(initial=0))
        inside = columns < lengths[..., None]
        padded = np.full(inside.shape, fill, dtype=np.int64)
        for block in present:
            mine = inside & (own == block)[..., None]
            padded[mine] = self.blocks[block].values[(starts[..., None] + columns)[mine]]
        return padded, lengths


def table_column(sentences: pa.Table | Iterable[Sequence[str]], name: str) -> pa.ChunkedArray | None:
    """A column of an Arrow table; None when the sentences are not in a table."""
    if not isinstance(sentences, pa.Table):
        return None
    table: pa.Table = sentences
    return table.column(name)


def flatten_lists(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, np.ndarray]:
    """An Arrow list column as its flat values and int64 offsets [N + 1] (right for sliced columns too)."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        raise ValueError(f"{column.null_count} of {len(column)} rows are null where every row must be a list")
    return column.flatten(), offsets_from_lengths(
        pc.call_function("list_value_length", [column]).to_numpy(zero_copy_only=False)
    )
