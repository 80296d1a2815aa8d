"""Values per token of many sentences, gathered into padded batches without a Python step per sentence.

One copy per mapped block that the batch touches, then one scatter into the padded array.

Shapes: G rows, B batch, T time, P tokens of a block, W values per token (Y tags or K paths).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class Ragged:
    """Values per token of many sentences, spread over mapped blocks [P, W]; three arrays locate a row."""

    blocks: tuple[np.ndarray, ...]
    block_G: np.ndarray
    start_G: np.ndarray
    length_G: np.ndarray

    def gather(self, rows_B: Int[np.ndarray, " batch"]) -> np.ndarray:
        """The values of `rows_B` padded with 0 to the longest: [B, T, W]."""
        order_B = np.argsort(self.block_G[rows_B], kind="stable")
        sorted_B = rows_B[order_B]
        length_B = self.length_G[sorted_B].astype(np.int64)
        ends_B = np.cumsum(length_B)
        steps = np.arange(ends_B[-1]) - np.repeat(ends_B - length_B, length_B)
        flat = self._copy(sorted_B, np.repeat(self.start_G[sorted_B], length_B) + steps, ends_B)
        width = int(length_B.max())
        padded = np.zeros((len(rows_B) * width, flat.shape[1]), flat.dtype)
        padded[np.repeat(order_B * width, length_B) + steps] = flat
        return padded.reshape(len(rows_B), width, -1)

    def narrowed(self, width: int) -> Ragged:
        """The same tokens with their first `width` values."""
        return replace(self, blocks=tuple(block[:, :width] for block in self.blocks))

    def _copy(self, sorted_B: np.ndarray, positions: np.ndarray, ends_B: np.ndarray) -> np.ndarray:
        flat = np.empty((len(positions), self.blocks[0].shape[1]), self.blocks[0].dtype)
        blocks, counts = np.unique(self.block_G[sorted_B], return_counts=True)
        first = 0
        for block, last in zip(blocks.tolist(), ends_B[np.cumsum(counts) - 1].tolist(), strict=True):
            # "clip" avoids a buffered copy; the positions were checked when the shard was opened.
            np.take(self.blocks[block], positions[first:last], axis=0, out=flat[first:last], mode="clip")
            first = last
        return flat


def join(
    columns: Sequence[Ragged],
    covered: Sequence[Int[np.ndarray, " _"]],
    picked: Sequence[Int[np.ndarray, " _"] | None],
    rows: int,
) -> Ragged:
    """One column over a table of `rows` rows: column i covers the rows `covered[i]`, by its own rows `picked[i]`, or
    by its first ones in their order."""
    block_G, start_G, length_G = (np.zeros(rows, kind) for kind in (np.int32, np.int64, np.int32))
    blocks: list[np.ndarray] = []
    for column, covers, own in zip(columns, covered, picked, strict=True):
        taken = np.arange(len(covers)) if own is None else own
        block_G[covers] = column.block_G[taken] + len(blocks)
        start_G[covers], length_G[covers] = column.start_G[taken], column.length_G[taken]
        blocks.extend(column.blocks)
    return Ragged(tuple(blocks), block_G, start_G, length_G)
