"""Local files are written under a temporary name, synced and renamed, so that every visible file is complete."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file at `path`, making the folders above, or leave the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
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
        # After a failure or an interrupt the temporary file still exists.
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """Return a new temporary name in the folder of `path`, for a file that will be renamed to `path`.

    Args:
        path: the final path.
    """
    return path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"


def is_temporary(name: str) -> bool:
    """Return true for the names made by `temporary_path`."""
    file = name.rpartition("/")[2]
    return file.startswith(".") and file.endswith(".tmp")


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; network file systems that refuse to sync a folder do not need it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def free_bytes(path: Path) -> int:
    """The free bytes of the disk of `path`, which need not exist."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
