"""Identities: a hash of the canonical form, so that equal settings have the same name on every machine."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

PlainObject: TypeAlias = Mapping[str, Any]
"""A JSON object: names with plain values (text, numbers, true, false, null, lists, objects)."""
PlainValue: TypeAlias = PlainObject | list[Any] | str | int | float | bool | None
"""The content of a JSON file, or of a part of a sweep file."""

MIN_HEX_DIGITS = 16
"""Fewest hex digits of a name: with less than 64 bits, two of some million runs could share one."""


def canonical_json(value: object) -> bytes:
    """Return plain data as canonical JSON: keys sorted, no spaces, UTF-8.

    The numbers 1 and 1.0 are distinct, a list and a tuple are not.

    Args:
        value: plain data; pydantic models stand for their JSON form.

    Raises:
        ValueError: a number is not finite.
        TypeError: a part is not plain data, or a key is not text.
    """
    plain = _plain(value, "value")
    return json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def identity(kind: str, value: object, *, length: int = MIN_HEX_DIGITS) -> str:
    """Return the name of a value, such as "run-3f…": its kind and the first hex digits of a SHA-256.

    Args:
        kind: what the value is ("run", "corpus", …); the beginning of the name.
        value: plain data, hashed in its canonical form.
        length: number of hex digits, 16 to 64.

    Raises:
        ValueError: `length` is out of range, or a number is not finite.
        TypeError: a part is not plain data.
    """
    if not MIN_HEX_DIGITS <= length <= 64:
        raise ValueError(f"length must be from {MIN_HEX_DIGITS} to 64 hex digits, got {length}")
    return f"{kind}-{hashlib.sha256(canonical_json(value)).hexdigest()[:length]}"


def _plain(value: object, path: str) -> object:
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json"), path)
    if isinstance(value, Mapping):
        if wrong_keys := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{path}: keys must be text, got {wrong_keys[0]!r}")
        return {key: _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}.{index}") for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path}: {value} has no canonical form; use a finite number")
    # Exact types: numpy numbers and enumerations look like plain ones, but their hashes would be equal by accident.
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise TypeError(f"{path}: {type(value).__name__} is not plain data")
