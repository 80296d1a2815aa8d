"""Retries for a store out of reach for a moment."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from raykd.storage import object_stores

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each retry of a store that has answered before."""

_UNREACHABLE = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENOTCONN)
"""Errors of a local or network file system that is out of reach."""

T = TypeVar("T")


class RetryPolicy:
    """Retries for one store and all folders of it."""

    def __init__(self, *, is_local: bool):
        self._is_local, self._answered = is_local, threading.Event()

    def call(self, action: Callable[[], T]) -> T:
        """Return the result of `action`; retry for half a minute if the store has gone out of reach.

        A store that never answered probably has a wrong address, so its first error is raised at once.
        """
        for pause in PAUSES_S:
            try:
                result = action()
                self._answered.set()
                return result
            except FileNotFoundError:
                raise
            except OSError as error:
                if not self._answered.is_set() or not self.is_transient(error):
                    raise
            time.sleep(pause)
        return action()

    def is_transient(self, error: OSError) -> bool:
        """Return true if the store is out of reach and may come back, false if it would give the same answer again."""
        if self._is_local:
            return error.errno in _UNREACHABLE
        return not object_stores.is_permanent(error)
