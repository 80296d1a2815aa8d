"""Object stores (s3://, gs://): how to connect to one, and the meaning of its client's errors.

The clients are pyarrow's. They look for credentials themselves: in the environment, in a profile, in the machine's
role.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

from pyarrow import fs

from raykd.errors import StoreError
from raykd.redact import expand_variables, redact

GOOGLE_RETRY_S = 3
"""Seconds for which Google's client retries. Its default is 15 minutes, even without credentials."""

# gs: a bound on the retries of Google's client, because `Storage` retries as well.
# s3: with a delayed open a small file is written in one request; an upload in parts takes three.
_OPTIONS = MappingProxyType(
    {
        "s3": ("allow_delayed_open", "true"),
        "gs": ("retry_limit_seconds", GOOGLE_RETRY_S),
        "gcs": ("retry_limit_seconds", GOOGLE_RETRY_S),
    }
)

_GOOGLE = "set GOOGLE_APPLICATION_CREDENTIALS to a key file, here and on every node of the cluster; a public bucket is "
_GOOGLE += "gs://anonymous@BUCKET"
_CREDENTIALS = MappingProxyType(
    {
        "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, here and on every node of the cluster",
        "gs": _GOOGLE,
        "gcs": _GOOGLE,
    }
)
_CREDENTIAL_ERRORS = (
    "access token",
    "ACCESS_DENIED",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "INVALID_ACCESS_KEY_ID",
)
"""Words of the clients' errors for missing or wrong credentials."""
_PERMANENT_ERRORS = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH")
"""Answers of an object store that a retry would not change."""
_NOISE = (" The request was not sent", " error_info=")


def connect(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an object store, and the folder in it.

    Raises:
        StoreError: the store cannot be reached.
    """
    try:
        resolved_uri = _with_options(expand_variables(uri))
        # Each mock store in memory is a new one, so it is not cached.
        if resolved_uri.startswith("mock"):
            return fs.FileSystem.from_uri(resolved_uri)
        return _client(resolved_uri)
    except (OSError, ValueError) as error:
        raise StoreError(
            redact(uri), f"cannot be reached ({short_message(error)})", hint_for(uri, error)
        ) from error


@lru_cache(maxsize=16)
def _client(uri: str) -> tuple[fs.FileSystem, str]:
    """A client, made once per process: it may ask for the bucket's region, and keeps its connections."""
    return fs.FileSystem.from_uri(uri)


def hint_for(uri: str, error: Exception) -> str:
    """A hint for the user after an error of a store."""
    if any(phrase in str(error) for phrase in _CREDENTIAL_ERRORS):
        return _CREDENTIALS.get(urlsplit(uri).scheme, "check the credentials")
    return "check the address, the network and the credentials"


def is_permanent(error: Exception) -> bool:
    """Return true if the store has answered and would answer the same again."""
    return any(answer in str(error) for answer in _PERMANENT_ERRORS)


def short_message(error: Exception) -> str:
    """The message of a client's error in one line, without passwords and repetitions."""
    text = redact(" ".join(str(error).split()))
    for verbose in _NOISE:
        text = text.partition(verbose)[0]
    return text.removeprefix("google::cloud::Status(").rstrip(".")


def _with_options(uri: str) -> str:
    """`uri` with raykd's options for the client, unless it sets them itself."""
    parts = urlsplit(uri)
    name, value = _OPTIONS.get(parts.scheme, ("", ""))
    if not name or name in parse_qs(parts.query):
        return uri
    return f"{uri}{'&' if parts.query else '?'}{name}={value}"
