"""The cache of a node: copies of an object store's files, shared by all processes of the node and bounded in size.

    <RAYKD_CACHE, else ~/.cache/raykd>/<hash of the checksum or the address>/<name>, checked.json, lock
    <RAYKD_CACHE, else ~/.cache/raykd>/locks/<name>/lock        held while one process works for all

`RAYKD_CACHE_BYTES` is the bound; the least recently used copies are removed first. The default is 50 GiB, or half of
the space available to the cache if that is less. A file that a process has mapped may be removed: on Linux and macOS
the mapping stays readable, and the space is freed with the mapping.
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
"""Bound of the copies that one process fetches for itself alone (`fresh_copies`)."""

_NOTE, _LOCK = "checked.json", "lock"
_FOLDER = re.compile(r"[0-9a-f]{32}")

_allowance_bytes: dict[Path, int] = {}
"""Folder of a cache → bytes that this process may write before measuring the cache again."""
_bound_lock = threading.Lock()
_fresh_folder: Path | None = None
"""Folder that replaces the node's cache in the body of `fresh_copies`."""


OpenOriginal = Callable[[], tuple[int, Iterable[bytes]]]
"""Opens the original file: returns its size in bytes and an iterator over its content."""


def cached_copy(address: str, original: Mapping[str, int], open_original: OpenOriginal) -> Path:
    """Return the path of the node's copy of a file; fetch the file if there is no copy of this original.

    Several processes that want one file fetch it once. The checksum of a copy is compared when it is fetched, and again
    if the copy has changed since or the machine was restarted.

    Args:
        address: the URI of the file.
        original: `size` (bytes) and `modified_ns` of the file in the store.
        open_original: opens the file in the store.

    Raises:
        StoreError: the copy cannot be written.
    """
    return _copy(address, address, original, open_original)


def cached_content(address: str, sha256: str, open_original: OpenOriginal) -> Path:
    """Return the path of the node's copy of a file with a given checksum; fetch the file if there is no copy.

    A copy with the checksum is returned without a request to the store, even if the store no longer has the file.

    Args:
        address: the URI of the file.
        sha256: the checksum, in hex.
        open_original: opens the file in the store.

    Raises:
        ValueError: the fetched file has another checksum; no copy of it is kept.
        StoreError: the copy cannot be written.
    """
    return _copy(f"sha256:{sha256}", address, {"sha256": sha256}, open_original)


def _copy(key: str, address: str, original: Mapping[str, int | str], open_original: OpenOriginal) -> Path:
    folder = cache_folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
    copy = folder / address.rpartition("/")[2]
    if not _is_current(copy, original):
        try:
            with _locked(folder):
                # Another process may have fetched it meanwhile.
                if not _is_current(copy, original):
                    size, chunks = open_original()
                    _make_room(folder.parent, size)
                    _fetch(copy, original, chunks)
        except OSError as error:
            problem = f"cannot be cached ({(error.strerror or str(error)).lower()})"
            raise StoreError(str(copy), problem, "set RAYKD_CACHE to a folder with free space") from error
    with suppress(OSError):
        os.utime(folder / _NOTE)  # the time of the last use decides which copies are removed first
    return copy


def cache_folder() -> Path:
    """The folder of the node's copies; it may not exist yet."""
    return _fresh_folder or _default_folder()


def _default_folder() -> Path:
    if chosen := os.environ.get("RAYKD_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raykd"


@contextmanager
def fresh_copies() -> Iterator[None]:
    """Ignore the node's copies in the body: fetch and compare all files again, for a check of the store itself.

    The copies are removed at the end. Processes of one node do this one at a time.
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
    """Hold a lock shared by this user's processes on the node; without a writable cache folder the lock is skipped.

    Args:
        name: of the lock.
    """
    with ExitStack() as lock:
        with suppress(OSError):
            lock.enter_context(_locked(cache_folder() / "locks" / name))
        yield


def _is_current(copy: Path, original: Mapping[str, int | str]) -> bool:
    """Return true if the copy is complete and belongs to the current original."""
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
    """Record a comparison of the checksum, with the state of the file and the boot of the machine.

    A power cut can damage a file without changing its state, so the record is valid for one boot only.
    """
    note = {"original": dict(original), "sha256": sha256, "compared": [_boot(), *state]}
    with _replace_file(copy.parent / _NOTE) as file:
        file.write(json.dumps(note).encode())


@lru_cache(maxsize=1)
def _boot() -> str:
    """An identifier of the machine's current boot."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return str(psutil.boot_time())


@contextmanager
def _replace_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to be renamed to `path` once complete.

    The file is not synced: after a power cut the checksum is compared again (`_is_current`), and a damaged copy is
    fetched again.
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
    """Hold the lock of a copy's folder; with `wait=False`, raise BlockingIOError if another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _make_room(root: Path, size: int) -> None:
    """Remove the least recently used copies until a new file of `size` bytes fits into the bound.

    Measuring all copies is expensive. Room for a sixteenth of the bound is therefore made at once, and this process
    measures again once it has written that much. Several processes may exceed the bound by a sixteenth each. A single
    file larger than the bound is kept, as the only copy. A copy whose lock is held stays, and counts.
    """
    with _bound_lock:
        if size > _allowance_bytes.get(root, -1):
            copies = sorted(_copies(root))
            used_bytes = sum(copy_bytes for _, copy_bytes, _ in copies)
            bound = _bound(root, used_bytes)
            _allowance_bytes[root] = max(size, bound // 16)
            for _, copy_bytes, folder in copies:
                if used_bytes + _allowance_bytes[root] <= bound:
                    break
                used_bytes -= copy_bytes if _try_remove(folder) else 0
        _allowance_bytes[root] -= size


def _bound(root: Path, used_bytes: int) -> int:
    if root == _fresh_folder:
        return FRESH_BYTES
    chosen = os.environ.get("RAYKD_CACHE_BYTES")
    if not chosen:
        return min(DEFAULT_BYTES, (shutil.disk_usage(root).free + used_bytes) // 2)
    if not chosen.isdecimal():
        problem = f"{chosen!r} is not a number of bytes"
        raise StoreError("RAYKD_CACHE_BYTES", problem, f"set it to a whole number, such as {DEFAULT_BYTES}")
    return int(chosen)


def _copies(root: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield the time of last use (ns), the size in bytes and the folder of each copy."""
    for folder in (Path(entry) for entry in os.scandir(root) if _FOLDER.fullmatch(entry.name)):
        with suppress(OSError):  # another process removes it
            files = {file.name: file.stat() for file in os.scandir(folder)}
            last_use = files[_NOTE] if _NOTE in files else folder.stat()
            yield last_use.st_mtime_ns, sum(file.st_size for file in files.values()), folder


def _try_remove(folder: Path) -> bool:
    """Remove one copy unless a process is fetching it; return true if the copy is gone."""
    try:
        with _locked(folder, wait=False):
            shutil.rmtree(folder)
    except OSError:
        return False
    return True
