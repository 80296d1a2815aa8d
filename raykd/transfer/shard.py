"""One shard: an Arrow IPC file with one record batch, uncompressed so that it can be mapped.

Columns: `sentence` int64 (row of the text), `length` int32 (rows of the sentence's list columns), and those of the
signal (`signals.py`): a list<fixed_size_list<dtype>[V]> for values per label, word or arc, a fixed_size_list for values
per sentence. A signal that is stored once per teacher has only its own columns, and one row. Rows are sorted by the
sentences' length. The schema's metadata holds the origin of the shard and the hash of its columns, so that a shard left
by a killed precompute can be checked before a manifest exists.

Shapes: N sentences of the shard, R list rows of all of them, V values of one row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from raykd.errors import MissingError, RunError, StoreError
from raykd.signals import SIGNALS, Column, Need, Sizes
from raykd.storage.store import Storage
from raykd.transfer.arrow_file import content_hash, ipc_bytes, open_arrow
from raykd.transfer.manifest import RERUN_HINT, Origin, ShardContent, ShardEntry
from raykd.transfer.names import FORMAT, RowRange

_METADATA = b"raykd"


class Header(ShardContent):
    """The origin and content of a shard, in the metadata of its Arrow schema.

    Attributes:
        format: version of the store.
        origin: the signal.
        content: hash of the columns.
    """

    format: int
    origin: Origin
    content: str


def encode_columns(
    need: Need, sizes: Sizes, sentences_N: np.ndarray, lengths_N: np.ndarray, values: Sequence[np.ndarray]
) -> tuple[pa.RecordBatch, float]:
    """Return the record batch of a shard and the largest absolute error of the encoding.

    Args:
        need: the signal.
        sizes: sizes of the teacher's output.
        sentences_N: the row of the text of each sentence, in the order of the values; empty for a signal that is stored
            once per teacher.
        lengths_N: number of list rows of each sentence.
        values: for each column of the signal its values [R, V], [N, V] or [1, V].

    Raises:
        RunError: the values of the teacher cannot be stored.
    """
    signal, largest = SIGNALS[need.signal], 0.0
    columns: dict[str, pa.Array] = {}
    if not signal.once_per_teacher:
        columns = {"sentence": pa.array(sentences_N), "length": pa.array(lengths_N.astype(np.int32))}
    for column, column_values in zip(signal.columns, values, strict=True):
        stored, error = _encode_column(need, column, sizes, column_values, sentences_N, lengths_N)
        largest = max(largest, error)
        columns[column.name] = ragged_column(lengths_N, stored) if column.is_list else fixed_column(stored)
    return pa.record_batch(columns), largest


def _encode_column(
    need: Need,
    column: Column,
    sizes: Sizes,
    values: np.ndarray,
    sentences_N: np.ndarray,
    lengths_N: np.ndarray,
) -> tuple[np.ndarray, float]:
    if column.encode is None:
        return np.ascontiguousarray(values, column.dtype(sizes)), 0.0
    try:
        return column.encode(values.astype(np.float32))
    except ValueError as error:
        problem, place = error.args
        row = int(sentences_N[np.searchsorted(np.cumsum(lengths_N), place, side="right")])
        raise RunError(f"the teacher gave {need.name} {problem} for the sentence in row {row}") from error


def decode_columns(need: Need, batch: pa.RecordBatch) -> tuple[np.ndarray, ...]:
    """Return the columns of a shard as stored, [R, V], [N, V] or [1, V] each, mapped without a copy.

    Args:
        need: the signal.
        batch: record batch of the shard.
    """
    return tuple(
        (ragged_values if column.is_list else fixed_values)(batch, column.name)
        for column in SIGNALS[need.signal].columns
    )


def write_shard(
    folder: Storage,
    batch: pa.RecordBatch,
    *,
    origin: Origin,
    rows: RowRange,
    largest_error: float = 0.0,
    source: str = "",
) -> ShardEntry:
    """Write one shard atomically and return the manifest's entry.

    Args:
        folder: folder of the signal.
        batch: columns of the shard.
        origin: the signal.
        rows: rows of the text.
        largest_error: largest absolute error of the encoding.
        source: sha256 of the shard that this one is derived from; empty where there is none.

    Raises:
        StoreError: it cannot be written.
    """
    tokens = int(np.sum(batch["length"].to_numpy())) if "length" in batch.schema.names else 0
    header = Header(
        format=FORMAT, origin=origin, first=rows.first, last=rows.last, tokens=tokens,
        largest_error=largest_error, source=source, content=content_hash(batch),
    )  # fmt: skip
    data = ipc_bytes(batch.replace_schema_metadata({_METADATA: header.model_dump_json().encode()}))
    folder.write(rows.name, data)
    return _entry(header, data)


def open_shard(folder: Storage, entry: ShardEntry) -> pa.RecordBatch:
    """Map one shard into memory and verify the checksum (`open_arrow` says when).

    Args:
        folder: folder of the signal.
        entry: the shard's entry in the manifest.

    Raises:
        StoreError: the shard, which the error names, is missing or damaged.
    """
    try:
        batch = open_arrow(folder, entry.name, sha256=entry.sha256)
    except MissingError as error:
        raise StoreError(f"{folder.address}/{entry.name}", "the shard is missing", RERUN_HINT) from error
    except (ValueError, OSError) as error:
        raise damaged_shard(folder, entry.name, str(error)) from error
    if batch.num_rows != len(entry.rows):
        problem = f"it has {batch.num_rows} rows instead of {len(entry.rows)}"
        raise damaged_shard(folder, entry.name, problem)
    return batch


def find_shard(
    folder: Storage, rows: RowRange, *, origin: Origin, source: str | None = None
) -> ShardEntry | None:
    """Return the entry of a shard in a folder without a manifest, or None if it must be computed.

    A shard that cannot be read, has other rows, another origin or another source, or differs from the hash in its
    header counts as missing: no manifest has listed it yet.

    Args:
        folder: folder of the signal.
        rows: rows of the shard.
        origin: the signal.
        source: sha256 of the shard that this one must be derived from; None: any.
    """
    data = folder.find(rows.name)
    if data is None:
        return None
    try:
        batch = pa.ipc.open_file(pa.BufferReader(data)).get_batch(0)
        header = Header.model_validate_json((batch.schema.metadata or {})[_METADATA])
        intact = header.content == content_hash(batch)
    except (pa.ArrowException, OSError, IndexError, KeyError, ValueError, ValidationError):
        return None
    matches = header.format == FORMAT and header.origin.serves(origin) and source in (None, header.source)
    if not (intact and matches and (header.first, header.last) == (rows.first, rows.last)):
        return None
    return _entry(header, data)


def ragged_column(lengths_N: np.ndarray, values_PW: np.ndarray) -> pa.ListArray:
    """Return rows of unequal length with W values per token: list<fixed_size_list[W]>."""
    offsets = np.concatenate([[0], np.cumsum(lengths_N)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), fixed_column(values_PW))


def fixed_column(values_NW: np.ndarray) -> pa.FixedSizeListArray:
    """Return rows of W values: fixed_size_list[W]."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values_NW.reshape(-1)), values_NW.shape[1])


def ragged_values(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """Return the values [P, W] of a ragged column, not copied."""
    values = batch[name].values
    return values.values.to_numpy().reshape(-1, values.type.list_size)


def fixed_values(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """Return the values [N, W] of a fixed-width column, not copied."""
    return batch[name].values.to_numpy().reshape(-1, batch[name].type.list_size)


def _entry(header: Header, data: bytes) -> ShardEntry:
    shared = header.model_dump(include={*ShardContent.model_fields})
    sha256 = hashlib.sha256(data).hexdigest()
    return ShardEntry(name=header.rows.name, bytes=len(data), sha256=sha256, **shared)


def damaged_shard(folder: Storage, name: str, problem: str) -> StoreError:
    """Return the error for a damaged shard."""
    path = f"{folder.address}/{name}"
    return StoreError(path, f"the shard is damaged: {problem}", f"remove {path} and {RERUN_HINT}")
