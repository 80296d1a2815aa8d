"""A sweep file as plain data, together with the line on which each value stands."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raykd.errors import Fault, SpecError
from raykd.spec.variants import VARIANTS, laid_over
from raykd.spec.yaml12 import BadYamlError, Parsed, parse

KeyPath = tuple[str | int, ...]
"""Where a value stands in a tree: the keys and list indices that lead to it."""


@dataclass(frozen=True)
class Document:
    """A parsed sweep file: plain dicts, lists and scalars; searches are still the mappings that were written.

    `lines` gives the 1-based line of a key_path; `overridden` are the key_paths set on the command line, which
    stand on no line. `faults` are what is wrong with the writing itself but does not keep the rest from
    being read (a key written twice): `check` reports them together with everything else.
    """

    file: str
    tree: dict[str, Any]
    lines: Mapping[KeyPath, int]
    overridden: tuple[KeyPath, ...] = ()
    variants: tuple[str, ...] = ()
    """Names of the file's variants that are not laid over it."""
    faults: tuple[Fault, ...] = field(default=(), repr=False)

    def line(self, path: KeyPath) -> int | None:
        """The line of `path`, or of the nearest part that holds it; None if it was set by `--set`."""
        if any(path[: len(key_path)] == key_path for key_path in self.overridden):
            return None
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def fault(self, path: KeyPath, message: str) -> Fault:
        """A fault at `path`, told with its file and line, or as set by `--set`."""
        by_hand = any(path[: len(key_path)] == key_path for key_path in self.overridden)
        return Fault("--set" if by_hand else self.file, self.line(path), dotted(path), message)


def dotted(path: KeyPath) -> str:
    """How a key_path is written for people and for `--set`.

    Examples:
        >>> dotted(("objective", "choice", 0, "k"))
        'objective.choice.0.k'
    """
    return ".".join(str(part) for part in path)


def load(file: str | Path, overrides: Sequence[str] = (), *, variants: Sequence[str] = ()) -> Document:
    """Read a sweep file as YAML 1.2, lay its `variants` of those names over it, and apply `--set` overrides
    (`student.kind=bilstm`, the value as YAML).

    Raises:
        SpecError: the file is missing or unreadable, is not YAML or not a mapping, has no such variant, or an
            override cannot be applied. Keys written twice are kept in `Document.faults`, so that `check` tells
            all at once.
    """
    name = str(file)
    try:
        parsed = parse(_text(Path(file)))
    except (BadYamlError, OSError, UnicodeDecodeError) as error:
        raise SpecError((_unreadable(name, error),)) from error
    if not isinstance(parsed.value, dict):
        raise SpecError((_not_a_mapping(name, parsed.value),))
    tree, lines, faults = laid_over(name, parsed.value, parsed.lines, variants)
    if faults:
        raise SpecError(faults)
    others = tuple(other for other in parsed.value.get(VARIANTS, {}) if other not in variants)
    document = Document(name, tree, lines, variants=others, faults=_written_wrongly(name, parsed))
    return _overridden(document, overrides) if overrides else document


def _text(path: Path) -> str:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    return path.read_bytes().decode("utf-8-sig")


def _unreadable(name: str, error: BadYamlError | OSError | UnicodeDecodeError) -> Fault:
    if isinstance(error, BadYamlError):
        return Fault(name, error.line, "", error.message)
    if isinstance(error, FileNotFoundError):
        near = _near_files(Path(name))
        hint = f"did you mean {near}?" if near else "give the path of a YAML sweep file"
        return Fault(name, None, "", f"no such file; {hint}")
    if isinstance(error, IsADirectoryError):
        return Fault(name, None, "", "a folder, not a sweep file; name one YAML file in it")
    if isinstance(error, UnicodeDecodeError):
        return Fault(name, None, "", f"not UTF-8 text (byte {error.start}); save the file as UTF-8")
    return Fault(name, None, "", f"cannot be read: {error.strerror or error}; make it readable")


def _near_files(path: Path) -> str:
    names = [str(found) for found in (*path.parent.glob("*.y*ml"), *Path("sweeps").rglob("*.y*ml"))]
    return " or ".join(difflib.get_close_matches(str(path), names, n=2))


def _not_a_mapping(name: str, value: Any) -> Fault:
    if value is None:
        return Fault(name, None, "", "the file is empty; a sweep file starts with `name:` and `corpus:`")
    got = "a list" if isinstance(value, list) else f"{value!r}"
    return Fault(name, 1, "", f"a sweep file is a mapping of settings (`name: …`), got {got}")


def _written_wrongly(name: str, parsed: Parsed) -> tuple[Fault, ...]:
    return tuple(Fault(name, line, dotted(path), message) for path, line, message in parsed.faults)


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
    # What was wrong with a part of the file that an override replaces is wrong no longer.
    replaced = {dotted(key_path) for key_path in key_paths}
    kept = tuple(fault for fault in document.faults if fault.path not in replaced)
    return replace(document, tree=tree, overridden=tuple(key_paths), faults=kept)


def _parse_override(override: str) -> tuple[KeyPath, Any]:
    key, equals, text = override.partition("=")
    parts = tuple(key.strip().split("."))
    if not equals or not all(parts):
        raise ValueError("write key=value with dots between keys, as in student.hidden_dim=64")
    try:
        parsed = parse(text)
    except BadYamlError as error:
        raise ValueError(f"the value is {error.message}") from error
    if parsed.faults:
        raise ValueError(parsed.faults[0][2])
    return parts, parsed.value


def _put(tree: Any, parts: KeyPath, value: Any) -> KeyPath:
    """Set `value` at `parts`, making the mappings on the way; returns the key_path with indices as integers."""
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
