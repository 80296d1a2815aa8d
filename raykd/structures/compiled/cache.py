"""Folder of compiled kernels: one per user, named by a hash of the kernels' source.

numba's default, a folder next to the source, is lost with every throw-away copy of the code (a Ray job's working
directory), and detects a change in a kernel's file only, not in the files that it calls.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numba
from numba.core import caching

if TYPE_CHECKING:
    from types import ModuleType


def set_cache_folder(modules: tuple[ModuleType, ...]) -> None:
    """Set the folder for compiled kernels of some modules; numba's folder stays if this one cannot be written."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return  # set by the user
    folder = _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
    except OSError:
        return
    for module in modules:
        for value in vars(module).values():
            cache = getattr(value, "_cache", None)
            if isinstance(cache, caching.FunctionCache):
                cache._cache_path = str(folder)
                cache._cache_file = caching.IndexDataCacheFile(
                    cache_path=str(folder), filename_base=cache._impl.filename_base, source_stamp=folder.name
                )


def _folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    text = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        text.update(file.read_bytes())
    return Path(root) / "raykd" / "kernels" / text.hexdigest()[:16]
