"""Values per token of many sentences, gathered into padded batches without a Python step per sentence.

One copy per mapped block of the batch, then one scatter into the padded array.

Shapes: B batch, T time, P tokens of a block, W values per token (Y tags or K paths).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Int


def gather(
    block_of: Callable[[int], np.ndarray],
    block_B: Int[np.ndarray, " batch"],
    start_B: Int[np.ndarray, " batch"],
    length_B: Int[np.ndarray, " batch"],
) -> np.ndarray:
    """Return the values of B sentences, padded with 0 to the longest: [B, T, W].

    Sentence i has the rows `start_B[i]` to `start_B[i] + length_B[i]` of the block `block_of(block_B[i])`. These are
    not checked here: they were checked when the block was opened.

    Args:
        block_of: returns the values [P, W] of a block.
        block_B: the block of each sentence.
        start_B: its first row in the block.
        length_B: its number of rows.
    """
    order_B = np.argsort(block_B, kind="stable")
    length_S, start_S = length_B[order_B], start_B[order_B]
    ends_S = np.cumsum(length_S)
    steps = np.arange(ends_S[-1]) - np.repeat(ends_S - length_S, length_S)
    flat = _copy(block_of, block_B[order_B], np.repeat(start_S, length_S) + steps, ends_S)
    width = int(length_B.max())
    padded = np.zeros((len(block_B) * width, flat.shape[1]), flat.dtype)
    padded[np.repeat(order_B * width, length_S) + steps] = flat
    return padded.reshape(len(block_B), width, -1)


def _copy(
    block_of: Callable[[int], np.ndarray], block_S: np.ndarray, positions: np.ndarray, ends_S: np.ndarray
) -> np.ndarray:
    numbers, counts = np.unique(block_S, return_counts=True)
    blocks = [block_of(number) for number in numbers.tolist()]
    flat = np.empty((len(positions), blocks[0].shape[1]), blocks[0].dtype)
    first = 0
    for block, last in zip(blocks, ends_S[np.cumsum(counts) - 1].tolist(), strict=True):
        # "clip" avoids a buffered copy; the positions were checked when the shard was opened.
        np.take(block, positions[first:last], axis=0, out=flat[first:last], mode="clip")
        first = last
    return flat
