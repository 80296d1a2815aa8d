"""The digest of a table: over the values, level by level, the same for all Arrow layouts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def table_digest(table: pa.Table) -> str:
    """Return the sha256 of the values of a table, the same for all Arrow layouts (chunks, slices, buffers).

    A column is read once per level of its type, a chunk at a time.
    """
    digest = hashlib.sha256(f"{table.num_rows}".encode())
    for name in sorted(table.column_names):
        digest.update(f";{name}:".encode())
        _update_with_column(digest, table[name].chunks, table.schema.field(name).type)
    return digest.hexdigest()


def _update_with_column(digest: Any, chunks: Iterable[pa.Array], kind: pa.DataType) -> None:
    """Add validity, lengths and values of a column, level by level, as plain bytes."""
    chunks = list(chunks)
    for block in _validity_bytes(chunks):
        digest.update(block)
    if pa.types.is_list(kind):
        _update_with_numbers(digest, (chunk.value_lengths() for chunk in chunks))
        # Flat values of a chunk share its memory.
        _update_with_column(digest, (chunk.flatten() for chunk in chunks), kind.value_type)
    elif pa.types.is_string(kind):
        _update_with_numbers(digest, (pc.call_function("binary_length", [chunk]) for chunk in chunks))
        for chunk in chunks:
            digest.update(_text_bytes(chunk))
    else:
        _update_with_numbers(digest, chunks)


def _validity_bytes(chunks: Iterable[pa.Array]) -> Iterator[bytes]:
    """Validity of the values, eight to a byte as if all chunks were one."""
    rest = np.zeros(0, dtype=bool)
    for chunk in chunks:
        bits = np.concatenate([rest, chunk.is_valid().to_numpy(zero_copy_only=False)])
        whole = len(bits) - len(bits) % 8
        yield np.packbits(bits[:whole]).tobytes()
        rest = bits[whole:]
    yield np.packbits(rest).tobytes()


def _update_with_numbers(digest: Any, chunks: Iterable[pa.Array]) -> None:
    for chunk in chunks:
        digest.update(chunk.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes())


def _text_bytes(chunk: pa.Array) -> memoryview:
    """The bytes of all strings of a chunk, one after the other."""
    chunk = chunk.fill_null("") if chunk.null_count else chunk
    _, ends, data = chunk.buffers()
    if not len(chunk) or data is None:
        return memoryview(b"")
    bounds = np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return memoryview(data)[bounds[0] : bounds[-1]]
