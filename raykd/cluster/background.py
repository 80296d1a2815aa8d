"""Repeat an action in a background thread."""

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
    """Call `act` repeatedly while the body runs.

    Args:
        act: The action; once it returns True, it is not called again.
        every_s: Seconds between two calls.
        name: Name of the thread.
        wait_s: Seconds for which the end waits for a call that hangs; None: until it returns.
        at_end: Call `act` once more at the end, in the calling thread, unless the last call hangs.
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
