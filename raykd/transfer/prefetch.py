"""Expensive values, loaded on first use, or earlier by background threads.

An error of a background thread is raised at the first use of its value. A loaded value is kept until it is no longer
expected, so memory depends on the expected values, never on their total.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Prefetcher(Generic[Key, T]):
    """Values loaded by key, for one reading thread.

    Args:
        load: loads the value of a key.
        threads: background threads.
    """

    def __init__(self, load: Callable[[Key], T], *, threads: int = 1):
        self._load, self._threads = load, threads
        self._open: dict[Key, T] = {}
        self._pending: dict[Key, Future[T]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def get(self, key: Key) -> T:
        """Return the value of a key, kept from now on; an error of loading it is raised here."""
        if key not in self._open:
            future = self._pending.pop(key, None)
            # A load that no thread has begun is cancelled and done here, not waited for behind others.
            if future is None or future.cancel():
                self._open[key] = self._load(key)
            else:
                self._open[key] = future.result()
        return self._open[key]

    def prefetch(self, keys: Iterable[Key]) -> None:
        """Load values in the background, about in this order, and drop all others.

        Args:
            keys: keys that are read next.
        """
        expected = dict.fromkeys(keys)
        self._open = {key: value for key, value in self._open.items() if key in expected}
        for key in [key for key in self._pending if key not in expected]:
            self._pending.pop(key).cancel()
        for key in expected:
            if key not in self._open and key not in self._pending:
                self._pending[key] = self._started_pool().submit(self._load, key)

    def close(self) -> None:
        """End the background threads and drop all values; a later `get` loads again."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._open.clear()
        self._pending.clear()

    def _started_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="raykd-prefetch")
        return self._pool
