"""Pydantic errors in one sentence: the value received, the values allowed, and a hint."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

from raykd.identity import PlainObject

LONGEST = 1_000
"""Longest word or path, in characters, that is compared with the allowed ones: the time grows with its square."""

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
"""Type error of pydantic → the expected type in plain words."""
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


def unknown_message(received: object, allowed: tuple[str, ...], *, noun: str = "") -> str:
    """Return the message for an unknown word, with the nearest allowed word and all allowed words.

    Args:
        received: The unknown word.
        allowed: The allowed words.
        noun: The noun for such words, with a space after it; empty for values.

    Examples:
        >>> unknown_message("postrior", ("gold", "posterior"))
        "unknown 'postrior'; did you mean 'posterior'? (gold, posterior)"
        >>> unknown_message("x", ("crf", "maxent"), noun="key ")
        "unknown key 'x'; allowed: crf, maxent"
    """
    listed = ", ".join(allowed) or "nothing"
    written = repr(received[:80]) if isinstance(received, str) else format_value(received)
    if guess := did_you_mean(received, allowed):
        return f"unknown {noun}{written}; {guess}({listed})"
    return f"unknown {noun}{written}; allowed: {listed}"


def no_such_message(noun: str, name: str, names: Iterable[str]) -> str:
    """Return the message for a missing name, with the nearest existing name and all names.

    Args:
        noun: The noun for such names.
        name: The name that does not exist.
        names: The names that exist.

    Examples:
        >>> no_such_message("variant", "smal", ["small", "wide"])
        "no variant 'smal'; did you mean 'small'? (small, wide)"
    """
    return f"no {noun} {name!r}; {did_you_mean(name, names)}({', '.join(names)})"


def did_you_mean(received: object, allowed: Iterable[str]) -> str:
    """Return "did you mean …? " with the allowed word nearest to `received`; empty if no word is similar.

    Args:
        received: The word that the user wrote.
        allowed: The allowed words.
    """
    near = nearest_words(received, allowed)
    return f"did you mean {near[0]!r}? " if near else ""


def nearest_words(
    received: object, allowed: Iterable[str], *, limit: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return allowed words similar to `received`, the most similar first.

    Case does not matter, nor whether a word has `-` or `_`.

    Args:
        received: The word that the user wrote.
        allowed: The allowed words.
        limit: The largest number of words returned.
        cutoff: The lowest similarity, from 0 to 1.
    """
    if len(str(received)) > LONGEST:
        return []
    folded = {word.lower().replace("-", "_"): word for word in allowed}
    text = str(received).lower().replace("-", "_")
    return [folded[word] for word in difflib.get_close_matches(text, folded, n=limit, cutoff=cutoff)]


def type_message(received: object, kinds: list[str]) -> str:
    """Return the message for a value of the wrong type, with a hint for common mistakes."""
    expected = " or ".join(dict.fromkeys(kinds))
    return f"got {format_value(received)}; expected {expected}{_hint(received, expected)}"


def bound_message(error_type: str, context: PlainObject, received: object) -> str | None:
    """Return the message for a value out of bounds, or a text of the wrong form; None for other errors."""
    if error_type in _BOUNDS:
        words, key = _BOUNDS[error_type]
        return f"got {format_value(received)}; must be {words} {context[key]:g}"
    if error_type in ("string_too_short", "too_short") and context["min_length"] == 1:
        return f"got {format_value(received)}; must not be empty"
    if error_type in _LENGTHS:
        words, unit, key = _LENGTHS[error_type]
        return f"got {format_value(received)}; must have {words} {context[key]} {unit}"
    if error_type == "string_pattern_mismatch":
        return f"got {format_value(received)}; must match {context['pattern']}"
    return None


def literals(expected: str) -> tuple[str, ...]:
    """Return the allowed words of a pydantic literal error: "'crf' or 'maxent'" → ("crf", "maxent")."""
    quoted = re.findall(r"'([^']*)'", expected)
    return tuple(quoted) if quoted else tuple(re.split(r", | or ", expected))


def format_value(value: object) -> str:
    """Write a value on one line of at most 80 characters, in the user's notation; text is marked as such."""
    if isinstance(value, str):
        return f"{value!r} (text)" if len(value) <= 80 else f"{value[:77]!r}... (text)"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _hint(received: object, expected: str) -> str:
    if (
        isinstance(received, str)
        and "true or false" in expected
        and received.lower() in ("yes", "no", "on", "off")
    ):
        return (
            f"; YAML 1.2 reads {received!r} as text: write {str(received.lower() in ('yes', 'on')).lower()}"
        )
    if (
        isinstance(received, str)
        and "number" in expected
        and re.fullmatch(r"[-+]?[0-9][0-9_.]*", received)
        and "_" in received
    ):
        return f"; write {received.replace('_', '')}"
    if isinstance(received, float) and expected == "a whole number" and received.is_integer():
        return f"; write {int(received)}"
    if isinstance(received, int | float | bool) and expected == "text":
        return f"; write '{format_value(received)}' in quotes"
    return ""
