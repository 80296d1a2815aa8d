"""Object stores, s3:// and gs://: how one is connected to, and what an error of its client means.

The clients are pyarrow's. Credentials come from where the clients look by themselves: the environment, a profile, the
machine's role.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

from pyarrow import fs

from raykd.errors import StoreError
from raykd.redact import expand_variables, redact

GOOGLE_RETRY_S = 3
"""Seconds for which Google's client tries again by itself: by default 15 minutes, also where it has no credentials."""

# A bound on the retries of Google's client: `Storage` tries again by itself. A file that is opened to be written is
# only opened at S3 once it is large: what is small is one request, not the three of an upload in parts.
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
_SIGNS = ("access token", "ACCESS_DENIED", "PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ACCESS_KEY_ID")
"""What the clients say where credentials are missing or wrong."""
_REFUSED = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH")
"""What an object store answers that it would answer again."""
_VERBOSE = (" The request was not sent", " error_info=")


def connect(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of an object store, and the folder in it.

    Raises:
        StoreError: the store cannot be reached.
    """
    try:
        known = _with_options(expand_variables(uri))
        # The store in memory is another one each time.
        return fs.FileSystem.from_uri(known) if known.startswith("mock") else _client(known)
    except (OSError, ValueError) as error:
        raise StoreError(
            redact(uri), f"cannot be reached ({short_message(error)})", hint_for(uri, error)
        ) from error


@lru_cache(maxsize=16)
def _client(uri: str) -> tuple[fs.FileSystem, str]:
    """Made once per process: it may ask where the bucket is, and keeps its connections."""
    return fs.FileSystem.from_uri(uri)


def hint_for(uri: str, error: Exception) -> str:
    """What to do about a store that did not give or take something."""
    if any(sign in str(error) for sign in _SIGNS):
        return _CREDENTIALS.get(urlsplit(uri).scheme, "check the credentials")
    return "check the address, the network and the credentials"


def is_permanent(error: Exception) -> bool:
    """Whether the store answered, and would answer the same again."""
    return any(answer in str(error) for answer in _REFUSED)


def short_message(error: Exception) -> str:
    """What a client says, without passwords, and without what it says twice."""
    text = redact(" ".join(str(error).split()))
    for verbose in _VERBOSE:
        text = text.partition(verbose)[0]
    return text.removeprefix("google::cloud::Status(").rstrip(".")


def _with_options(uri: str) -> str:
    """`uri` with what clients should do otherwise than by default, unless it says so itself."""
    parts = urlsplit(uri)
    name, value = _OPTIONS.get(parts.scheme, ("", ""))
    if not name or name in parse_qs(parts.query):
        return uri
    return f"{uri}{'&' if parts.query else '?'}{name}={value}"
