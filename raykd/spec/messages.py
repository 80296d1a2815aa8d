"""From a pydantic error to one sentence: what was given, what is allowed, and a hint."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

from raykd.identity import PlainObject

LONGEST = 1_000
"""Characters of a word or path that is compared with the allowed ones; comparing takes their square."""

KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "null",
}
"""Type error of pydantic → what it expects, in plain words."""
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
_LENGTHS = {
    "string_too_short": ("at least", "characters", "min_length"),
    "string_too_long": ("at most", "characters", "max_length"),
    "too_short": ("at least", "items", "min_length"),
    "too_long": ("at most", "items", "max_length"),
}


def unknown_message(got: object, allowed: tuple[str, ...], *, what: str = "") -> str:
    """The message for an unknown word: the nearest allowed one, and all that are allowed.

    Examples:
        >>> unknown("postrior", ("gold", "posterior"))
        "unknown 'postrior'; did you mean 'posterior'? (gold, posterior)"
        >>> unknown("x", ("crf", "maxent"), what="key ")
        "unknown key 'x'; allowed: crf, maxent"
    """
    listed = ", ".join(allowed) or "nothing"
    written = repr(got[:80]) if isinstance(got, str) else format_value(got)
    if guess := did_you_mean(got, allowed):
        return f"unknown {what}{written}; {guess}({listed})"
    return f"unknown {what}{written}; allowed: {listed}"


def no_such_message(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not among those `known`: the nearest one, and all of them.

    Examples:
        >>> no_such("variant", "smal", ["small", "wide"])
        "no variant 'smal'; did you mean 'small'? (small, wide)"
    """
    return f"no {what} {name!r}; {did_you_mean(name, known)}({', '.join(known)})"


def did_you_mean(got: object, allowed: Iterable[str]) -> str:
    """The question after the allowed word that is most similar to `got`, with a space behind it; empty if none is."""
    near = nearest_words(got, allowed)
    return f"did you mean {near[0]!r}? " if near else ""


def nearest_words(got: object, allowed: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Up to `most` allowed words that are similar to `got`, the most similar first, in whatever case, with `-` or `_`;
    `cutoff`: the least similarity, from 0 to 1.
    """
    if len(str(got)) > LONGEST:
        return []
    folded = {word.lower().replace("-", "_"): word for word in allowed}
    text = str(got).lower().replace("-", "_")
    return [folded[word] for word in difflib.get_close_matches(text, folded, n=most, cutoff=cutoff)]


def type_message(got: object, kinds: list[str]) -> str:
    """The message for a value of the wrong type, with a hint for common mistakes."""
    wanted = " or ".join(dict.fromkeys(kinds))
    return f"got {format_value(got)}; expected {wanted}{_hint(got, wanted)}"


def bound_message(error_type: str, context: PlainObject, got: object) -> str | None:
    """The message for a number out of bounds, or for a text or list of the wrong length or form; None for others."""
    if error_type in _BOUNDS:
        words, key = _BOUNDS[error_type]
        return f"got {format_value(got)}; must be {words} {context[key]:g}"
    if error_type in ("string_too_short", "too_short") and context["min_length"] == 1:
        return f"got {format_value(got)}; must not be empty"
    if error_type in _LENGTHS:
        words, unit, key = _LENGTHS[error_type]
        return f"got {format_value(got)}; must have {words} {context[key]} {unit}"
    if error_type == "string_pattern_mismatch":
        return f"got {format_value(got)}; must match {context['pattern']}"
    return None


def literals(expected: str) -> tuple[str, ...]:
    """The allowed words of a pydantic literal error: "'crf' or 'maxent'" → ("crf", "maxent")."""
    quoted = re.findall(r"'([^']*)'", expected)
    return tuple(quoted) if quoted else tuple(re.split(r", | or ", expected))


def format_value(value: object) -> str:
    """A value as the user wrote it, text marked as such, cut to one line."""
    if isinstance(value, str):
        return f"{value!r} (text)" if len(value) <= 80 else f"{value[:77]!r}... (text)"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _hint(got: object, wanted: str) -> str:
    if isinstance(got, str) and "true or false" in wanted and got.lower() in ("yes", "no", "on", "off"):
        return f"; YAML 1.2 reads {got!r} as text: write {str(got.lower() in ('yes', 'on')).lower()}"
    if (
        isinstance(got, str)
        and "number" in wanted
        and re.fullmatch(r"[-+]?[0-9][0-9_.]*", got)
        and "_" in got
    ):
        return f"; write {got.replace('_', '')}"
    if isinstance(got, float) and wanted == "a whole number" and got.is_integer():
        return f"; write {int(got)}"
    if isinstance(got, int | float | bool) and wanted == "text":
        return f"; write '{format_value(got)}' in quotes"
    return ""
