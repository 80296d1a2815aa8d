"""Files that are not held whole: read block by block, written piece by piece.

What becomes of an error, and which file system a file is on, is decided in `store.py`.
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
    """A random access file of pyarrow as Python reads files; each read goes through `guard`."""

    def __init__(self, file: NativeFile, guard: Callable[[Callable[[], bytes]], bytes]):
        self._file, self._guard, self._place = file, guard, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size()}
        self._place = starts[whence] + offset
        return self._place

    def readinto(self, buffer: bytearray | memoryview) -> int:
        data = self._guard(lambda: self._file.read_at(len(buffer), self._place))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class WriteError(Exception):
    """What went wrong in writing, and not in the code that gave the bytes."""

    def __init__(self, error: OSError):
        super().__init__(error)
        self.error = error


class Sink(io.RawIOBase):
    """A file while it is written: it knows its bytes and their checksum."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._descriptor = -1

    @property
    def sha256(self) -> str:
        """The checksum of what was written so far."""
        return self._digest.hexdigest()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:
        rest = memoryview(data).cast("B")
        count = len(rest)
        self.size += count
        self._digest.update(rest)
        with as_write_errors():
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return count

    def attach(self, descriptor: int) -> Sink:
        """The same sink, writing to `descriptor`."""
        self._descriptor = descriptor
        return self


def write_beside(path: Path, sink: Sink) -> Iterator[Sink]:
    """`sink` with a temporary file beside `path`, which becomes `path` when the generator goes on."""
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
        # It exists only after a failure; where there is no folder, there is no file in it.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_to_upload(sink: Sink, upload: Callable[[Path], None]) -> Iterator[Sink]:
    """`sink` with a temporary file of this machine, which is uploaded when the generator goes on."""
    with as_write_errors():
        file = tempfile.NamedTemporaryFile(prefix="raykd-", buffering=0)  # noqa: SIM115
    with file:
        yield sink.attach(file.fileno())
        with as_write_errors():
            upload(Path(file.name))


@contextmanager
def as_write_errors() -> Iterator[None]:
    """An OSError inside the block becomes a WriteError."""
    try:
        yield
    except OSError as error:
        raise WriteError(error) from error
