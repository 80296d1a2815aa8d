"""Secrets in URIs: `${NAME}` is read from the environment when a connection is made; shown and stored text has `***`.

A sweep file says `postgresql://raykd:${DB_PASSWORD}@db/mlflow`; so it can be stored, shown and sent around as it is. A
password that is written out works too, and is replaced wherever the URI is shown or stored.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from raykd.errors import RaykdError

HIDDEN = "***"

_REFERENCE = re.compile(r"\$\{(\w+)\}")
# Repetitions have an upper bound, so that the time grows linearly with the length of the text.
_CREDENTIALS = re.compile(r"([\w+.-]{1,32}://)([^\s/'\"<>]*)@")
_QUERY = re.compile(
    r"([?&](?:[\w.-]{0,32}(?:password|passwd|pwd|secret|token|signature|credential|access_key|api_key)[\w.-]{0,32}|sig))"
    r"=[^&\s'\"<>]+",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return a text with `***` in place of passwords in URIs, after the user's name and in the query.

    References to environment variables stay: they reveal nothing.

    Args:
        text: any text.
    """
    text = _CREDENTIALS.sub(lambda match: f"{match[1]}{_redact_password(match[1], match[2])}@", text)
    return _QUERY.sub(lambda match: match[0] if _REFERENCE.search(match[0]) else f"{match[1]}={HIDDEN}", text)


def _redact_password(scheme: str, credentials: str) -> str:
    name, colon, password = credentials.partition(":")
    # In http URIs a token may stand in place of the user's name.
    secret = password if colon else name if scheme.startswith("http") else ""
    if not secret or _REFERENCE.fullmatch(secret):
        return credentials
    return f"{name}:{HIDDEN}" if colon else HIDDEN


def expand_variables(uri: str) -> str:
    """Return a URI with the values of the environment variables in it; in user and password the values are quoted.

    Args:
        uri: may have `${NAME}` anywhere.

    Raises:
        RaykdError: a variable is not set.
    """
    credentials = _CREDENTIALS.search(uri)

    def value(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise RaykdError(
                f"{redact(uri)}: the environment variable {match[1]} is not set; set it here, and for a store on "
                "every node of the cluster"
            )
        quoted = credentials is not None and credentials.start(2) <= match.start() < credentials.end(2)
        return quote(os.environ[match[1]], safe="") if quoted else os.environ[match[1]]

    return _REFERENCE.sub(value, uri)
