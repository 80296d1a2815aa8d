"""The index of a signal: the place of each sentence in the shards, a small file that every process maps.

With it a transfer set is opened without opening a shard. It follows from the shards' row ranges and the sentences'
lengths. It is written before the manifest, and again by a precompute that finds it missing. A shard is compared with it
when it is opened.

Shapes: N sentences of a text (or of one shard), S shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from raykd.errors import MissingError, StoreError
from raykd.storage.layout import INDEX
from raykd.storage.store import Storage
from raykd.transfer.arrow_file import content_hash, ipc_bytes, open_arrow
from raykd.transfer.manifest import RERUN_HINT, Manifest
from raykd.transfer.names import RowRange

_METADATA = b"sha256"
_COLUMNS = ("place", "start", "length")


@dataclass(frozen=True)
class Index:
    """Places of the sentences of a text, int32 [N] each.

    Attributes:
        place_N: place among the sentences of its shard.
        start_N: first list row in its shard.
        length_N: number of list rows.
    """

    place_N: np.ndarray
    start_N: np.ndarray
    length_N: np.ndarray

    @staticmethod
    def from_ranges(ranges: Sequence[RowRange], words_N: np.ndarray, rows_N: np.ndarray) -> Index:
        """Return the index of shards with given row ranges.

        Args:
            ranges: rows of each shard.
            words_N: words of each sentence, which decide the order in a shard.
            rows_N: list rows of each sentence.
        """
        place_N, start_N = np.zeros(len(words_N), np.int32), np.zeros(len(words_N), np.int32)
        for rows in ranges:
            order = shard_order(words_N[rows.first : rows.last])
            lengths = rows_N[rows.first : rows.last][order]
            place_N[rows.first + order] = np.arange(len(order))
            start_N[rows.first + order] = np.cumsum(lengths) - lengths
        return Index(place_N, start_N, rows_N.astype(np.int32))

    def agrees(self, rows: RowRange, sentence_N: np.ndarray, length_N: np.ndarray) -> bool:
        """Return True if a shard agrees with the index.

        Args:
            rows: rows of the shard.
            sentence_N: its column `sentence`.
            length_N: its column `length`.
        """
        place, start, length = (
            column[rows.first : rows.last] for column in (self.place_N, self.start_N, self.length_N)
        )
        starts_N = np.cumsum(length_N) - length_N
        return (
            np.array_equal(sentence_N[place], np.arange(rows.first, rows.last))
            and np.array_equal(length_N[place], length)
            and np.array_equal(starts_N[place], start)
        )


def shard_order(words_N: np.ndarray) -> np.ndarray:
    """Return the order of sentences in a shard: shortest first, equally long ones as in the text.

    Args:
        words_N: words of each sentence.
    """
    return np.argsort(words_N, kind="stable")


def write_index(folder: Storage, index: Index) -> None:
    """Write the index into a signal folder."""
    columns = (index.place_N, index.start_N, index.length_N)
    batch = pa.record_batch([pa.array(column) for column in columns], _COLUMNS)
    folder.write(INDEX, ipc_bytes(batch.replace_schema_metadata({_METADATA: content_hash(batch).encode()})))


def read_index(folder: Storage, manifest: Manifest) -> Index:
    """Map the index of a signal folder.

    Args:
        folder: the folder.
        manifest: its manifest.

    Raises:
        StoreError: the index is missing, damaged or of other shards.
    """
    name = f"{folder.address}/{INDEX}"
    try:
        batch = open_arrow(folder, INDEX)
        if (batch.schema.metadata or {}).get(_METADATA, b"").decode() != content_hash(batch):
            raise ValueError("its content does not match its checksum")
        if batch.num_rows != manifest.rows:
            raise ValueError(f"it has {batch.num_rows} sentences, the manifest {manifest.rows}")
    except MissingError as error:
        raise StoreError(name, "the index of the shards is missing", RERUN_HINT) from error
    except (ValueError, OSError) as error:
        problem = f"the index of the shards is damaged: {error}"
        raise StoreError(name, problem, f"remove {name} and {RERUN_HINT}") from error
    return Index(*(batch[column].to_numpy() for column in _COLUMNS))
