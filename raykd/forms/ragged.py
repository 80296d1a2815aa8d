"""Rows of unequal length in one flat array, for encoded text and labels, and their padding.

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
    """Return the int64 offsets [N + 1] of rows of the given lengths [N].

    Args:
        lengths: Length of each row, [N].
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Ragged:
    """N rows of unequal length: row i is `values[offsets[i] : offsets[i + 1]]`.

    Raises:
        ValueError: The offsets do not ascend from 0 to the number of values.
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
        """Lengths of the rows, int64 [N]."""
        return np.diff(self.offsets)

    def take(self, indices: np.ndarray) -> Ragged:
        """Return the rows at `indices`, in that order; a row may be taken more than once."""
        starts, lengths = self.starts_and_lengths(indices)
        offsets = offsets_from_lengths(lengths)
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.values[positions], offsets)

    def pad(
        self, indices: np.ndarray, *, fill: int = 0
    ) -> tuple[Integer[np.ndarray, "*rows width"], Integer[np.ndarray, "*rows"]]:
        """Return rows padded to the length of the longest one.

        Args:
            indices: Rows to take, of any shape.
            fill: Value of the padding.

        Returns:
            The rows, int64 [*indices, W], and their lengths, int64 [*indices]. W is 0 where no row is taken.
        """
        return RaggedBlocks((self,)).pad(indices, fill=fill)

    def starts_and_lengths(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first position in the values of the rows at `indices`, and their lengths."""
        indices = np.asarray(indices, dtype=np.int64)
        starts = self.offsets[indices]
        return starts, self.offsets[indices + 1] - starts


@dataclass(frozen=True)
class RaggedBlocks:
    """Rows of unequal length in several blocks, one after the other; each block may be mapped from a separate file."""

    blocks: tuple[Ragged, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> np.ndarray:
        """First rows of the blocks, and the number of all rows, int64 [blocks + 1]."""
        return offsets_from_lengths(np.fromiter(map(len, self.blocks), np.int64, len(self.blocks)))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths of the rows, int64 [N]."""
        return np.concatenate([np.zeros(0, np.int64), *(np.diff(block.offsets) for block in self.blocks)])

    def block_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of the blocks of `rows`, int64."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def pad(
        self, indices: np.ndarray, *, fill: int = 0
    ) -> tuple[Integer[np.ndarray, "*rows width"], Integer[np.ndarray, "*rows"]]:
        """Return rows padded to the length of the longest one, as `Ragged.pad` does.

        Args:
            indices: Rows to take, of any shape.
            fill: Value of the padding.
        """
        rows = np.asarray(indices, dtype=np.int64)
        block_numbers, starts, lengths = self.block_of(rows), np.zeros_like(rows), np.zeros_like(rows)
        present = np.unique(block_numbers).tolist()
        for block in present:
            in_block = block_numbers == block
            starts[in_block], lengths[in_block] = self.blocks[block].starts_and_lengths(
                rows[in_block] - self.starts[block]
            )
        columns = np.arange(lengths.max(initial=0))
        inside = columns < lengths[..., None]
        padded = np.full(inside.shape, fill, dtype=np.int64)
        for block in present:
            in_block = inside & (block_numbers == block)[..., None]
            padded[in_block] = self.blocks[block].values[(starts[..., None] + columns)[in_block]]
        return padded, lengths


def table_column(sentences: pa.Table | Iterable[Sequence[str]], name: str) -> pa.ChunkedArray | None:
    """Return a column of an Arrow table, or None for sentences in plain lists.

    Args:
        sentences: Arrow table, or one list of words for each sentence.
        name: Name of the column.
    """
    if not isinstance(sentences, pa.Table):
        return None
    table: pa.Table = sentences
    return table.column(name)


def flatten_lists(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return an Arrow list column as flat values and int64 offsets [N + 1].

    Args:
        column: List column of N rows; slices are read correctly.

    Raises:
        ValueError: A row is null.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        raise ValueError(f"{column.null_count} of {len(column)} rows are null where every row must be a list")
    return column.flatten(), offsets_from_lengths(
        pc.call_function("list_value_length", [column]).to_numpy(zero_copy_only=False)
    )
