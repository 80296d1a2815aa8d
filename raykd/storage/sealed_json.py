"""JSON files with a checksum and the format of the store, both compared at every read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from raykd.errors import OtherVersionError, StoreError
from raykd.identity import PlainObject, canonical_json
from raykd.storage.digests import check_sha256

DOCTOR = (
    "run `raykd doctor STORE` for a list of damaged files; with --repair they are removed and computed again"
)
"""The hint of an error that names a damaged file."""

OTHER_VERSION = "use the raykd that wrote it, or another store"
"""The hint of an error that names an undamaged file of another version."""

SEAL = "sha256"
"""The key of a JSON file's checksum, which is over the canonical form of the remaining keys."""

STORE_FORMAT = 2
"""The format of a store's parts. Raise it with any change after which older parts cannot be read or mean another thing.
A store of another format is refused; no code reads it or renames its keys."""

FORMAT_KEY = "store_format"
"""The key of a JSON file's store format."""

T = TypeVar("T")
Parse = Callable[[PlainObject], T]
"""Turns a JSON object into a value."""


def seal(value: PlainObject) -> bytes:
    """Return a value as a JSON object with the store's format and a checksum, indented for people.

    Raises:
        ValueError: a number is NaN or infinite.
    """
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
    """Return the JSON object in `data`, parsed, after comparing its checksum and its store format.

    Args:
        data: the bytes of the file.
        parse: makes the value of the object.
        name: the file, as errors call it.
        edited: accept an object without a checksum: a user changed the file and removed the checksum.
        hint: the hint of errors.

    Raises:
        StoreError: the data is no JSON, or does not have the checksum that it was written with.
        OtherVersionError: the data is undamaged, but of another store format, or `parse` raises a ValueError,
            TypeError, LookupError, AttributeError or RecursionError; or it was written without a checksum.
    """
    undamaged = False
    try:
        plain, undamaged = _without_seal(json.loads(data), edited=edited)
        written = plain.pop(FORMAT_KEY, None)
        if undamaged and written != STORE_FORMAT:
            format_ = "no store format" if written is None else f"store format {written}"
            problem = f"is of another version of raykd: it has {format_}, this raykd reads {STORE_FORMAT}"
            raise OtherVersionError(name, problem, OTHER_VERSION)
        return parse(plain)
    except StoreError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # A plain ValueError has a message for users; errors of Python itself say little without their class.
        has_message = type(error) in (ValueError, _UnsealedError)
        message = str(error) if has_message else f"{type(error).__name__}: {error}"
        reason = message.split("\n")[0]
        if undamaged or isinstance(error, _UnsealedError):
            problem = f"is of another version of raykd, or was changed ({reason})"
            hint = OTHER_VERSION if hint == DOCTOR else hint
            raise OtherVersionError(name, problem, hint) from error
        raise StoreError(name, f"is damaged, or not what raykd writes there ({reason})", hint) from error


def _checksum(value: PlainObject) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


class _UnsealedError(ValueError):
    """A JSON object was written without a checksum."""


def _without_seal(plain: Any, *, edited: bool) -> tuple[dict[str, Any], bool]:
    """The object without the checksum, and true if it had one; raises TypeError or ValueError for a damaged object."""
    if not isinstance(plain, dict):
        raise TypeError(f"expected an object, found {type(plain).__name__}")
    written = plain.pop(SEAL, None)
    if written is None and edited:
        return plain, False
    if written is None:
        # A damaged key: the checksum is there, under another name.
        renamed = any(_checksum({k: v for k, v in plain.items() if k != key}) == plain[key] for key in plain)
        problem = f"it has no {SEAL}: an older raykd wrote it, or it was changed by hand"
        raise (ValueError if renamed else _UnsealedError)(problem)
    check_sha256(_checksum(plain), str(written))
    return plain, True
