"""Files too large for memory: read block by block, written piece by piece.

The handling of errors and the choice of the file system are in `store.py`.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow import NativeFile

from raykd.storage.local_files import sync_folder, temporary_path

BLOCK = 2**20
"""Bytes of one read or write."""


class Blocks(io.RawIOBase):
    """A random-access file of pyarrow as a Python file; each read goes through `guard`."""

    def __init__(self, file: NativeFile, guard: Callable[[Callable[[], bytes]], bytes]):
        self._file, self._guard, self._place = file, guard, 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set and return the position of the next byte."""
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size()}
        self._place = starts[whence] + offset
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Read bytes into `buffer`; return the number of bytes, 0 at the end of the file."""
        data = self._guard(lambda: self._file.read_at(len(buffer), self._place))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file of pyarrow, and this one."""
        if not self.closed:
            self._file.close()
        super().close()


class WriteError(Exception):
    """An error of writing, as opposed to an error of the code that produced the bytes."""

    def __init__(self, error: OSError):
        super().__init__(error)
        self.error = error


class Sink(io.RawIOBase):
    """A file in the course of writing, with its size and its checksum."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._descriptor = -1

    @property
    def sha256(self) -> str:
        """The checksum of the bytes written so far, in hex."""
        return self._digest.hexdigest()

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of `data`; return the size in bytes."""
        rest = memoryview(data).cast("B")
        count = len(rest)
        self.size += count
        self._digest.update(rest)
        with as_write_errors():
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return count

    def attach(self, descriptor: int) -> Sink:
        """Return the sink, now writing to `descriptor`."""
        self._descriptor = descriptor
        return self


def write_beside(path: Path, sink: Sink) -> Iterator[Sink]:
    """Yield `sink` on a temporary file next to `path`; rename the file to `path` when the generator is resumed."""
    temporary = temporary_path(path)
    try:
        with as_write_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            yield sink.attach(descriptor)
            with as_write_errors():
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with as_write_errors():
            os.replace(temporary, path)
    finally:
        # The temporary file exists only after a failure; if the folder is missing too, there is nothing to remove.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_to_upload(sink: Sink, upload: Callable[[Path], None]) -> Iterator[Sink]:
    """Yield `sink` on a local temporary file; upload the file when the generator is resumed."""
    with as_write_errors():
        file = tempfile.NamedTemporaryFile(prefix="raykd-", buffering=0)  # noqa: SIM115
    with file:
        yield sink.attach(file.fileno())
        with as_write_errors():
            upload(Path(file.name))


@contextmanager
def as_write_errors() -> Iterator[None]:
    """Raise an OSError of the block as a WriteError."""
    try:
        yield
    except OSError as error:
        raise WriteError(error) from error
