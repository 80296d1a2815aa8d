"""A sweep file as plain data, together with the place in which each value was written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.identity import PlainObject
from raykd.spec.extends import EXTENDS, read_with_bases
from raykd.spec.layers import SMALL, VARIANTS, with_variants
from raykd.spec.places import KeyPath, Place, dotted
from raykd.spec.strategies import STRATEGIES, resolve_strategies
from raykd.spec.yaml12 import BadYamlError, parse

GRAMMAR = (EXTENDS, VARIANTS, STRATEGIES)
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
    tree: PlainObject
    places: Mapping[KeyPath, Place]
    overridden: tuple[KeyPath, ...] = ()
    variants: tuple[str, ...] = ()
    """Names of the file's variants that are not laid over it."""
    written: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    """The key path of each strategy that is given by its name, and the one where it was written."""
    unused: PlainObject = field(default_factory=dict)
    """The file's strategies that it does not name."""
    faults: tuple[Fault, ...] = field(default=(), repr=False)

    def place(self, path: KeyPath) -> Place:
        """Where `path`, or the nearest part that holds it, was written."""
        path = self._written(path)
        if any(path[: len(key_path)] == key_path for key_path in self.overridden):
            return _BY_HAND
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(self.file, None)

    def inherits(self, variant: str) -> bool:
        """Whether only the files that this one extends write that variant."""
        return self.place((VARIANTS, variant)).file != self.file

    def fault(self, path: KeyPath, message: str) -> Fault:
        """A fault at `path` with its file and line, or with `--set` in their place."""
        return Fault(*self.place(path), dotted(self._written(path)), message)

    def _written(self, path: KeyPath) -> KeyPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self.written:
                return self.written[path[:length]] + path[length:]
        return path

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
    `--set` overrides (`student.kind=bilstm`, the value as YAML) come last. Then names of strategies are replaced by
    what they stand for.

    Raises:
        SpecError: a file is missing or unreadable, is not YAML or not a mapping, extends itself, has no such
            variant or strategy, or an override cannot be applied. Keys written twice are kept in `Document.faults`, so
            that `check` reports all faults at once.
    """
    name = str(file)
    written, twice = read_with_bases(name)
    layer, faults = with_variants(written, variants)
    if faults:
        raise SpecError(faults)
    others = tuple(other for other in written.tree.get(VARIANTS, {}) if other not in variants)
    document = Document(name, layer.tree, layer.places, variants=others, faults=twice)
    return _resolved(with_overrides(document, overrides) if overrides else document)


def _resolved(document: Document) -> Document:
    """The document with every strategy in the place of its name."""
    found = resolve_strategies(document.tree)
    if found.faults:
        raise SpecError(document.ordered(document.fault(path, message) for path, message in found.faults))
    return replace(document, tree=found.tree, written=found.written, unused=found.unused)


def with_overrides(document: Document, overrides: Sequence[str]) -> Document:
    """The document with each of `overrides`, a `key=value` whose value is YAML, laid over it.

    Raises:
        SpecError: one cannot be applied.
    """
    # Not copy.deepcopy: aliases of one anchor must become separate values, or one override would set both.
    tree, faults, key_paths = json.loads(json.dumps(document.tree)), [], []
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


def _parse_override(override: str) -> tuple[tuple[str, ...], Any]:
    key, equals, text = override.partition("=")
    parts = tuple(key.strip().split("."))
    if not equals or not all(parts):
        raise ValueError("write key=value with dots between keys, as in student.hidden_dim=64")
    if parts[0] in (EXTENDS, VARIANTS):
        hint = _variant_hint(parts, text) if parts[0] == VARIANTS else "write it in the file"
        raise ValueError(f"{parts[0]} cannot be set on the command line; {hint}")
    try:
        parsed = parse(text)
    except BadYamlError as error:
        raise ValueError(f"the value is {error.message}") from error
    if parsed.faults:
        raise ValueError(parsed.faults[0][2])
    return parts, parsed.value


def _variant_hint(parts: tuple[str, ...], text: str) -> str:
    """What to write instead of `--set variants.small.corpus.cap=100`: --set comes after variants are laid out."""
    if len(parts) < 3:
        return "use --variant NAME"
    name, key = parts[1], ".".join(parts[2:])
    variant = f"--{SMALL}" if name == SMALL else f"--variant {name}"
    override = shlex.quote(f"{key}={text}")
    return f"--set changes the file with its variants laid over it: write {variant} --set {override}"


def _put(tree: Any, parts: tuple[str, ...], value: Any) -> KeyPath:
    """Set `value` at `parts`, adding mappings that are missing; returns the key path with indices as integers."""
    key_path: list[str | int] = []
    while parts:
        if isinstance(tree, list):
            key, parts = _index(tree, parts[0], dotted(tuple(key_path))), parts[1:]
        elif isinstance(tree, dict):
            key, parts = _key(tree, parts)
        else:
            raise ValueError(f"{dotted(tuple(key_path))} holds {tree!r}, which has no {parts[0]!r} in it")
        key_path.append(key)
        if not parts:
            tree[key] = value  # type: ignore[index]
        else:
            tree = tree.setdefault(key, {}) if isinstance(tree, dict) else tree[key]  # type: ignore[index]
    return tuple(key_path)


def _key(tree: dict[str, Any], parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The next key and the parts after it; a key of the tree may have dots in it."""
    for length in range(len(parts), 1, -1):
        if (key := ".".join(parts[:length])) in tree:
            return key, parts[length:]
    return parts[0], parts[1:]


def _index(items: list[Any], part: str, where: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise ValueError(f"{where} is a list of {len(items)}; name one by its index, 0 to {len(items) - 1}")
    return int(part)
