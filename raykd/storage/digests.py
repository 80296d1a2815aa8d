"""Checksums of local files: each file is read once per process for its checksum, as long as it does not change."""

from __future__ import annotations

import hashlib
import os
from io import FileIO
from pathlib import Path

State = tuple[int, int, int, int, int]
"""Device, inode, size in bytes, and the times of the last change of content and of metadata, in ns."""

_digests: dict[State, str] = {}
"""State → sha256 of the files that this process has read."""


def file_state(stat: os.stat_result) -> State:
    """Return the state of a file; a changed file has another state.

    Args:
        stat: of the file.
    """
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def file_sha256(file: FileIO) -> str:
    """Return the sha256 (hex) of an open file.

    Args:
        file: opened without a buffer.
    """
    state = file_state(os.fstat(file.fileno()))
    if state not in _digests:
        _digests[state] = hashlib.file_digest(file, "sha256").hexdigest()
    return _digests[state]


def path_sha256(path: Path) -> str:
    """Return the sha256 (hex) of the file at a path.

    Args:
        path: of the file.
    """
    with open(path, "rb", buffering=0) as file:
        return file_sha256(file)


def remember_sha256(state: State, sha256: str) -> None:
    """Remember a checksum computed elsewhere, so that the file is not read again.

    Args:
        state: the state of the file when its checksum was computed.
        sha256: the checksum, in hex.
    """
    _digests[state] = sha256


def check_sha256(actual: str, expected: str) -> None:
    """Raise ValueError if the checksum of a file has changed.

    Args:
        actual: the checksum of the file as it is now, in hex.
        expected: the checksum as it was written, in hex.
    """
    if actual != expected:
        raise ValueError(f"its checksum is {actual[:12]}…, it was written with {expected[:12]}…")
