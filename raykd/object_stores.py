"""Object stores, s3:// and gs://: how one is connected to, and what an error of its client means.

The clients are pyarrow's. Credentials come from where the clients look by themselves: the environment, a profile, the
machine's role.
"""

from __future__ import annotations

from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

from pyarrow import fs

from raykd.errors import StoreError
from raykd.redact import expanded, redacted

GOOGLE_RETRY_S = 3
"""Seconds for which Google's client tries again by itself: by default 15 minutes, also where it has no credentials."""

_GOOGLE = "set GOOGLE_APPLICATION_CREDENTIALS to a key file, here and on every node of the cluster; a public bucket is "
_GOOGLE += "gs://anonymous@BUCKET"
_CREDENTIALS = MappingProxyType(
    {
        "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, here and on every node of the cluster",
        "gs": _GOOGLE,
        "gcs": _GOOGLE,
    }
)
_SIGNS = ("access token", "ACCESS_DENIED", "PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ACCESS_KEY_ID")
"""What the clients say where credentials are missing or wrong."""
_VERBOSE = (" The request was not sent", " error_info=")


def connect(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of an object store, and the folder in it.

    Raises:
        StoreError: the store cannot be reached.
    """
    try:
        return fs.FileSystem.from_uri(_impatient(expanded(uri)))
    except (OSError, ValueError) as error:
        raise StoreError(redacted(uri), f"cannot be reached ({brief(error)})", hint(uri, error)) from error


def hint(uri: str, error: Exception) -> str:
    """What to do about a store that did not give or take something."""
    if any(sign in str(error) for sign in _SIGNS):
        return _CREDENTIALS.get(urlsplit(uri).scheme, "check the credentials")
    return "check the address, the network and the credentials"


def brief(error: Exception) -> str:
    """What a client says, without passwords, and without what it says twice."""
    text = redacted(" ".join(str(error).split()))
    for verbose in _VERBOSE:
        text = text.partition(verbose)[0]
    return text.removeprefix("google::cloud::Status(").rstrip(".")


def _impatient(uri: str) -> str:
    """`uri` with a bound on the retries of Google's client, unless it has one: `Storage` tries again by itself."""
    parts = urlsplit(uri)
    if parts.scheme not in ("gs", "gcs") or "retry_limit_seconds" in parse_qs(parts.query):
        return uri
    return f"{uri}{'&' if parts.query else '?'}retry_limit_seconds={GOOGLE_RETRY_S}"
