"""Arrow files with one record batch: their bytes, their hashes, how one is mapped and compared with its checksum."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

import pyarrow as pa

from raykd.storage.digests import check_sha256, file_sha256, file_state
from raykd.storage.store import Storage

_TRIES = 3


def open_arrow(folder: Storage, name: str, *, sha256: str = "") -> pa.RecordBatch:
    """Map an Arrow file.

    With `sha256` its bytes are compared with it: those of a local file once per process as long as it stays as it is,
    those of an object store's when they are copied to this node. They are read in any case, so that what is mapped is
    in the page cache before it is used.

    The mapping outlives the file handle: it is released with the last array that reads it, so thousands of files need
    no file descriptors, and a file that is removed from a node's cache stays readable where it is mapped (on Linux).

    Raises:
        ValueError: the checksum is another, or the file is not what raykd writes.
        OSError, StoreError: it cannot be read.
    """
    for _ in range(_TRIES):
        # A copy in the node's cache may be removed between two of these lines: then it is fetched again.
        with suppress(FileNotFoundError):
            path = folder.local_path(name, sha256=sha256)
            with open(path, "rb", buffering=0) as file:
                state = file_state(os.fstat(file.fileno()))
                _read_ahead(file.fileno())
                if sha256:
                    check_sha256(file_sha256(file), sha256)
                with pa.memory_map(str(path)) as mapped:
                    # The very file that was compared, not one that took its place.
                    if file_state(os.stat(path)) == state:
                        return _one_batch(mapped)
    raise OSError(f"it was replaced {_TRIES} times while it was opened")


def ipc_bytes(batch: pa.RecordBatch) -> bytes:
    """The Arrow IPC file of one record batch, uncompressed, so that reading is mapping."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def content_hash(batch: pa.RecordBatch) -> str:
    """The sha256 over the columns' buffers."""
    hashed = hashlib.sha256()
    for column in batch.columns:
        for buffer in column.buffers():
            # Buffers are padded on disk but not in memory: the digest of each keeps them apart without
            # its padding.
            hashed.update(hashlib.sha256(buffer if buffer is not None else b"").digest())
    return hashed.hexdigest()


def _read_ahead(descriptor: int) -> None:
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)


def _one_batch(mapped: pa.MemoryMappedFile) -> pa.RecordBatch:
    try:
        reader = pa.ipc.open_file(mapped)
        if reader.num_record_batches != 1:
            raise ValueError(f"{reader.num_record_batches} record batches where one is written")
        return reader.get_batch(0)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"its footer cannot be read ({error})") from error
