"""Checksums of files on this machine: each is read for its checksum once per process, as long as it stays as it is."""

from __future__ import annotations

import hashlib
import os
from io import FileIO
from pathlib import Path

State = tuple[int, int, int, int, int]
"""Device, inode, size, time of the last change of the content and of the file, in ns."""

_digests: dict[State, str] = {}
"""What this process knows: state → sha256."""


def file_state(now: os.stat_result) -> State:
    """What changes where a file changes."""
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def file_sha256(file: FileIO) -> str:
    """The sha256 (hex) of a file opened without a buffer."""
    state = file_state(os.fstat(file.fileno()))
    if state not in _digests:
        _digests[state] = hashlib.file_digest(file, "sha256").hexdigest()
    return _digests[state]


def path_sha256(path: Path) -> str:
    """The same of the file at `path`."""
    with open(path, "rb", buffering=0) as file:
        return file_sha256(file)


def remember_sha256(state: State, sha256: str) -> None:
    """The file that is in this state has this checksum: it was compared already."""
    _digests[state] = sha256


def check_sha256(found: str, written: str) -> None:
    """ValueError where a file has another checksum than the one that it was written with."""
    if found != written:
        raise ValueError(f"its checksum is {found[:12]}…, it was written with {written[:12]}…")
