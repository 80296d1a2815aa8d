"""A small set of plain trees in which every alternative of a searched tree stands at least once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykd.spec.document import KeyPath
from raykd.spec.search import Choice, children, rebuilt, search_of


@dataclass(frozen=True)
class Variant:
    """One plain tree, and where each of its parts was written (resolved key_path → key_path in the document)."""

    tree: Any
    written: dict[KeyPath, KeyPath]

    def origin(self, path: KeyPath) -> KeyPath:
        """Where `path` was written: its own place, or its nearest ancestor's with the rest as it is."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.written:
                return self.written[path[:length]] + path[length:]
        return path


def covering(tree: Any) -> list[Variant]:
    """Variants that together hold every option of every choice and both ends of every range.

    Their number grows with the sum of the alternatives, not with their product. A search that is malformed
    stands as null; `malformed` tells where they are.
    """
    return [Variant(value, written) for value, written in _cover(tree, (), ())]


def malformed(tree: Any, path: KeyPath = ()) -> list[tuple[KeyPath, str]]:
    """Every search that is wrongly written: where it stands and what is wrong with it."""
    try:
        search = search_of(tree)
    except ValueError as error:
        return [(path, str(error))]
    if isinstance(search, Choice):
        inside = [((*path, "choice", index), option) for index, option in enumerate(search.options)]
    else:
        inside = [] if search is not None else [((*path, key), item) for key, item in children(tree)]
    return [fault for where, item in inside for fault in malformed(item, where)]


def _cover(tree: Any, path: KeyPath, written: KeyPath) -> list[tuple[Any, dict[KeyPath, KeyPath]]]:
    try:
        search = search_of(tree)
    except ValueError:
        return [(None, {path: written})]
    if isinstance(search, Choice):
        options = ((option, (*written, "choice", index)) for index, option in enumerate(search.options))
        return [variant for option, where in options for variant in _cover(option, path, where)]
    if search is not None:
        ends = (search.low,) if search.low == search.high else (search.low, search.high)
        return [(end, {path: written}) for end in ends]
    if not isinstance(tree, dict | list) or not tree:
        return [(tree, {path: written})]
    parts = [_cover(item, (*path, key), (*written, key)) for key, item in children(tree)]
    # The k-th variant takes every part's k-th, starting again where a part has fewer.
    rows = [[part[index % len(part)] for part in parts] for index in range(max(map(len, parts)))]
    return [(rebuilt(tree, [value for value, _ in row]), _merged(row, path, written)) for row in rows]


def _merged(
    row: list[tuple[Any, dict[KeyPath, KeyPath]]], path: KeyPath, written: KeyPath
) -> dict[KeyPath, KeyPath]:
    merged = {path: written}
    for _, where in row:
        merged.update(where)
    return merged
