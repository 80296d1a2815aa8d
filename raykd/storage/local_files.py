"""A file of this machine is written under a temporary name, synced and renamed: what can be seen is complete."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file at `path`, and the folders above it, or leave all as it is."""
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
        # It exists only after a failure, an interrupt included.
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """A new name for what will be renamed to `path`."""
    return path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"


def is_temporary(name: str) -> bool:
    """Whether `temporary_beside` gave this name."""
    file = name.rpartition("/")[2]
    return file.startswith(".") and file.endswith(".tmp")


def sync_folder(folder: Path) -> None:
    """Make a rename permanent through a power cut; some network file systems do not allow it, and do not need it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def free_bytes(path: Path) -> int:
    """Bytes that are free where `path` is, or would be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
