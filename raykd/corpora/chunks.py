"""Tables of any size as Arrow files of many record batches: written in a stream, read batch by batch, or mapped."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 16_384
"""Most rows of one batch."""
WORDS = 2**19
"""A batch with as many words ends, however few rows it has."""


def write_batches(sink: Any, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write `batches` to a path or an open file as one Arrow file; small neighbours become one batch."""
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in merge_batches(batches):
            writer.write_batch(batch)


def merge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `ROWS` rows, or of fewer where they are long."""
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
    """The batches of a file one after the other, not mapped: memory has one at a time."""
    with pa.OSFile(str(path)) as file:
        reader = open_arrow(file, columns)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def open_arrow(file: Any, columns: Sequence[str] | None = None) -> pa.RecordBatchFileReader:
    """The Arrow file, of which only `columns` are read."""
    if columns is None:
        return pa.ipc.open_file(file)
    schema = pa.ipc.open_file(file).schema
    fields = [schema.get_field_index(name) for name in columns]
    return pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields))


def map_table(path: Path) -> pa.Table:
    """The file's table, mapped: the system reads what is looked at."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def to_mapped_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """`batches` as a mapped table, in a file without a name that goes with the table."""
    with tempfile.TemporaryDirectory(prefix="raykd-") as folder:
        path = Path(folder) / "table.arrow"
        write_batches(str(path), schema, batches)
        # The mapping holds the file after its name is gone.
        return map_table(path)


class Chunks:
    """A chunked column whose rows are found by binary search."""

    def __init__(self, column: pa.ChunkedArray):
        self.chunks = column.chunks
        self.type = column.type
        self.bounds = chunk_bounds(map(len, self.chunks))
        """The first row of each chunk, and the number of rows [chunks + 1]."""

    def take(self, rows: np.ndarray) -> pa.Array:
        """The values of `rows`, in that order; only the chunks that have them are looked at."""
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
    """Where each of several neighbours of these lengths begins, and where the last one ends: int64."""
    return np.cumsum([0, *lengths], dtype=np.int64)


def split_by_chunk(rows: np.ndarray, bounds: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """`rows` in their order, cut wherever the next one is in another chunk: (chunk, rows counted in it)."""
    chunks = np.searchsorted(bounds, rows, side="right") - 1
    cuts = np.flatnonzero(np.diff(chunks)) + 1
    starts, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(rows)]])
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end > start:
            yield int(chunks[start]), rows[start:end] - bounds[chunks[start]]
