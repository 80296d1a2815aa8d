"""Copies of an object store's files on this node, for all processes of it: bounded, the least recently used go first.

    <RAYKD_CACHE, else ~/.cache/raykd>/<hash of the checksum or the address>/<name>, checked.json, lock
    <RAYKD_CACHE, else ~/.cache/raykd>/locks/<name>/lock        what one process of the node does for all

`RAYKD_CACHE_BYTES` is the most that they take. Where it is not set it is 50 GiB, or half of what the disk could give
them if that is less. A file that a process has mapped may be removed: on Linux and macOS it stays readable there, and
its bytes become free when it is unmapped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

import psutil

from raykd.errors import StoreError
from raykd.storage.digests import State, check_sha256, file_state, path_sha256, remember_sha256
from raykd.storage.local_files import temporary_path

DEFAULT_BYTES = 50 * 2**30
FRESH_BYTES = 2**30
"""The most that copies take which one process fetches for itself alone."""

_NOTE, _LOCK = "checked.json", "lock"
_FOLDER = re.compile(r"[0-9a-f]{32}")

_unchecked_bytes: dict[Path, int] = {}
"""Bytes that this process may still write before it looks again at what a cache holds."""
_bound_lock = threading.Lock()
_fresh_folder: Path | None = None
"""The folder of the copies while none of the node's is used (`fresh_copies`)."""


OpenOriginal = Callable[[], tuple[int, Iterable[bytes]]]
"""Opens the original: its bytes, and its content piece by piece."""


def cached_copy(address: str, original: Mapping[str, int], open_original: OpenOriginal) -> Path:
    """The path of this node's copy of the file at `address`; fetched where there is none of this original.

    original: `size` and `modified_ns`. Several processes that want one file fetch it once. A copy is compared with its
    checksum when it is fetched, and once more where it changed since, or the machine was started again.

    Raises:
        StoreError: the copy cannot be written.
    """
    return _copy(address, address, original, open_original)


def cached_content(address: str, sha256: str, open_original: OpenOriginal) -> Path:
    """The same of the file at `address` that has this checksum: whether the store has it still is not asked for.

    Raises:
        ValueError: what is fetched has another checksum; no copy of it is kept.
        StoreError: the copy cannot be written.
    """
    return _copy(f"sha256:{sha256}", address, {"sha256": sha256}, open_original)


def _copy(key: str, address: str, original: Mapping[str, int | str], opened: OpenOriginal) -> Path:
    folder = cache_folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
    copy = folder / address.rpartition("/")[2]
    if not _is_current(copy, original):
        try:
            with _locked(folder):
                # Another process may have fetched it meanwhile.
                if not _is_current(copy, original):
                    size, chunks = opened()
                    _make_room(folder.parent, size)
                    _fetch(copy, original, chunks)
        except OSError as error:
            problem = f"cannot be cached ({(error.strerror or str(error)).lower()})"
            raise StoreError(str(copy), problem, "set RAYKD_CACHE to a folder with free space") from error
    with suppress(OSError):
        os.utime(folder / _NOTE)  # when it was last used
    return copy


def cache_folder() -> Path:
    """The folder of this node's copies; it need not exist."""
    return _fresh_folder or _default_folder()


def _default_folder() -> Path:
    if chosen := os.environ.get("RAYKD_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raykd"


@contextmanager
def fresh_copies() -> Iterator[None]:
    """While the body runs, this process uses no copy that is on the node: every file is fetched and compared again, as
    one that checks the store itself wants it. The copies are removed at the end; processes do this one by one.
    """
    global _fresh_folder
    folder = _default_folder() / "fresh"
    with node_lock("fresh"):
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        _fresh_folder = folder
        try:
            yield
        finally:
            _fresh_folder = None
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def node_lock(name: str) -> Iterator[None]:
    """Hold a lock of this user on this node. Where there is no place for it, nobody waits."""
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(_locked(cache_folder() / "locks" / name))
        yield


def _is_current(copy: Path, original: Mapping[str, int | str]) -> bool:
    """Whether the copy is whole, and of this original."""
    try:
        note = json.loads((copy.parent / _NOTE).read_bytes())
        if note["original"] != original:
            return False
        state = file_state(os.stat(copy))
        if note["compared"] == [_boot(), *state]:
            remember_sha256(state, note["sha256"])
            return True
        if path_sha256(copy) != note["sha256"]:
            return False
        _write_note(copy, original, note["sha256"], state)
        return True
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _fetch(copy: Path, original: Mapping[str, int | str], chunks: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    with _replace_file(copy) as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        check_sha256(digest.hexdigest(), str(original.get("sha256", digest.hexdigest())))
    state = file_state(os.stat(copy))
    _write_note(copy, original, digest.hexdigest(), state)
    remember_sha256(state, digest.hexdigest())


def _write_note(copy: Path, original: Mapping[str, int | str], sha256: str, state: State) -> None:
    """Note that the copy was compared with its checksum in this state, since the machine was started: what a power cut
    left of it would look the same.
    """
    note = {"original": dict(original), "sha256": sha256, "compared": [_boot(), *state]}
    with _replace_file(copy.parent / _NOTE) as file:
        file.write(json.dumps(note).encode())


@lru_cache(maxsize=1)
def _boot() -> str:
    """This machine since it was started."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return str(psutil.boot_time())


@contextmanager
def _replace_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is whole. It is not synced: what a power cut leaves is compared
    again (`_boot`), has another checksum, and is fetched again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the folder of a copy. Raises BlockingIOError where another does and `wait` is off."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _make_room(root: Path, size: int) -> None:
    """Remove the least recently used copies until `size` bytes more are within the bound.

    Looking at all copies is expensive, so a sixteenth of the bound is made free at once, and this process looks again
    when it has written as much: several processes may exceed the bound by as much each. One file that is larger than
    the bound is kept, alone.
    """
    with _bound_lock:
        if size > _unchecked_bytes.get(root, -1):
            copies = sorted(_copies(root))
            held = sum(each for _, each, _ in copies)
            bound = _bound(root, held)
            _unchecked_bytes[root] = max(size, bound // 16)
            for _, each, folder in copies:
                if held + _unchecked_bytes[root] <= bound:
                    break
                held -= each if _try_remove(folder) else 0
        _unchecked_bytes[root] -= size


def _bound(root: Path, held: int) -> int:
    if root == _fresh_folder:
        return FRESH_BYTES
    chosen = os.environ.get("RAYKD_CACHE_BYTES")
    if not chosen:
        return min(DEFAULT_BYTES, (shutil.disk_usage(root).free + held) // 2)
    if not chosen.isdecimal():
        problem = f"{chosen!r} is not a number of bytes"
        raise StoreError("RAYKD_CACHE_BYTES", problem, f"set it to a whole number, such as {DEFAULT_BYTES}")
    return int(chosen)


def _copies(root: Path) -> Iterator[tuple[int, int, Path]]:
    """When each copy was last used (ns), its bytes and its folder."""
    for folder in (Path(entry) for entry in os.scandir(root) if _FOLDER.fullmatch(entry.name)):
        with suppress(OSError):  # another process removes it
            files = {file.name: file.stat() for file in os.scandir(folder)}
            used = files[_NOTE] if _NOTE in files else folder.stat()
            yield used.st_mtime_ns, sum(each.st_size for each in files.values()), folder


def _try_remove(folder: Path) -> bool:
    """Remove one copy, unless a process is fetching it; whether it is gone."""
    try:
        with _locked(folder, wait=False):
            shutil.rmtree(folder)
    except OSError:
        return False
    return True
