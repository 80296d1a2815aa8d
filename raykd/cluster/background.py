"""Work that is repeated in a thread beside the main one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(
    act: Callable[[], bool | None],
    every_s: float,
    *,
    name: str,
    wait_s: float | None = None,
    at_end: bool = False,
) -> Iterator[None]:
    """Do `act` every few seconds while the body runs.

    Args:
        act: what is done; where it returns True, it is not done again.
        every_s: seconds between two times.
        name: that of the thread.
        wait_s: how many seconds the end waits for an `act` that hangs; None: until it is done.
        at_end: whether it is done once more by this thread then, unless it hangs.
    """
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s) and not act():
            pass

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(wait_s)
        if at_end and not thread.is_alive():
            act()
