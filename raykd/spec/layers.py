"""Layers of settings: variants over their file, a file over the one that it extends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raykd.errors import Fault
from raykd.spec.messages import no_such_message
from raykd.spec.places import KeyPath, Place, dotted
from raykd.spec.search import SEARCH_KEYS, children

VARIANTS = "variants"
SMALL = "small"

# A mapping with one of these keys replaces the whole mapping below it: merging two kinds would mix their keys.
_REPLACING_KEYS = frozenset({"kind", "source", *SEARCH_KEYS})


@dataclass(frozen=True)
class Layer:
    """A tree of settings, with the file and line on which each value was written."""

    tree: dict[str, Any]
    places: Mapping[KeyPath, Place]

    @property
    def file(self) -> str:
        """The file named by the user; single values may come from files that it extends."""
        return self.places[()].file

    def fault(self, path: KeyPath, message: str) -> Fault:
        """Return a fault of the value at `path`, without a line if there is no such value."""
        file, line = self.places.get(path, Place(self.file, None))
        return Fault(file, line, dotted(path), message)


def lay_over(below: Layer, above: Layer) -> Layer:
    """Lay the settings of `above` over the settings of `below`.

    A mapping changes the keys that it names, at any depth, and keeps the others. A mapping with `kind`, `source` or a
    search replaces the whole value below it, and so does a value that is not a mapping. A mapping with whole numbers as
    keys changes those items of a list. Variants are merged by name. The places of replaced values are forgotten, so
    that no fault names a line without effect.
    """
    replaced: set[KeyPath] = set()
    tree = _merged(below.tree, above.tree, (), replaced)
    places = {
        path: place
        for path, place in below.places.items()
        if not any(path[:length] in replaced for length in range(len(path) + 1))
    }
    return Layer(tree, places | {_path_in(tree, path): place for path, place in above.places.items()})


def with_variants(layer: Layer, names: Sequence[str]) -> tuple[Layer, tuple[Fault, ...]]:
    """Return `layer` with the named variants laid over it in order, and without the section `variants`.

    The sweep's name gets `-` and the variant's name, unless the variant sets a name itself.

    Returns:
        The settings, and the faults: a variant that does not exist or is not a mapping.
    """
    section = layer.tree.get(VARIANTS, {})
    variants = section if isinstance(section, dict) else {}
    plain = {key: value for key, value in layer.tree.items() if key != VARIANTS}
    result, faults = Layer(plain, layer.places), list(_malformed(layer, section))
    for name in names:
        if name not in variants:
            faults.append(_unknown(layer, name, list(variants)))
        elif isinstance(variants[name], dict):
            result = lay_over(result, _variant(layer, name, result.tree.get("name")))
    return result, tuple(faults)


def _variant(layer: Layer, name: str, sweep: Any) -> Layer:
    """Return the changes of one variant; `sweep` is the name of the sweep that they change."""
    start = (VARIANTS, name)
    # Without the variant's own place: a key that is missing at the top is missing in the file.
    places = {path[2:]: place for path, place in layer.places.items() if path[:2] == start and path != start}
    tree = layer.tree[VARIANTS][name]
    if "name" not in tree and isinstance(sweep, str):
        tree = {**tree, "name": f"{sweep}-{name}"}
    return Layer(tree, places)


def _changes_items(below: Any, above: Any) -> bool:
    """True if the keys of the mapping `above` are indices of the list `below`, counted from 0."""
    if not isinstance(below, list) or not isinstance(above, dict) or not above:
        return False
    return all(key.isdecimal() and int(key) < len(below) for key in above)


def _path_in(tree: Any, path: KeyPath) -> KeyPath:
    """Return the key path with integers where the tree has lists."""
    key_path: list[str | int] = []
    for part in path:
        part = int(part) if isinstance(tree, list) and str(part).isdecimal() else part
        key_path.append(part)
        # Keys that were written twice are in no tree.
        tree = dict(children(tree)).get(part)
    return tuple(key_path)


def _replaces(below: dict[str, Any], above: dict[str, Any], path: KeyPath) -> bool:
    """True if a mapping of `above` replaces the whole mapping of `below`; file and variants are always merged."""
    if not path or (path[0] == VARIANTS and len(path) <= 2):
        return False
    return bool(_REPLACING_KEYS & above.keys() or set(SEARCH_KEYS) & below.keys())


def _merged(below: Any, above: Any, path: KeyPath, replaced: set[KeyPath]) -> Any:
    """Merge two values; add to `replaced` the paths at which a value of `above` replaces the whole value of `below`."""
    if _changes_items(below, above):
        changed = {int(key): value for key, value in above.items()}
        return [
            _merged(item, changed[index], (*path, index), replaced) if index in changed else item
            for index, item in enumerate(below)
        ]
    if not isinstance(below, dict) or not isinstance(above, dict) or _replaces(below, above, path):
        replaced.add(path)
        return above
    shared = {key: _merged(below[key], above[key], (*path, key), replaced) for key in below if key in above}
    return {**below, **above, **shared}


def _malformed(layer: Layer, section: Any) -> Iterator[Fault]:
    if not isinstance(section, dict):
        message = f"must be a mapping, got {section!r}; write `{VARIANTS}: {{NAME: {{KEY: VALUE}}}}`"
        yield layer.fault((VARIANTS,), message)
        return
    for name, value in section.items():
        if not isinstance(value, dict):
            message = f"must be a mapping, got {value!r}; write `{name}: {{KEY: VALUE}}`"
            yield layer.fault((VARIANTS, name), message)


def _unknown(layer: Layer, name: str, names: list[str]) -> Fault:
    if not names:
        message = f"the file has no variants, got {name!r}; remove --variant (or --small)"
        return layer.fault((VARIANTS,), message)
    return layer.fault((VARIANTS,), no_such_message("variant", name, names))
