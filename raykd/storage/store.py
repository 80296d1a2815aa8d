"""Files under a URI: a local path, file://, s3:// or gs://; a file is written completely or not at all.

A local file is written under a temporary name, synced and renamed; on an object store it is one put. So every visible
file is complete, even after a process was killed. JSON is written with a checksum, which is compared at every read.
"""

from __future__ import annotations

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
from raykd.storage.store_errors import StoreErrors
from raykd.storage.streams import BLOCK, Blocks, Sink, WriteError, write_beside, write_to_upload

SCHEMES = ("file", "s3", "gs", "gcs", "mock")
"""`mock` is pyarrow's object store in memory, for tests."""

ABANDONED_S = 600.0
"""Age in seconds from which a temporary file counts as abandoned: no writer pauses for ten minutes."""

CHUNK_BYTES = 16 * 2**20
"""Bytes of one request when a file is copied from an object store to this node."""

_TRIES = 3
"""Most attempts to read a copy in the node's cache, which another process may remove."""

T = TypeVar("T")


class Stamp(NamedTuple):
    """Size of a file in bytes, and the time of its last change in ns; None if the store does not know the time."""

    bytes: int
    modified_ns: int | None


class Storage:
    """A folder of a file system or object store; names are relative to it, with `/` between folders.

    A `Storage` crosses processes by its URI. Every failure is a `StoreError` that names the file and has a hint.
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
            # The URI keeps its variables, so that no secret is sent to other processes.
            self.uri = str(uri).rstrip("/")
            self._system, self._root = object_stores.connect(self.uri)
        self._retries = RetryPolicy(is_local=self.is_local)
        self._errors = StoreErrors(self.uri, self.is_local, self._retries)

    def __reduce__(self) -> tuple[type[Storage], tuple[str]]:
        return Storage, (self.uri,)

    def __repr__(self) -> str:
        return f"Storage({self.address!r})"

    @property
    def address(self) -> str:
        """The URI for messages: without passwords and options."""
        if self.is_local:
            return self.uri.rstrip("/")  # `?` and `@` are part of a local name
        return redact(self.uri).partition("?")[0].rstrip("/")

    def child(self, *names: str) -> Storage:
        """Return the subfolder `names`; it need not exist."""
        folder = Storage.__new__(Storage)
        address, question, options = (self.uri, "", "") if self.is_local else self.uri.partition("?")
        folder.uri = "/".join((address.rstrip("/"), *map(_check_name, names))) + question + options
        folder.is_local, folder._system = self.is_local, self._system
        folder._retries, folder._errors = self._retries, self._errors
        folder._root = "/".join((self._root.rstrip("/"), *names))
        return folder

    def exists(self, name: str) -> bool:
        """Return true if the file `name` exists; a folder of that name does not count."""
        return self._info(name).type == fs.FileType.File

    def size(self, name: str) -> int:
        """Bytes of the file `name`."""
        return self.stamp(name).bytes

    def stamp(self, name: str) -> Stamp:
        """Size and time of the file `name`."""
        info = self._info(name)
        if info.type != fs.FileType.File:
            raise self._errors.missing(self._address(name))
        return Stamp(int(info.size), info.mtime_ns)

    def names(self, prefix: str = "") -> list[str]:
        """The sorted names of the files below the folder with a `prefix`, without temporary files."""
        return list(self.files(prefix))

    def files(self, prefix: str = "") -> dict[str, Stamp]:
        """The files listed by `names`, with size and time of each, in one listing."""
        folder = prefix.rpartition("/")[0]
        files = self._list(folder)
        names = sorted(name for name in files if name.startswith(prefix) and not is_temporary(name))
        return {name: files[name] for name in names}

    def _list(self, folder: str) -> dict[str, Stamp]:
        """All files below `folder`, including temporary ones."""
        selector = fs.FileSelector(self._path(folder), recursive=True, allow_not_found=True)
        try:
            infos = self._retries.call(lambda: self._system.get_file_info(selector))
        except OSError as error:
            raise self._errors.access(self._address(folder), "listed", error) from error
        start = len(self._root.rstrip("/")) + 1
        return {
            info.path[start:]: Stamp(int(info.size), info.mtime_ns)
            for info in infos
            if info.type == fs.FileType.File
        }

    def abandoned_files(self) -> dict[str, int]:
        """The temporary files left by killed processes, with their bytes.

        Files younger than ten minutes may still have a writer and are left out. An object store has none: it keeps
        nothing of a broken put.
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
        """The bytes of the file `name`; None if it does not exist."""
        try:
            return self.read(name)
        except MissingError:
            return None

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`."""
        with self._named_errors(name):
            return self._retries.call(lambda: _read_whole(self._system, self._path(name)))

    def open(self, name: str) -> io.BufferedReader:
        """Open the file `name` to be read block by block; each block is retried like a whole file.

        Raises:
            StoreError: the file is missing, or cannot be read, also during later reads.
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
        """Return the parsed JSON object in the file `name`.

        Args:
            name: of the file.
            parse: makes the value of the object; by default the object itself is returned.
            edited: accept a file without a checksum: a user changed it and removed the checksum.
            hint: the hint of errors.

        Raises:
            StoreError: the file is missing or no JSON, or does not have the checksum that it was written with.
            OtherVersionError: the file is undamaged, but of another store format, or not readable by `parse`; or it was
                written without a checksum.
        """
        return unseal(self.read(name), parse, self._address(name), edited=edited, hint=hint)

    def find_json(self, name: str, parse: Parse[T] = dict) -> T | None:  # pyright: ignore[reportArgumentType]
        """Return the parsed JSON object in the file `name`; None if there is no such file.

        Args:
            name: of the file.
            parse: makes the value of the object.
        """
        data = self.find(name)
        return None if data is None else unseal(data, parse, self._address(name))

    def write(self, name: str, data: bytes) -> None:
        """Write the file `name` completely or not at all; an existing file is replaced.

        Args:
            name: of the file.
            data: its content.

        Raises:
            StoreError: the file cannot be written; no part of it and no temporary file remains.
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
        """Write the file `name` piece by piece; it appears, complete, when the block ends without an error.

        A local file is written under a temporary name in its folder. Data for an object store is first collected in a
        local temporary file, so that nothing unfinished is ever put.

        Raises:
            StoreError: the file cannot be written; no part of it and no temporary file remains.
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
        # A single write: an error between two would close the stream, and the half would be stored as the whole.
        with self._system.open_output_stream(self._path(name), compression=None) as stream:
            stream.write(data)

    def write_json(self, name: str, value: PlainObject) -> None:
        """Write `value` as a JSON object with a checksum, indented for people.

        Args:
            name: of the file.
            value: a JSON object without NaN.
        """
        self.write(name, seal(value))

    def local_path(self, name: str, *, sha256: str = "") -> Path:
        """Return a path for reading `name`: the file itself if local, else a copy in this node's cache.

        A copy that differs from the original in size or time is fetched again. If the checksum is given, a copy with
        this checksum is used without a request. A copy may be removed later to make room (`cache.py`): open it at once,
        and call again if it is gone, or use `read_local`.

        Args:
            name: of the file.
            sha256: the checksum of the original, in hex, if known.

        Raises:
            ValueError: the original has another checksum than `sha256`; the checksum of a local file is not compared.
        """
        if not self.is_local and sha256:
            return cached_content(self._address(name), sha256, self._opener(name))
        stamp = self.stamp(name)
        if self.is_local:
            return Path(self._path(name))
        original = {"size": stamp.bytes, "modified_ns": stamp.modified_ns}
        return cached_copy(self._address(name), original, self._opener(name))

    def read_local(self, name: str, read: Callable[[Path], T], *, sha256: str = "") -> T:
        """Call `read` with the local path of `name`; call it again if the copy was removed in the meantime.

        Args:
            name: of the file.
            read: reads the file at a path.
            sha256: the checksum of the original, in hex, if known.
        """
        for _ in range(_TRIES - 1):
            try:
                return read(self.local_path(name, sha256=sha256))
            except FileNotFoundError:
                if self.is_local:
                    raise
        return read(self.local_path(name, sha256=sha256))

    def remove(self, name: str) -> None:
        """Remove the file `name`, if it exists."""
        try:
            self._retries.call(lambda: self._system.delete_file(self._path(name)))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._errors.access(self._address(name), "removed", error) from error

    def remove_empty(self, name: str) -> None:
        """Remove the empty folders below the folder `name`, and then `name` if it is empty; files stay.

        An object store has no empty folders.
        """
        if self.is_local:
            for folder, _, _ in os.walk(self._path(name), topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)

    def _opener(self, name: str) -> OpenOriginal:
        """Return a function that opens the file `name` for a copy; see `OpenOriginal`."""

        def open_original() -> tuple[int, Iterator[bytes]]:
            with self._named_errors(name):
                file = self._retries.call(lambda: self._system.open_input_file(self._path(name)))
                return file.size(), self._pieces(name, file)

        return open_original

    def _pieces(self, name: str, file: pa.NativeFile) -> Iterator[bytes]:
        """The bytes of a file; each piece is retried if the store is out of reach."""
        with self._named_errors(name), file:
            for start in range(0, file.size(), CHUNK_BYTES):
                length = min(CHUNK_BYTES, file.size() - start)
                piece = self._retries.call(lambda length=length, start=start: file.read_at(length, start))
                if len(piece) != length:
                    raise OSError("the file changed while it was read")
                yield piece

    @contextmanager
    def _named_errors(self, name: str) -> Iterator[None]:
        """Turn errors of reading into a StoreError with the file's name."""
        try:
            yield
        except FileNotFoundError as error:
            raise self._errors.missing(self._address(name)) from error
        except OSError as error:
            raise self._errors.access(self._address(name), "read", error) from error

    def _info(self, name: str) -> fs.FileInfo:
        try:
            return self._retries.call(lambda: self._system.get_file_info(self._path(name)))
        except OSError as error:
            raise self._errors.access(self._address(name), "looked up", error) from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{_check_name(name)}" if name else self._root

    def _address(self, name: str) -> str:
        return f"{self.address}/{name}"

    def _write_error(self, name: str, size: int, error: OSError) -> StoreError:
        free = free_bytes(Path(self._path(name))) if self.is_local else None
        return self._errors.write(self._address(name), size, error, free=free)


def _check_name(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"a name in a store must be below it, got {name!r}")
    return name


def _read_whole(system: fs.FileSystem, path: str) -> bytes:
    # With its default, pyarrow would decompress a file named .gz.
    with system.open_input_stream(path, compression=None) as stream:
        return stream.read()


def _put(system: fs.FileSystem, path: str, data: bytes) -> None:
    # The object appears only when it is complete; no objects are made for folders.
    with system.open_output_stream(path, compression=None) as stream:
        stream.write(data)
