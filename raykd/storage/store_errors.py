"""The errors of a store: a failed read, listing, removal or write as one `StoreError` with a hint."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from raykd.errors import MissingError, StoreError
from raykd.storage import object_stores
from raykd.storage.retries import RetryPolicy

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class StoreErrors:
    """The errors of one store. `address` is the address of a file in it.

    Attributes:
        uri: URI of the store; its scheme decides the hint.
        is_local: True for a file system, false for an object store.
        retries: Decides which errors a retry may solve.
    """

    uri: str
    is_local: bool
    retries: RetryPolicy

    def missing(self, address: str) -> MissingError:
        """Return the error of a file that does not exist."""
        return MissingError(address, "does not exist", "correct the store's URI, or make the file again")

    def access(self, address: str, verb: str, error: OSError) -> StoreError:
        """Return the error of a file that cannot be used; `verb` is a participle, such as "read" or "removed"."""
        hint = "make it accessible" if self.is_local else object_stores.hint_for(self.uri, error)
        problem = f"cannot be {verb} ({_reason(error)})"
        return StoreError(address, problem, hint, self.retries.is_transient(error))

    def write(self, address: str, size: int, error: OSError, *, free: int | None) -> StoreError:
        """Return the error of a file that cannot be written.

        Args:
            address: of the file.
            size: bytes of the file.
            error: the cause.
            free: free bytes of the disk; None on an object store.
        """
        problem = f"cannot be written ({_reason(error)}): {size:,} bytes needed"
        if free is not None:
            problem += f", {free:,} free"
        if error.errno in _FULL:
            hint = "free some space, or set another store, and start again: complete files are kept"
        elif error.errno in _FORBIDDEN:
            hint = "make the folder writable, or set another store"
        else:
            hint = "check the folder" if self.is_local else object_stores.hint_for(self.uri, error)
        transient = error.errno in _FULL or self.retries.is_transient(error)
        return StoreError(address, problem, hint, transient)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno else object_stores.short_message(error)
