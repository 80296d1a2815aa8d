"""Secrets of URIs: `${NAME}` comes from the environment when a connection is made; what is shown or stored has `***`.

A sweep file says `postgresql://raykd:${DB_PASSWORD}@db/mlflow`; so it can be stored, shown and sent around as it is. A
password that was written out all the same works, and is left out wherever the URI is written.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from raykd.errors import RaykdError

HIDDEN = "***"

_REFERENCE = re.compile(r"\$\{(\w+)\}")
# Lengths are bounded: a text of any length takes time in proportion to it.
_USER = re.compile(r"([\w+.-]{1,32}://)([^\s/'\"<>]*)@")
_QUERY = re.compile(
    r"([?&](?:[\w.-]{0,32}(?:password|passwd|pwd|secret|token|signature|credential|access_key|api_key)[\w.-]{0,32}|sig))"
    r"=[^&\s'\"<>]+",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """`text` with `***` for each password in the URIs that it holds: after the user's name, and in the query.

    References to the environment stay: they tell nothing.
    """
    text = _USER.sub(lambda found: f"{found[1]}{_redact_password(found[1], found[2])}@", text)
    return _QUERY.sub(lambda found: found[0] if _REFERENCE.search(found[0]) else f"{found[1]}={HIDDEN}", text)


def _redact_password(scheme: str, user: str) -> str:
    name, colon, password = user.partition(":")
    # The web has tokens in the user's place.
    secret = password if colon else name if scheme.startswith("http") else ""
    if not secret or _REFERENCE.fullmatch(secret):
        return user
    return f"{name}:{HIDDEN}" if colon else HIDDEN


def expand_variables(uri: str) -> str:
    """`uri` with the values of the environment variables that it names; within user and password they are quoted.

    Raises:
        RaykdError: a variable is not set.
    """
    user = _USER.search(uri)

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise RaykdError(
                f"{redact(uri)}: the environment variable {found[1]} is not set; set it here, and for a store on "
                "every node of the cluster"
            )
        within = user is not None and user.start(2) <= found.start() < user.end(2)
        return quote(os.environ[found[1]], safe="") if within else os.environ[found[1]]

    return _REFERENCE.sub(value, uri)
