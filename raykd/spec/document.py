"""A sweep file as plain data, with the file and line on which each value was written."""

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
from raykd.spec.places import KeyPath, Place, dotted, original_path
from raykd.spec.strategies import STRATEGIES, resolve_strategies
from raykd.spec.yaml12 import BadYamlError, parse

GRAMMAR = (EXTENDS, VARIANTS, STRATEGIES)
"""Top-level keys that belong to the grammar and are not in the tree of a document."""

_COMMAND_LINE = Place("--set", None)


@dataclass(frozen=True)
class Document:
    """A parsed sweep file: plain dicts, lists and scalars, in which a search is still the mapping that was written.

    Attributes:
        file: Path of the sweep file.
        tree: The settings.
        places: Key path → file and line, in this file or in one that it extends.
        overridden: Key paths set on the command line, which have no line.
        variants: Names of the file's variants that were not applied.
        origins: Key path of each strategy given by name → the key path at which the strategy was written.
        unused: Strategies of the file that no setting names.
        faults: Keys written twice. The file can be read in spite of them; `check` reports them together with all
            others.
    """

    file: str
    tree: PlainObject
    places: Mapping[KeyPath, Place]
    overridden: tuple[KeyPath, ...] = ()
    variants: tuple[str, ...] = ()
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    unused: PlainObject = field(default_factory=dict)
    faults: tuple[Fault, ...] = field(default=(), repr=False)

    def place(self, path: KeyPath) -> Place:
        """Return the file and line where the value at `path`, or else the nearest value around it, was written."""
        path = original_path(path, self.origins)
        if any(path[: len(key_path)] == key_path for key_path in self.overridden):
            return _COMMAND_LINE
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(self.file, None)

    def inherits(self, variant: str) -> bool:
        """True if the variant stands only in extended files."""
        return self.place((VARIANTS, variant)).file != self.file

    def fault(self, path: KeyPath, message: str) -> Fault:
        """Return a fault at `path`, with its file and line; a value from the command line has `--set` instead.

        Args:
            path: Key path of the faulty value.
            message: What is wrong, and a hint.
        """
        return Fault(*self.place(path), dotted(original_path(path, self.origins)), message)

    def ordered(self, faults: Iterable[Fault]) -> tuple[Fault, ...]:
        """Sort faults and drop repetitions: those of `--set`, then those of this file, then those of extended files."""
        files = {_COMMAND_LINE.file: 0, self.file: 1}
        return tuple(
            sorted(
                dict.fromkeys(faults),
                key=lambda fault: (files.get(fault.file, 2), fault.file, fault.line or 0, fault.path),
            )
        )


def load(file: str | Path, overrides: Sequence[str] = (), *, variants: Sequence[str] = ()) -> Document:
    """Read a sweep file as YAML 1.2.

    Later settings replace earlier ones, in this order: the file that `extends` names, the file, its variants, the
    command line. Names of strategies are then replaced by the strategies.

    Args:
        file: Path of the sweep file.
        overrides: Settings of `--set`, such as `student.kind=bilstm`; the value is YAML.
        variants: Names of the variants to apply, in order.

    Returns:
        The document. Keys written twice are in its `faults`, so that `check` reports all faults at once.

    Raises:
        SpecError: A file is missing or unreadable, is not YAML or not a mapping, or extends itself; there is no such
            variant or strategy; or an override cannot be applied.
    """
    name = str(file)
    settings, repeated_keys = read_with_bases(name)
    layer, faults = with_variants(settings, variants)
    if faults:
        raise SpecError(faults)
    unused_variants = tuple(variant for variant in settings.tree.get(VARIANTS, {}) if variant not in variants)
    document = Document(name, layer.tree, layer.places, variants=unused_variants, faults=repeated_keys)
    return _with_strategies(with_overrides(document, overrides) if overrides else document)


def _with_strategies(document: Document) -> Document:
    """Return the document with the strategies in the place of their names."""
    resolution = resolve_strategies(document.tree)
    if resolution.faults:
        raise SpecError(
            document.ordered(document.fault(path, message) for path, message in resolution.faults)
        )
    return replace(document, tree=resolution.tree, origins=resolution.origins, unused=resolution.unused)


def with_overrides(document: Document, overrides: Sequence[str]) -> Document:
    """Return the document with the settings of the command line applied.

    Args:
        document: The document that was read.
        overrides: Settings of the form `key=value`; the value is YAML.

    Raises:
        SpecError: One or more overrides cannot be applied.
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
    remaining_faults = tuple(fault for fault in document.faults if fault.path not in replaced)
    return replace(document, tree=tree, overridden=tuple(key_paths), faults=remaining_faults)


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
    """Return the hint for `--set variants.small.corpus.cap=100`: `--set` cannot change variants."""
    if len(parts) < 3:
        return "use --variant NAME"
    name, key = parts[1], ".".join(parts[2:])
    variant = f"--{SMALL}" if name == SMALL else f"--variant {name}"
    override = shlex.quote(f"{key}={text}")
    return f"--set is applied after the variants: write {variant} --set {override}"


def _put(tree: Any, parts: tuple[str, ...], value: Any) -> KeyPath:
    """Set `value` at `parts`, adding missing mappings, and return the key path with list indices as integers."""
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
    """Return the next key and the remaining parts; a key of the tree may contain dots."""
    for length in range(len(parts), 1, -1):
        if (key := ".".join(parts[:length])) in tree:
            return key, parts[length:]
    return parts[0], parts[1:]


def _index(items: list[Any], part: str, dotted_path: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise ValueError(
            f"{dotted_path} is a list of {len(items)}; name one by its index, 0 to {len(items) - 1}"
        )
    return int(part)
