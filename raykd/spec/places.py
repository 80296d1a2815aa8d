"""Key paths of values in a tree, and the file and line on which a value was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KeyPath = tuple[str | int, ...]
"""The keys and list indices that lead to a value in a tree."""


class Place(NamedTuple):
    """The file and line of a value; `line` is 1-based, None where there is no line."""

    file: str
    line: int | None


def original_path(path: KeyPath, origins: Mapping[KeyPath, KeyPath]) -> KeyPath:
    """Return the key path at which the value at `path` was written, before parts of the tree were replaced.

    Args:
        path: Key path in the present tree.
        origins: Key path of each replaced value → key path at which the new value was written.
    """
    for length in range(len(path), -1, -1):
        if path[:length] in origins:
            return origins[path[:length]] + path[length:]
    return path


def dotted(path: KeyPath) -> str:
    """Return a key path as text, in the form that messages and `--set` use.

    Args:
        path: Keys and list indices.

    Examples:
        >>> dotted(("objective", "choice", 0, "k"))
        'objective.choice.0.k'
    """
    return ".".join(str(part) for part in path)
