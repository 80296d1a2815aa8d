"""JSON with its checksum and the format of its store, which are compared whenever it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from raykd.errors import OtherVersionError, StoreError
from raykd.identity import PlainObject, canonical_json
from raykd.storage.digests import check_sha256

DOCTOR = "`raykd doctor STORE` lists all that is damaged, and with --repair removes it, to be computed again"
"""The hint of an error that names a damaged file."""

OTHER_VERSION = "use the raykd that wrote it, or another store"
"""The hint of an error that names a whole file of another version."""

SEAL = "sha256"
"""The key of a JSON file's checksum, over the canonical form of its other keys."""

STORE_FORMAT = 2
"""The format of a store's parts. Raise it with any change after which older parts cannot be read or mean another thing:
a store of another format is refused, and nothing reads it or renames its keys."""

FORMAT_KEY = "store_format"
"""The key of a JSON file's store format."""

T = TypeVar("T")
Parse = Callable[[PlainObject], T]
"""Makes something of a JSON object."""


def seal(value: PlainObject) -> bytes:
    """`value` as a JSON object with the store's format and a checksum, readable by people; ValueError for NaN."""
    plain = {**value, FORMAT_KEY: STORE_FORMAT}
    return (
        json.dumps({**plain, SEAL: _checksum(plain)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    ).encode()


def unseal(
    data: bytes,
    parse: Parse[T],
    name: str,
    *,
    edited: bool = False,
    hint: str = DOCTOR,
) -> T:
    """What `parse` makes of the JSON object in `data`; `name` is what errors call it.

    With `edited` one without a checksum is read too: a user changed it and removed the checksum.

    Raises:
        StoreError: it is no JSON, or it does not have the checksum that it was written with.
        OtherVersionError: it has, and is of another store format, or `parse` cannot read it, whatever it raises; or it
            was written without one.
    """
    whole = False
    try:
        plain, whole = _compared(json.loads(data), edited=edited)
        written = plain.pop(FORMAT_KEY, None)
        if whole and written != STORE_FORMAT:
            format_ = "no store format" if written is None else f"store format {written}"
            problem = f"is of another version of raykd: it has {format_}, this raykd reads {STORE_FORMAT}"
            raise OtherVersionError(name, problem, OTHER_VERSION)
        return parse(plain)
    except StoreError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        own = type(error) in (ValueError, _UnsealedError)
        named = str(error) if own else f"{type(error).__name__}: {error}"
        reason = named.split("\n")[0]
        if whole or isinstance(error, _UnsealedError):
            problem = f"is of another version of raykd, or was changed ({reason})"
            hint = OTHER_VERSION if hint == DOCTOR else hint
            raise OtherVersionError(name, problem, hint) from error
        raise StoreError(name, f"is damaged, or not what raykd writes there ({reason})", hint) from error


def _checksum(value: PlainObject) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


class _UnsealedError(ValueError):
    """A JSON object was written without a checksum."""


def _compared(plain: Any, *, edited: bool) -> tuple[dict[str, Any], bool]:
    """The object without its checksum, and whether it had one. Raises TypeError or ValueError where it is not what was
    written.
    """
    if not isinstance(plain, dict):
        raise TypeError(f"expected an object, found {type(plain).__name__}")
    written = plain.pop(SEAL, None)
    if written is None and edited:
        return plain, False
    if written is None:
        # A checksum under another key was one: the key is damaged.
        lost = any(_checksum({k: v for k, v in plain.items() if k != key}) == plain[key] for key in plain)
        problem = f"it has no {SEAL}: an older raykd wrote it, or it was changed by hand"
        raise (ValueError if lost else _UnsealedError)(problem)
    check_sha256(_checksum(plain), str(written))
    return plain, True
