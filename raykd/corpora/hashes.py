"""128-bit hashes of sentences, which stand for the sentences in comparisons.

Equal words give equal hashes. Some billion different sentences share a hash with a chance below 10⁻¹⁹.

Shapes: N sentences; hashes are uint64 [N, 2].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK = 16_384
"""Number of sentences whose words are joined at once."""


def sentence_hashes(sentences: pa.Array | pa.ChunkedArray | Sequence[Sequence[str]]) -> np.ndarray:
    """Return the hashes of sentences, uint64 [N, 2], over their words with a NUL between them.

    Args:
        sentences: Column `tokens`, or lists of words.
    """
    chunks: list[Any] = [sentences]
    if isinstance(sentences, Sequence):
        chunks = [pa.array(sentences, pa.list_(pa.string()))]
    elif isinstance(sentences, pa.ChunkedArray):
        chunks = sentences.chunks
    blocks = [chunk.slice(first, BLOCK) for chunk in chunks for first in range(0, len(chunk), BLOCK)]
    digests = np.empty((sum(map(len, blocks)), 2), dtype="<u8")
    first = 0
    for block in blocks:
        digests[first : first + len(block)] = _digests(block)
        first += len(block)
    return digests


def _digests(block: pa.Array) -> np.ndarray:
    large = pa.types.is_large_string(block.type.value_type)
    separator = pa.scalar("\0", pa.large_string() if large else pa.string())
    spelled = pc.call_function("binary_join", [block, separator])
    _, ends, data = spelled.buffers()
    bounds = np.frombuffer(ends, np.int64 if large else np.int32)[spelled.offset :][: len(spelled) + 1]
    view = memoryview(data if data is not None else b"")
    digests = b"".join(blake2b(view[a:b], digest_size=16).digest() for a, b in pairwise(bounds.tolist()))
    return np.frombuffer(digests, "<u8").reshape(-1, 2)


def number_distinct(hashes: np.ndarray) -> np.ndarray:
    """Number the distinct sentences from 0: equal sentences have equal numbers, int32 [N].

    Args:
        hashes: Hashes of sentences, uint64 [N, 2].
    """
    order = _sorted_rows(hashes)
    new = np.zeros(len(order), dtype=bool)
    for half in (0, 1):
        ordered = hashes[order, half]
        new[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), dtype=np.int32)
    numbers[order] = np.cumsum(new, dtype=np.int32)
    return numbers


def _sorted_rows(hashes: np.ndarray) -> np.ndarray:
    """Return the rows in ascending order of hashes; equal ones keep their order."""
    order = np.argsort(hashes[:, 0], kind="stable")
    high, low = hashes[order, 0], hashes[order, 1]
    # Different sentences that share the first half: then the second half has to be compared too.
    if np.any((high[1:] == high[:-1]) & (low[1:] != low[:-1])):
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
    return order


class HashLookup:
    """Lookup of sentences by hash."""

    def __init__(self, hashes: np.ndarray):
        self._rows = _sorted_rows(hashes)
        self._high, self._low = hashes[self._rows, 0], hashes[self._rows, 1]

    def rows(self, hashes: np.ndarray) -> np.ndarray:
        """Return the last rows with the given hashes, -1 if there is none, int64."""
        places = np.searchsorted(self._high, hashes[:, 0], side="right") - 1
        if not len(self._rows):
            return places
        while True:
            same = (places >= 0) & (self._high[places] == hashes[:, 0])
            mismatched = same & (self._low[places] != hashes[:, 1])
            if not mismatched.any():
                return np.where(same, self._rows[places], -1)
            # Different sentences may share the first half of a hash: the row before may be the right one.
            places = places - mismatched


def first_occurrences(values: Iterable[int] | np.ndarray) -> np.ndarray:
    """Return the places of first occurrences of values, ascending, int64.

    Args:
        values: Whole numbers.
    """
    return np.sort(np.unique(np.asarray(values), return_index=True)[1])
