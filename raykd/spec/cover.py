"""A small set of plain trees that covers all alternatives of a searched tree at least once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raykd.identity import PlainObject, PlainValue
from raykd.spec.places import KeyPath, original_path
from raykd.spec.search import Choice, children, parse_search, rebuild


@dataclass(frozen=True)
class PlainTree:
    """One tree without searches.

    Attributes:
        tree: Plain dicts, lists and scalars.
        origins: Key path in `tree` → key path in the searched tree.
    """

    tree: PlainObject
    origins: dict[KeyPath, KeyPath]

    def origin(self, path: KeyPath) -> KeyPath:
        """Return the key path in the searched tree of the value at `path`."""
        return original_path(path, self.origins)


def covering_trees(tree: PlainObject) -> list[PlainTree]:
    """Return plain trees with all options of all choices and both ends of all ranges.

    The number of trees grows with the sum of the alternatives, not with their product. A malformed search becomes null;
    `malformed_searches` reports it.

    Args:
        tree: A sweep file with its searches.

    Examples:
        >>> [plain.tree for plain in covering_trees({"a": {"choice": [1, 2]}, "b": {"int": [3, 5]}})]
        [{'a': 1, 'b': 3}, {'a': 2, 'b': 5}]
    """
    return [PlainTree(value, origins) for value, origins in _cover(tree, (), ())]


def malformed_searches(tree: PlainValue, path: KeyPath = ()) -> list[tuple[KeyPath, str]]:
    """Return (key path, message) for each search that is written wrongly."""
    try:
        search = parse_search(tree)
    except ValueError as error:
        return [(path, str(error))]
    if isinstance(search, Choice):
        inside = [((*path, "choice", index), option) for index, option in enumerate(search.options)]
    else:
        inside = [] if search is not None else [((*path, key), item) for key, item in children(tree)]
    return [fault for option_path, item in inside for fault in malformed_searches(item, option_path)]


def _cover(tree: PlainValue, path: KeyPath, origin: KeyPath) -> list[tuple[Any, dict[KeyPath, KeyPath]]]:
    """Return (plain tree, its origins) for each alternative of `tree`; `origin` is its path in the searched tree."""
    try:
        search = parse_search(tree)
    except ValueError:
        return [(None, {path: origin})]
    if isinstance(search, Choice):
        options = ((option, (*origin, "choice", index)) for index, option in enumerate(search.options))
        return [plain for option, option_path in options for plain in _cover(option, path, option_path)]
    if search is not None:
        ends = (search.low,) if search.low == search.high else (search.low, search.high)
        return [(end, {path: origin}) for end in ends]
    if not isinstance(tree, dict | list) or not tree:
        return [(tree, {path: origin})]
    parts = [_cover(item, (*path, key), (*origin, key)) for key, item in children(tree)]
    # The k-th tree takes the k-th alternative of every part; a part with fewer starts again from its first.
    rows = [[part[index % len(part)] for part in parts] for index in range(max(map(len, parts)))]
    return [
        (
            rebuild(tree, [value for value, _ in row]),
            {path: origin, **{key: value for _, origins in row for key, value in origins.items()}},
        )
        for row in rows
    ]
