"""The content of a store, changed as raykd itself would write it: with the checksum of the change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from raykd.storage.store import Storage


def stored(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a store."""
    return Storage(str(path.parent)).read_json(path.name)


def changed(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replace the JSON object in `path` by the result of `change`."""
    Storage(str(path.parent)).write_json(path.name, change(stored(path)))
