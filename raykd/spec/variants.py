"""Variants: named changes that a sweep file lays over itself, such as a small form that runs in minutes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from raykd.errors import Fault

VARIANTS = "variants"
SMALL = "small"

# A mapping with one of these is of its own kind: laid over another, it takes its place.
_OWN_KIND = frozenset({"kind", "source", "choice", "int", "float"})

KeyPath = tuple[str | int, ...]


def laid_over(
    file: str, tree: dict[str, Any], lines: Mapping[KeyPath, int], names: Sequence[str]
) -> tuple[dict[str, Any], dict[KeyPath, int], tuple[Fault, ...]]:
    """`tree` with the variants of those names laid over it in order, and without its `variants` section.

    A mapping changes the keys that it names, at any depth; a mapping with `kind`, `source` or a search takes the
    place of what stood there, and so does every other value. The sweep's name gets `-` and the variant's name.
    Lines of changed values are those of the variant. Faults: no such variant, or a variant that is no mapping.
    """
    found = tree.get(VARIANTS, {})
    known = found if isinstance(found, dict) else {}
    result: dict[str, Any] = {key: value for key, value in tree.items() if key != VARIANTS}
    told, faults = dict(lines), list(_malformed(file, found, lines))
    for name in names:
        if name not in known:
            faults.append(_unknown(file, name, list(known), lines.get((VARIANTS,))))
        elif isinstance(known[name], dict):
            result = _merged(result, known[name])
            told |= {
                key_path[2:]: line for key_path, line in lines.items() if key_path[:2] == (VARIANTS, name)
            }
            if "name" not in known[name] and isinstance(result.get("name"), str):
                result["name"] = f"{result['name']}-{name}"
    return result, told, tuple(faults)


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict) or _OWN_KIND & above.keys():
        return above
    # A searched value gives way to a mapping of another kind only as a whole.
    if {"choice", "int", "float"} & below.keys():
        return above
    return below | {key: _merged(below.get(key), value) for key, value in above.items()}


def _malformed(file: str, found: Any, lines: Mapping[KeyPath, int]) -> list[Fault]:
    if not isinstance(found, dict):
        return [Fault(file, lines.get((VARIANTS,)), VARIANTS, f"a mapping of name to changes, got {found!r}")]
    return [
        Fault(file, lines.get((VARIANTS, name)), f"{VARIANTS}.{name}", f"a mapping of changes, got {value!r}")
        for name, value in found.items()
        if not isinstance(value, dict)
    ]


def _unknown(file: str, name: str, known: list[str], line: int | None) -> Fault:
    if not known:
        return Fault(
            file, None, VARIANTS, f"the file has no variants, so no {name!r}; leave --variant (--small) out"
        )
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return Fault(file, line, VARIANTS, f"no variant {name!r}; {hint}({', '.join(known)})")
