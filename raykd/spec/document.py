"""A sweep file as plain data, together with the place in which each value was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.spec.extends import EXTENDS, read
from raykd.spec.layers import VARIANTS, with_variants
from raykd.spec.places import KeyPath, Place, dotted
from raykd.spec.yaml12 import BadYamlError, parse

GRAMMAR = (EXTENDS, VARIANTS)
"""Top-level keys that are part of the grammar and do not stand in the tree of a document."""

_BY_HAND = Place("--set", None)


@dataclass(frozen=True)
class Document:
    """A parsed sweep file: plain dicts, lists and scalars; searches are still the mappings that were written.

    `places` gives the file and line of a key path: of this file, or of one that it extends. `overridden` are
    the key paths set on the command line, which stand on no line. `faults` are keys written twice: they do not
    keep the rest from being read, and `check` reports them together with everything else.
    """

    file: str
    tree: dict[str, Any]
    places: Mapping[KeyPath, Place]
    overridden: tuple[KeyPath, ...] = ()
    variants: tuple[str, ...] = ()
    """Names of the file's variants that are not laid over it."""
    faults: tuple[Fault, ...] = field(default=(), repr=False)

    def place(self, path: KeyPath) -> Place:
        """Where `path`, or the nearest part that holds it, was written."""
        if any(path[: len(key_path)] == key_path for key_path in self.overridden):
            return _BY_HAND
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(self.file, None)

    def line(self, path: KeyPath) -> int | None:
        """The line of `place(path)`; None if it was set by `--set`."""
        return self.place(path).line

    def fault(self, path: KeyPath, message: str) -> Fault:
        """A fault at `path` with its file and line, or with `--set` in their place."""
        return Fault(*self.place(path), dotted(path), message)

    def ordered(self, faults: Iterable[Fault]) -> tuple[Fault, ...]:
        """Faults, each once: those of `--set` first, then those of this file, then those of extended files."""
        files = {_BY_HAND.file: 0, self.file: 1}
        return tuple(
            sorted(
                dict.fromkeys(faults),
                key=lambda fault: (files.get(fault.file, 2), fault.file, fault.line or 0, fault.path),
            )
        )


def load(file: str | Path, overrides: Sequence[str] = (), *, variants: Sequence[str] = ()) -> Document:
    """Read a sweep file as YAML 1.2.

    The file is laid over the one that its `extends` names, the `variants` of those names over both, and
    `--set` overrides (`student.kind=bilstm`, the value as YAML) come last.

    Raises:
        SpecError: a file is missing or unreadable, is not YAML or not a mapping, extends itself, has no such
            variant, or an override cannot be applied. Keys written twice are kept in `Document.faults`, so
            that `check` reports all faults at once.
    """
    name = str(file)
    written, twice = read(name)
    layer, faults = with_variants(written, variants)
    if faults:
        raise SpecError(faults)
    others = tuple(other for other in written.tree.get(VARIANTS, {}) if other not in variants)
    document = Document(name, layer.tree, layer.places, variants=others, faults=twice)
    return _overridden(document, overrides) if overrides else document


def _overridden(document: Document, overrides: Sequence[str]) -> Document:
    tree, faults, key_paths = _copy(document.tree), [], []
    for override in overrides:
        try:
            key_path, value = _parse_override(override)
            key_paths.append(_put(tree, key_path, value))
        except ValueError as error:
            faults.append(Fault(f"--set {override}", None, "", str(error)))
    if faults:
        raise SpecError(tuple(faults))
    # An override also corrects a key that was written twice.
    replaced = {dotted(key_path) for key_path in key_paths}
    kept = tuple(fault for fault in document.faults if fault.path not in replaced)
    return replace(document, tree=tree, overridden=tuple(key_paths), faults=kept)


def _parse_override(override: str) -> tuple[KeyPath, Any]:
    key, equals, text = override.partition("=")
    parts = tuple(key.strip().split("."))
    if not equals or not all(parts):
        raise ValueError("write key=value with dots between keys, as in student.hidden_dim=64")
    if parts[0] in GRAMMAR:
        hint = "use --variant NAME" if parts[0] == VARIANTS else "write it in the file"
        raise ValueError(f"{parts[0]} cannot be set on the command line; {hint}")
    try:
        parsed = parse(text)
    except BadYamlError as error:
        raise ValueError(f"the value is {error.message}") from error
    if parsed.faults:
        raise ValueError(parsed.faults[0][2])
    return parts, parsed.value


def _put(tree: Any, parts: KeyPath, value: Any) -> KeyPath:
    """Set `value` at `parts`, adding mappings that are missing; returns the key path with indices as integers."""
    key_path: list[str | int] = []
    for position, part in enumerate(parts):
        if isinstance(tree, list):
            part = _index(tree, str(part), dotted(tuple(key_path)))
        elif not isinstance(tree, dict):
            raise ValueError(f"{dotted(tuple(key_path))} holds {tree!r}, which has no {part!r} in it")
        key_path.append(part)
        if position == len(parts) - 1:
            tree[part] = value  # type: ignore[index]
        else:
            tree = tree.setdefault(part, {}) if isinstance(tree, dict) else tree[part]  # type: ignore[index]
    return tuple(key_path)


def _index(items: list[Any], part: str, where: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise ValueError(f"{where} is a list of {len(items)}; name one by its index, 0 to {len(items) - 1}")
    return int(part)


def _copy(value: Any) -> Any:
    # Not copy.deepcopy: aliases of one anchor must become separate values, or one override would set both.
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
