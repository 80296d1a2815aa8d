"""Arrow files with one record batch: their bytes, their hashes, and memory maps with a verified checksum."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

import pyarrow as pa

from raykd.storage.digests import check_sha256, file_sha256, file_state
from raykd.storage.store import Storage

_TRIES = 3


def open_arrow(folder: Storage, name: str, *, sha256: str = "") -> pa.RecordBatch:
    """Map an Arrow file into memory, and verify its checksum.

    A local file is compared once per process as long as it stays the same, a file of an object store when it is copied
    to this node. The file is read in any case, so that it is in the page cache before it is used.

    The mapping outlives the file handle and is released with the last array that reads it. So thousands of files need
    no file descriptors, and a file removed from a node's cache stays readable where it is mapped (on Linux).

    Args:
        folder: the folder.
        name: name of the file.
        sha256: its checksum; empty: nothing is compared.

    Raises:
        ValueError: the checksum differs, or raykd did not write the file.
        OSError: it cannot be read.
        StoreError: it cannot be fetched.
    """
    for _ in range(_TRIES):
        # Another process may remove a copy from the node's cache between two of these lines: then fetch it again.
        with suppress(FileNotFoundError):
            path = folder.local_path(name, sha256=sha256)
            with open(path, "rb", buffering=0) as file:
                state = file_state(os.fstat(file.fileno()))
                _read_ahead(file.fileno())
                if sha256:
                    check_sha256(file_sha256(file), sha256)
                with pa.memory_map(str(path)) as mapped:
                    # Make sure that the mapped file is the compared one, and none that has replaced it since.
                    if file_state(os.stat(path)) == state:
                        return _one_batch(mapped)
    raise OSError(f"it was replaced {_TRIES} times while being opened")


def ipc_bytes(batch: pa.RecordBatch) -> bytes:
    """Return the Arrow IPC file of one record batch, uncompressed so that it can be mapped.

    Args:
        batch: the record batch.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def content_hash(batch: pa.RecordBatch) -> str:
    """Return the sha256 of the columns' buffers."""
    hashed = hashlib.sha256()
    for column in batch.columns:
        for buffer in column.buffers():
            # Each buffer is hashed separately, since buffers are padded on disk but not in memory.
            hashed.update(hashlib.sha256(buffer if buffer is not None else b"").digest())
    return hashed.hexdigest()


def _read_ahead(descriptor: int) -> None:
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)


def _one_batch(mapped: pa.MemoryMappedFile) -> pa.RecordBatch:
    try:
        reader = pa.ipc.open_file(mapped)
        if reader.num_record_batches != 1:
            raise ValueError(f"it has {reader.num_record_batches} record batches instead of one")
        return reader.get_batch(0)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"its footer cannot be read ({error})") from error
