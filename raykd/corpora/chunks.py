"""Tables of any size as Arrow files of record batches: written as a stream, read batch by batch, or mapped."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 16_384
"""Most rows of a batch."""
WORDS = 2**19
"""Number of words at which a batch ends, however few rows it has."""


def write_batches(sink: Any, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write record batches as one Arrow file; small neighbours become one batch.

    Args:
        sink: Path, or open file.
        schema: Schema of the batches.
        batches: The record batches.
    """
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in merge_batches(batches):
            writer.write_batch(batch)


def merge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `ROWS` rows, or of fewer if they are long."""
    waiting: list[pa.RecordBatch] = []
    rows = words = 0
    for batch in batches:
        for piece in (batch.slice(first, ROWS) for first in range(0, batch.num_rows, ROWS)):
            if waiting and (rows + len(piece) > ROWS or words > WORDS):
                yield pa.concat_batches(waiting)
                waiting, rows, words = [], 0, 0
            waiting.append(piece)
            rows, words = rows + len(piece), words + _words(piece)
    if waiting:
        yield pa.concat_batches(waiting)


def _words(batch: pa.RecordBatch) -> int:
    column = batch.column(0)
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return len(column.flatten()) if is_list else len(column)


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, not mapped: memory holds one at a time.

    Args:
        path: The Arrow file.
        columns: Columns to read; None reads all.
    """
    with pa.OSFile(str(path)) as file:
        reader = open_arrow(file, columns)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def open_arrow(file: Any, columns: Sequence[str] | None = None) -> pa.RecordBatchFileReader:
    """Open an Arrow file.

    Args:
        file: Open file.
        columns: Columns to read; None reads all.
    """
    if columns is None:
        return pa.ipc.open_file(file)
    schema = pa.ipc.open_file(file).schema
    fields = [schema.get_field_index(name) for name in columns]
    return pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields))


def map_table(path: Path) -> pa.Table:
    """Return the memory-mapped table of a file; the system reads only the parts in use.

    Args:
        path: The Arrow file.
    """
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def to_mapped_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Write record batches to a temporary file and return the memory-mapped table; the file is deleted with the table.

    Args:
        schema: Schema of the batches.
        batches: The record batches.
    """
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        path = Path(folder) / "table.arrow"
        write_batches(str(path), schema, batches)
        # The mapping holds the file after its name is gone.
        return map_table(path)


class Chunks:
    """A chunked column with access to rows by binary search.

    Attributes:
        bounds: First row of each chunk, then the number of rows [chunks + 1].
    """

    def __init__(self, column: pa.ChunkedArray):
        self.chunks = column.chunks
        self.type = column.type
        self.bounds = chunk_bounds(map(len, self.chunks))

    def take(self, rows: np.ndarray) -> pa.Array:
        """Return the values of `rows`, in the same order; chunks without these rows are not touched."""
        order = np.argsort(rows, kind="stable")
        pieces = [
            self.chunks[number].take(pa.array(local))
            for number, local in split_by_chunk(rows[order], self.bounds)
        ]
        if not pieces:
            return pa.array([], self.type)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(pieces).take(pa.array(back))


def chunk_bounds(lengths: Iterable[int]) -> np.ndarray:
    """Return the first rows of chunks, then the number of rows, int64 [chunks + 1].

    Args:
        lengths: Rows of each chunk.
    """
    return np.cumsum([0, *lengths], dtype=np.int64)


def split_by_chunk(rows: np.ndarray, bounds: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (chunk, rows counted inside the chunk) for runs of `rows` in the same chunk.

    Args:
        rows: Row numbers, in any order.
        bounds: See `chunk_bounds`.
    """
    chunks = np.searchsorted(bounds, rows, side="right") - 1
    cuts = np.flatnonzero(np.diff(chunks)) + 1
    starts, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(rows)]])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end > start:
            yield int(chunks[start]), rows[start:end] - bounds[chunks[start]]
