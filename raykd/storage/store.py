"""Files under a URI: a local path, file://, s3:// or gs://; a file is written whole, or not at all.

A local file is written under a temporary name, synced and renamed; on an object store it is one put. So a file
that can be seen is complete, also when a process was killed. JSON is written with its checksum, which is compared
whenever it is read.
"""

from __future__ import annotations

import errno
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import fs

from raykd.errors import MissingError, StoreError
from raykd.identity import PlainObject
from raykd.redact import expand_variables, redact
from raykd.storage import object_stores
from raykd.storage.cache import OpenOriginal, cached_content, cached_copy
from raykd.storage.local_files import free_bytes, is_temporary, write_atomically
from raykd.storage.retries import RetryPolicy
from raykd.storage.sealed_json import DOCTOR, Parse, seal, unseal
from raykd.storage.streams import BLOCK, Blocks, Sink, WriteError, write_beside, write_to_upload

SCHEMES = ("file", "s3", "gs", "gcs", "mock")
"""`mock` is pyarrow's object store in memory, for tests."""

ABANDONED_S = 600.0

CHUNK_BYTES = 16 * 2**20
"""What is asked of an object store at once where a file is copied to this node."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class Stamp(NamedTuple):
    """Bytes of a file, and the time of its last change in ns where the store knows it."""

    bytes: int
    modified_ns: int | None


T = TypeVar("T")
_TRIES = 3


class Storage:
    """A folder of a file system or object store; names are relative to it, with `/` between folders.

    Crosses processes by its URI. Every failure is a `StoreError` that names the file and the hint.
    """

    def __init__(self, uri: str):
        scheme, colon, rest = str(uri).partition("://")
        if colon and scheme not in SCHEMES:
            raise StoreError(
                redact(str(uri)), f"unknown scheme {scheme!r}", "use a path, file://, s3:// or gs://"
            )
        self.is_local = not colon or scheme == "file"
        if self.is_local:
            # Absolute at once: Ray's workers have other working directories.
            self.uri = str(Path(expand_variables(rest if colon else str(uri))).expanduser().absolute())
            self._system, self._root = fs.LocalFileSystem(), self.uri
        else:
            # As it was written: what its variables stand for is in no other process' arguments.
            self.uri = str(uri).rstrip("/")
            self._system, self._root = object_stores.connect(self.uri)
        self._retries = RetryPolicy(is_local=self.is_local)

    def __reduce__(self) -> tuple[type[Storage], tuple[str]]:
        return Storage, (self.uri,)

    def __repr__(self) -> str:
        return f"Storage({self.address!r})"

    @property
    def address(self) -> str:
        """The URI as it is shown: without passwords and options."""
        if self.is_local:
            return self.uri.rstrip("/")  # signs of URIs are signs of names here
        return redact(self.uri).partition("?")[0].rstrip("/")

    def child(self, *names: str) -> Storage:
        """The folder `names` below this one; it need not exist."""
        below = Storage.__new__(Storage)
        address, question, options = (self.uri, "", "") if self.is_local else self.uri.partition("?")
        below.uri = "/".join((address.rstrip("/"), *map(_checked, names))) + question + options
        below.is_local, below._system, below._retries = self.is_local, self._system, self._retries
        below._root = "/".join((self._root.rstrip("/"), *names))
        return below

    def exists(self, name: str) -> bool:
        """Whether the file `name` exists (a folder of that name is not a file)."""
        return self._info(name).type == fs.FileType.File

    def size(self, name: str) -> int:
        """Bytes of the file `name`."""
        return self.stamp(name).bytes

    def stamp(self, name: str) -> Stamp:
        """Size and time of the file `name`."""
        info = self._info(name)
        if info.type != fs.FileType.File:
            raise self._missing_error(name)
        return Stamp(int(info.size), info.mtime_ns)

    def names(self, prefix: str = "") -> list[str]:
        """The names of all files below whose name starts with `prefix`, sorted; without temporary files."""
        return list(self.files(prefix))

    def files(self, prefix: str = "") -> dict[str, Stamp]:
        """The same with size and time of each, in one listing."""
        folder = prefix.rpartition("/")[0]
        files = self._list(folder)
        names = sorted(name for name in files if name.startswith(prefix) and not is_temporary(name))
        return {name: files[name] for name in names}

    def _list(self, folder: str) -> dict[str, Stamp]:
        """All files below `folder`, temporary ones too."""
        selector = fs.FileSelector(self._path(folder), recursive=True, allow_not_found=True)
        try:
            infos = self._retries.call(lambda: self._system.get_file_info(selector))
        except OSError as error:
            raise self._access_error(folder, "listed", error) from error
        start = len(self._root.rstrip("/")) + 1
        return {
            info.path[start:]: Stamp(int(info.size), info.mtime_ns)
            for info in infos
            if info.type == fs.FileType.File
        }

    def abandoned_files(self) -> dict[str, int]:
        """The temporary files below that killed processes left, and their bytes: no write takes ten minutes, and a
        younger one may have a writer. An object store has none: it keeps nothing of a broken put.
        """
        if not self.is_local:
            return {}
        latest = (time.time() - ABANDONED_S) * 1e9
        return {
            name: stamp.bytes
            for name, stamp in self._list("").items()
            if is_temporary(name) and (stamp.modified_ns or 0) <= latest
        }

    def find(self, name: str) -> bytes | None:
        """The bytes of the file `name`; None where there is none."""
        try:
            return self.read(name)
        except MissingError:
            return None

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`."""
        with self._named_errors(name):
            return self._retries.call(lambda: _read_whole(self._system, self._path(name)))

    def open(self, name: str) -> io.BufferedReader:
        """The file `name`, to be read block by block; each block is tried again as a whole file is.

        Raises:
            StoreError: it is missing, or cannot be read, also later.
        """
        with self._named_errors(name):
            file = self._retries.call(lambda: self._system.open_input_file(self._path(name)))
        return io.BufferedReader(Blocks(file, lambda read: self._block(name, read)), BLOCK)

    def _block(self, name: str, read: Callable[[], bytes]) -> bytes:
        with self._named_errors(name):
            return self._retries.call(read)

    def read_json(
        self,
        name: str,
        parse: Parse[T] = dict,  # pyright: ignore[reportArgumentType]
        *,
        edited: bool = False,
        hint: str = DOCTOR,
    ) -> T:
        """What `parse` makes of the JSON object in the file `name`; by default the object itself.

        With `edited` a file without a checksum is read too: a user changed it and removed the checksum.

        Raises:
            StoreError: the file is missing or no JSON, or it does not have the checksum that it was written with.
            OtherVersionError: it has, and `parse` cannot read it, whatever it raises; or it was written without one.
        """
        return unseal(self.read(name), parse, self._address(name), edited=edited, hint=hint)

    def find_json(self, name: str, parse: Parse[T] = dict) -> T | None:  # pyright: ignore[reportArgumentType]
        """The same; None where there is no file `name`."""
        data = self.find(name)
        return None if data is None else unseal(data, parse, self._address(name))

    def write(self, name: str, data: bytes) -> None:
        """Write the file `name`, whole or not at all; an existing one is replaced.

        Raises:
            StoreError: it cannot be written; no part of it and no temporary file remains.
        """
        try:
            if self.is_local:
                self._retries.call(lambda: write_atomically(Path(self._path(name)), data))
            else:
                self._retries.call(lambda: _put(self._system, self._path(name), data))
        except OSError as error:
            raise self._write_error(name, memoryview(data).nbytes, error) from error

    @contextmanager
    def writer(self, name: str) -> Iterator[Sink]:
        """Write the file `name` piece by piece: it is there, whole, once the block has ended without an error.

        A local file is written beside its place, under a temporary name; what goes to an object store is collected
        in a temporary file of this machine first, so that nothing unfinished is ever put.

        Raises:
            StoreError: it cannot be written; no part of it and no temporary file remains.
        """
        sink = Sink()
        try:
            if self.is_local:
                yield from write_beside(Path(self._path(name)), sink)
            else:
                yield from write_to_upload(
                    sink, lambda file: self._retries.call(lambda: self._upload(file, name))
                )
        except WriteError as failed:
            raise self._write_error(name, sink.size, failed.error) from failed.error

    def _upload(self, file: Path, name: str) -> None:
        data = pa.memory_map(str(file)).read_buffer() if file.stat().st_size else b""
        # One call: a stream that is left between two would be closed, and what it has would stand as the whole.
        with self._system.open_output_stream(self._path(name), compression=None) as to:
            to.write(data)

    def write_json(self, name: str, value: PlainObject) -> None:
        """Write `value` as a JSON object with its checksum, readable by people; NaN is refused."""
        self.write(name, seal(value))

    def local_path(self, name: str, *, sha256: str = "") -> Path:
        """A path to read `name` from: its own if local, else a copy in this node's cache.

        A copy that is not of the original's size and time is fetched again. Where the checksum is known, the copy that
        has it is taken without a request. It may be removed later, to make room for others (`cache.py`): open it at
        once, and ask again where it is gone.

        Raises:
            ValueError: the original has another checksum than `sha256`; of a local file it is not compared.
        """
        if not self.is_local and sha256:
            return cached_content(self._address(name), sha256, self._opener(name))
        stamp = self.stamp(name)
        if self.is_local:
            return Path(self._path(name))
        original = {"size": stamp.bytes, "modified_ns": stamp.modified_ns}
        return cached_copy(self._address(name), original, self._opener(name))

    def read_local(self, name: str, read: Callable[[Path], T], *, sha256: str = "") -> T:
        """What `read` gives for the local path of `name`, asked again where the copy made room for others meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return read(self.local_path(name, sha256=sha256))
            except FileNotFoundError:
                if self.is_local:
                    raise
        return read(self.local_path(name, sha256=sha256))

    def remove(self, name: str) -> None:
        """Remove the file `name`; nothing happens if it does not exist."""
        try:
            self._retries.call(lambda: self._system.delete_file(self._path(name)))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._access_error(name, "removed", error) from error

    def remove_empty(self, name: str) -> None:
        """Remove the folder `name` and those below that hold nothing; an object store has no empty folders."""
        if self.is_local:
            for folder, _, _ in os.walk(self._path(name), topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)

    def _opener(self, name: str) -> OpenOriginal:
        """Opens the file `name` to be copied, piece by piece."""

        def opened() -> tuple[int, Iterator[bytes]]:
            with self._named_errors(name):
                file = self._retries.call(lambda: self._system.open_input_file(self._path(name)))
                return file.size(), self._pieces(name, file)

        return opened

    def _pieces(self, name: str, file: pa.NativeFile) -> Iterator[bytes]:
        """Its bytes; each piece is asked for again where the store is out of reach."""
        with self._named_errors(name), file:
            for start in range(0, file.size(), CHUNK_BYTES):
                wanted = min(CHUNK_BYTES, file.size() - start)
                piece = self._retries.call(lambda wanted=wanted, start=start: file.read_at(wanted, start))
                if len(piece) != wanted:
                    raise OSError("it was changed while it was read")
                yield piece

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        """What reading the file `name` raises, as an error that names it."""
        try:
            yield
        except FileNotFoundError as error:
            raise self._missing_error(name) from error
        except OSError as error:
            raise self._access_error(name, "read", error) from error

    def _info(self, name: str) -> fs.FileInfo:
        try:
            return self._retries.call(lambda: self._system.get_file_info(self._path(name)))
        except OSError as error:
            raise self._access_error(name, "looked up", error) from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{_checked(name)}" if name else self._root

    def _address(self, name: str) -> str:
        return f"{self.address}/{name}"

    def _missing_error(self, name: str) -> MissingError:
        return MissingError(
            self._address(name), "does not exist", "correct the store's URI, or make the file again"
        )

    def _access_error(self, name: str, verb: str, error: OSError) -> StoreError:
        hint = "make it accessible" if self.is_local else object_stores.hint_for(self.uri, error)
        problem = f"cannot be {verb} ({_reason(error)})"
        return StoreError(self._address(name), problem, hint, self._retries.is_transient(error))

    def _write_error(self, name: str, needed: int, error: OSError) -> StoreError:
        problem = f"cannot be written ({_reason(error)}): {needed:,} bytes needed"
        if self.is_local:
            problem += f", {free_bytes(Path(self._path(name))):,} free"
        if error.errno in _FULL:
            hint = "free some space, or set another store, and start again: complete files are kept"
        elif error.errno in _FORBIDDEN:
            hint = "make the folder writable, or set another store"
        else:
            hint = "check the folder" if self.is_local else object_stores.hint_for(self.uri, error)
        passing = error.errno in _FULL or self._retries.is_transient(error)
        return StoreError(self._address(name), problem, hint, passing)


def _checked(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"a name in a store must be below it, got {name!r}")
    return name


def _read_whole(system: fs.FileSystem, path: str) -> bytes:
    # No compression: pyarrow would unpack a file by its ending.
    with system.open_input_stream(path, compression=None) as stream:
        return stream.read()


def _put(system: fs.FileSystem, path: str, data: bytes) -> None:
    # Seen only once it is complete; no folder objects are made.
    with system.open_output_stream(path, compression=None) as stream:
        stream.write(data)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno else object_stores.short_message(error)
