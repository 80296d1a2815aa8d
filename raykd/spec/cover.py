"""A small set of plain trees that holds every alternative of a searched tree at least once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykd.identity import PlainObject, PlainValue
from raykd.spec.places import KeyPath
from raykd.spec.search import Choice, children, rebuild, parse_search


@dataclass(frozen=True)
class PlainTree:
    """One tree without searches; `written` maps its key paths to those of the searched tree."""

    tree: PlainObject
    written: dict[KeyPath, KeyPath]

    def origin(self, path: KeyPath) -> KeyPath:
        """The key path in the searched tree that gave the value at `path`."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.written:
                return self.written[path[:length]] + path[length:]
        return path


def covering_trees(tree: PlainObject) -> list[PlainTree]:
    """Plain trees that together hold every option of every choice and both ends of every range.

    Their number grows with the sum of the alternatives, not with their product. A malformed search becomes
    null; `malformed` reports it.
    """
    return [PlainTree(value, written) for value, written in _cover(tree, (), ())]


def malformed_searches(tree: PlainValue, path: KeyPath = ()) -> list[tuple[KeyPath, str]]:
    """Every search that is written wrongly, as (key path, message)."""
    try:
        search = parse_search(tree)
    except ValueError as error:
        return [(path, str(error))]
    if isinstance(search, Choice):
        inside = [((*path, "choice", index), option) for index, option in enumerate(search.options)]
    else:
        inside = [] if search is not None else [((*path, key), item) for key, item in children(tree)]
    return [fault for where, item in inside for fault in malformed_searches(item, where)]


def _cover(tree: PlainValue, path: KeyPath, written: KeyPath) -> list[tuple[Any, dict[KeyPath, KeyPath]]]:
    try:
        search = parse_search(tree)
    except ValueError:
        return [(None, {path: written})]
    if isinstance(search, Choice):
        options = ((option, (*written, "choice", index)) for index, option in enumerate(search.options))
        return [plain for option, where in options for plain in _cover(option, path, where)]
    if search is not None:
        ends = (search.low,) if search.low == search.high else (search.low, search.high)
        return [(end, {path: written}) for end in ends]
    if not isinstance(tree, dict | list) or not tree:
        return [(tree, {path: written})]
    parts = [_cover(item, (*path, key), (*written, key)) for key, item in children(tree)]
    # The k-th tree takes the k-th alternative of every part, starting again where a part has fewer.
    rows = [[part[index % len(part)] for part in parts] for index in range(max(map(len, parts)))]
    return [
        (
            rebuild(tree, [value for value, _ in row]),
            {path: written, **{own: place for _, where in row for own, place in where.items()}},
        )
        for row in rows
    ]
