"""Files under a URI: a local path, file://, s3:// or gs://; a file is written whole, or not at all.

A local file is written under a temporary name, synced and renamed; on an object store it is one put. So a file
that can be seen is complete, also when a process was killed. JSON is written with its checksum, which is compared
whenever it is read.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from pyarrow import fs

from raykd import object_stores
from raykd.cache import cached_copy
from raykd.errors import OtherVersionError, StoreError
from raykd.identity import canonical
from raykd.redact import expanded, redacted
from raykd.streams import (
    BLOCK,
    Blocks,
    Sink,
    WriteError,
    collected,
    sync_folder,
    temporary_beside,
    written_beside,
)

SCHEMES = ("file", "s3", "gs", "gcs", "mock")
"""`mock` is pyarrow's object store in memory, for tests."""

DOCTOR = "`raykd doctor STORE` lists all that is damaged, and with --repair removes it, to be computed again"
"""The hint of an error that names a damaged file."""

OTHER_VERSION = "use the raykd that wrote it, or another store"
"""The hint of an error that names a whole file of another version."""

SEAL = "sha256"
"""The key of a JSON file's checksum, over the canonical form of its other keys."""

ABANDONED_S = 600.0

CHUNK_BYTES = 16 * 2**20
"""What is asked of an object store at once where a file is copied to this node."""

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each further try where a store that has answered before is out of reach."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUT_OF_REACH = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENOTCONN)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_REFUSED = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH")
"""What an object store answers that it would answer again."""


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
                redacted(str(uri)), f"unknown scheme {scheme!r}", "use a path, file://, s3:// or gs://"
            )
        self.is_local = not colon or scheme == "file"
        if self.is_local:
            # Absolute at once: Ray's workers have other working directories.
            self.uri = str(Path(expanded(rest if colon else str(uri))).expanduser().absolute())
            self._system, self._root = fs.LocalFileSystem(), self.uri
        else:
            # As it was written: what its variables stand for is in no other process' arguments.
            self.uri = str(uri).rstrip("/")
            self._system, self._root = object_stores.connect(self.uri)
        self._answered = threading.Event()
        """Whether it was ever in reach; shared with the folders below."""

    def __reduce__(self) -> tuple[type[Storage], tuple[str]]:
        return Storage, (self.uri,)

    def __repr__(self) -> str:
        return f"Storage({self.address!r})"

    @property
    def address(self) -> str:
        """The URI as it is shown: without passwords and options."""
        return redacted(self.uri).partition("?")[0].rstrip("/")

    def child(self, *names: str) -> Storage:
        """The folder `names` below this one; it need not exist."""
        below = Storage.__new__(Storage)
        address, question, options = self.uri.partition("?")
        below.uri = "/".join((address.rstrip("/"), *map(_checked, names))) + question + options
        below.is_local, below._system, below._answered = self.is_local, self._system, self._answered
        below._root = "/".join((self._root.rstrip("/"), *names))
        return below

    def exists(self, name: str) -> bool:
        """Whether the file `name` exists (a folder of that name is not a file)."""
        return self._info(name).type == fs.FileType.File

    def size(self, name: str) -> int:
        """Bytes of the file `name`."""
        info = self._info(name)
        if info.type != fs.FileType.File:
            raise self._missing(name)
        return int(info.size)

    def stamp(self, name: str) -> Stamp:
        """Size and time of the file `name`."""
        info = self._info(name)
        if info.type != fs.FileType.File:
            raise self._missing(name)
        return Stamp(int(info.size), info.mtime_ns)

    def names(self, prefix: str = "") -> list[str]:
        """The names of all files below whose name starts with `prefix`, sorted; without temporary files."""
        return list(self.files(prefix))

    def files(self, prefix: str = "") -> dict[str, Stamp]:
        """The same with size and time of each, in one listing."""
        folder = prefix.rpartition("/")[0]
        selector = fs.FileSelector(self._at(folder), recursive=True, allow_not_found=True)
        try:
            infos = self._tried(lambda: self._system.get_file_info(selector))
        except OSError as error:
            raise self._failed(folder, "listed", error) from error
        start = len(self._root.rstrip("/")) + 1
        files = {
            info.path[start:]: Stamp(int(info.size), info.mtime_ns)
            for info in infos
            if info.type == fs.FileType.File
        }
        names = sorted(name for name in files if name.startswith(prefix) and not _is_temporary(name))
        return {name: files[name] for name in names}

    def abandoned(self) -> dict[str, int]:
        """The temporary files below that killed processes left, and their bytes: no write takes ten minutes, and a
        younger one may have a writer. An object store has none: it keeps nothing of a broken put."""
        if not self.is_local:
            return {}
        selector = fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        start, latest = len(self._root.rstrip("/")) + 1, time.time() - ABANDONED_S
        found = (info for info in self._system.get_file_info(selector) if info.type == fs.FileType.File)
        left = (info for info in found if _is_temporary(info.path) and info.mtime_ns <= latest * 1e9)
        return {info.path[start:]: int(info.size) for info in left}

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`."""
        try:
            return self._tried(lambda: _read_whole(self._system, self._at(name)))
        except FileNotFoundError as error:
            raise self._missing(name) from error
        except OSError as error:
            raise self._failed(name, "read", error) from error

    def open(self, name: str) -> io.BufferedReader:
        """The file `name`, to be read block by block; each block is tried again as a whole file is.

        Raises:
            StoreError: it is missing, or cannot be read, also later.
        """
        try:
            file = self._tried(lambda: self._system.open_input_file(self._at(name)))
        except FileNotFoundError as error:
            raise self._missing(name) from error
        except OSError as error:
            raise self._failed(name, "read", error) from error
        return io.BufferedReader(Blocks(file, lambda read: self._block(name, read)), BLOCK)

    def _block(self, name: str, read: Callable[[], bytes]) -> bytes:
        try:
            return self._tried(read)
        except OSError as error:
            raise self._failed(name, "read", error) from error

    def read_json(
        self,
        name: str,
        parse: Callable[[dict[str, Any]], Any] = lambda plain: plain,
        *,
        edited: bool = False,
        hint: str = DOCTOR,
    ) -> Any:
        """What `parse` makes of the JSON object in the file `name`.

        With `edited` a file without a checksum is read too: a user changed it and removed the checksum.

        Raises:
            StoreError: the file is missing or no JSON, or it does not have the checksum that it was written with.
            OtherVersionError: it has, and `parse` cannot read it, whatever it raises; or it was written without one.
        """
        data, whole = self.read(name), False
        try:
            plain, whole = _unsealed(json.loads(data), edited=edited)
            return parse(plain)
        except StoreError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            own = type(error) in (ValueError, _UnsealedError)
            named = str(error) if own else f"{type(error).__name__}: {error}"
            reason = named.split("\n")[0]
            if whole or isinstance(error, _UnsealedError):
                problem = f"is of another version of raykd, or was changed ({reason})"
                hint = OTHER_VERSION if hint == DOCTOR else hint
                raise OtherVersionError(self._address(name), problem, hint) from error
            problem = f"is damaged, or not what raykd writes there ({reason})"
            raise StoreError(self._address(name), problem, hint) from error

    def write(self, name: str, data: bytes) -> None:
        """Write the file `name`, whole or not at all; an existing one is replaced.

        Raises:
            StoreError: it cannot be written; no part of it and no temporary file remains.
        """
        try:
            if self.is_local:
                self._tried(lambda: _write_whole(Path(self._at(name)), data))
            else:
                self._tried(lambda: _put(self._system, self._at(name), data))
        except OSError as error:
            raise self._unwritten(name, memoryview(data).nbytes, error) from error

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
                yield from written_beside(Path(self._at(name)), sink)
            else:
                yield from collected(sink, lambda file: self._tried(lambda: self._upload(file, name)))
        except WriteError as failed:
            raise self._unwritten(name, sink.size, failed.error) from failed.error

    def _upload(self, file: Path, name: str) -> None:
        data = pa.memory_map(str(file)).read_buffer() if file.stat().st_size else b""
        # One call: a stream that is left between two would be closed, and what it has would stand as the whole.
        with self._system.open_output_stream(self._at(name), compression=None) as to:
            to.write(data)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write `value` as a JSON object with its checksum, readable by people; NaN is refused."""
        sealed = {**value, SEAL: _seal(value)}
        self.write(name, (json.dumps(sealed, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())

    def local_path(self, name: str) -> Path:
        """A path to read `name` from: its own if local, else a copy in this node's cache.

        A copy that does not have its checksum, or the original's size and time, is fetched again. It may be removed
        later, to make room for others (`cache.py`): open it at once, and ask again where it is gone.
        """
        info = self._info(name)
        if info.type != fs.FileType.File:
            raise self._missing(name)
        if self.is_local:
            return Path(self._at(name))
        original = {"size": int(info.size), "modified_ns": info.mtime_ns}
        return cached_copy(self._address(name), original, lambda: self._chunks(name, original["size"]))

    def with_local(self, name: str, read: Callable[[Path], T]) -> T:
        """What `read` gives for the local path of `name`, asked again where the copy made room for others meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return read(self.local_path(name))
            except FileNotFoundError:
                if self.is_local:
                    raise
        return read(self.local_path(name))

    def remove(self, name: str) -> None:
        """Remove the file `name`; nothing happens if it does not exist."""
        try:
            if self.exists(name):
                self._tried(lambda: self._system.delete_file(self._at(name)))
        except FileNotFoundError:  # another process was faster
            return
        except OSError as error:
            raise self._failed(name, "removed", error) from error

    def remove_empty(self, name: str) -> None:
        """Remove the folder `name` and those below that hold nothing; an object store has no empty folders."""
        if self.is_local:
            for folder, _, _ in os.walk(self._at(name), topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)

    def _tried(self, do: Callable[[], T]) -> T:
        """What `do` gives, tried again for half a minute where the store has gone out of reach. One that never answered
        has a wrong address more often than not, and is reported at once."""
        for pause in PAUSES_S:
            try:
                done = do()
                self._answered.set()
                return done
            except FileNotFoundError:
                raise
            except OSError as error:
                if not self._answered.is_set() or not self._out_of_reach(error):
                    raise
            time.sleep(pause)
        return do()

    def _out_of_reach(self, error: OSError) -> bool:
        if self.is_local:
            return error.errno in _OUT_OF_REACH
        return not any(answer in str(error) for answer in _REFUSED)

    def _chunks(self, name: str, size: int) -> Iterator[bytes]:
        """The bytes of the file `name`, piece by piece; each is asked for again where the store is out of reach."""
        try:
            with self._tried(lambda: self._system.open_input_file(self._at(name))) as file:
                for start in range(0, size, CHUNK_BYTES):
                    wanted = min(CHUNK_BYTES, size - start)
                    chunk = self._tried(lambda wanted=wanted, start=start: file.read_at(wanted, start))
                    if len(chunk) != wanted:
                        raise OSError("it was changed while it was read")
                    yield chunk
        except FileNotFoundError as error:
            raise self._missing(name) from error
        except OSError as error:
            raise self._failed(name, "read", error) from error

    def _info(self, name: str) -> fs.FileInfo:
        try:
            return self._tried(lambda: self._system.get_file_info(self._at(name)))
        except OSError as error:
            raise self._failed(name, "looked up", error) from error

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{_checked(name)}" if name else self._root

    def _address(self, name: str) -> str:
        return f"{self.address}/{name}"

    def _missing(self, name: str) -> StoreError:
        return StoreError(
            self._address(name), "does not exist", "correct the store's URI, or make the file again"
        )

    def _failed(self, name: str, verb: str, error: OSError) -> StoreError:
        hint = "make it accessible" if self.is_local else object_stores.hint(self.uri, error)
        problem = f"cannot be {verb} ({_reason(error)})"
        return StoreError(self._address(name), problem, hint, self._out_of_reach(error))

    def _unwritten(self, name: str, needed: int, error: OSError) -> StoreError:
        problem = f"cannot be written ({_reason(error)}): {needed:,} bytes needed"
        if self.is_local:
            problem += f", {_free_bytes(Path(self._at(name))):,} free"
        if error.errno in _FULL:
            hint = "free some space, or set another store, and start again: complete files are kept"
        elif error.errno in _FORBIDDEN:
            hint = "make the folder writable, or set another store"
        else:
            hint = "check the folder" if self.is_local else object_stores.hint(self.uri, error)
        passing = error.errno in _FULL or self._out_of_reach(error)
        return StoreError(self._address(name), problem, hint, passing)


def _seal(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


class _UnsealedError(ValueError):
    """A JSON object was written without a checksum."""


def _unsealed(plain: Any, *, edited: bool) -> tuple[dict[str, Any], bool]:
    """The object without its checksum, and whether it had one. Raises TypeError or ValueError where it is not what was
    written."""
    if not isinstance(plain, dict):
        raise TypeError(f"expected an object, found {type(plain).__name__}")
    written = plain.pop(SEAL, None)
    if written is None and edited:
        return plain, False
    if written is None:
        # A checksum under another key was one: the key is damaged.
        lost = any(_seal({k: v for k, v in plain.items() if k != key}) == plain[key] for key in plain)
        problem = f"it has no {SEAL}: an older raykd wrote it, or it was changed by hand"
        raise (ValueError if lost else _UnsealedError)(problem)
    if (found := _seal(plain)) != written:
        raise ValueError(f"its checksum is {found[:12]}…, it was written with {str(written)[:12]}…")
    return plain, True


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


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            rest = memoryview(data).cast("B")
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    finally:
        # It exists only after a failure, an interrupt included.
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _is_temporary(name: str) -> bool:
    file = name.rpartition("/")[2]
    return file.startswith(".") and file.endswith(".tmp")


def _free_bytes(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno else object_stores.brief(error)
