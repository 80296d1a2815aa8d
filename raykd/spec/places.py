"""Where a value stands in a tree, and where it was written."""

from __future__ import annotations

from typing import NamedTuple

KeyPath = tuple[str | int, ...]
"""Where a value stands in a tree: the keys and list indices that lead to it."""


class Place(NamedTuple):
    """Where a value was written; `line` is 1-based, None if there is none."""

    file: str
    line: int | None


def dotted(path: KeyPath) -> str:
    """How a key path is written for people and for `--set`.

    Examples:
        >>> dotted(("objective", "choice", 0, "k"))
        'objective.choice.0.k'
    """
    return ".".join(str(part) for part in path)
