"""Things that are expensive to open, opened when they are first asked for, or ahead of that by background threads.

An error of a background thread is raised where the thing is first asked for. What is opened is kept until it is no
longer expected: so memory depends on what is expected, never on all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Prefetcher(Generic[Key, T]):
    """What `load` gives for each key. One thread asks for it; `threads` others load what that one will ask for."""

    def __init__(self, load: Callable[[Key], T], *, threads: int = 1):
        self._load, self._threads = load, threads
        self._open: dict[Key, T] = {}
        self._pending: dict[Key, Future[T]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def get(self, key: Key) -> T:
        """What `key` stands for, kept from now on. Raises what loading it raised, here or in the background."""
        if key not in self._open:
            coming = self._pending.pop(key, None)
            # One that no thread has begun with is not waited for behind others.
            if coming is None or coming.cancel():
                self._open[key] = self._load(key)
            else:
                self._open[key] = coming.result()
        return self._open[key]

    def prefetch(self, keys: Iterable[Key]) -> None:
        """These are asked for next, about in this order: load them in the background, and let go of all others."""
        wanted = dict.fromkeys(keys)
        self._open = {key: value for key, value in self._open.items() if key in wanted}
        for key in [key for key in self._pending if key not in wanted]:
            self._pending.pop(key).cancel()
        for key in wanted:
            if key not in self._open and key not in self._pending:
                self._pending[key] = self._threads_of_pool().submit(self._load, key)

    def close(self) -> None:
        """End the background threads and let go of everything. It can be asked again, and loads when it is asked."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._open.clear()
        self._pending.clear()

    def _threads_of_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="raykd-prefetch")
        return self._pool
