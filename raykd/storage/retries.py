"""Whether a store is in reach, and what is tried again where it is not."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from raykd.storage import object_stores

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each further try where a store that has answered before is out of reach."""

_AWAY = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENOTCONN)
"""What a local or network file system says then."""

T = TypeVar("T")


class RetryPolicy:
    """Of one store, with all folders of it."""

    def __init__(self, *, is_local: bool):
        self._is_local, self._answered = is_local, threading.Event()

    def call(self, action: Callable[[], T]) -> T:
        """What `do` gives, tried again for half a minute where the store has gone out of reach. One that never answered
        has a wrong address more often than not, and is reported at once.
        """
        for pause in PAUSES_S:
            try:
                done = action()
                self._answered.set()
                return done
            except FileNotFoundError:
                raise
            except OSError as error:
                if not self._answered.is_set() or not self.is_transient(error):
                    raise
            time.sleep(pause)
        return action()

    def is_transient(self, error: OSError) -> bool:
        """Whether the store is out of reach, and may be in reach again; an answer would be the same."""
        if self._is_local:
            return error.errno in _AWAY
        return not object_stores.is_permanent(error)
