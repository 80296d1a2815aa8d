"""Patience in seconds of a quiet machine: a test waits for an event, and on a busy machine it waits longer for it.

How much slower a machine is at present is measured by starting an interpreter, which other work delays as much as it
delays what a test waits for. Only what lasts for seconds is measured.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from time import monotonic, sleep

QUIET_S = 0.04
"""Seconds in which an interpreter starts on a machine that has nothing else to do."""
LOOK_S = 5.0
"""Seconds between two measurements."""
PAUSE_S = 0.05
"""Seconds between two looks at an event."""
PATIENCE_S = 240.0
"""Seconds of a quiet machine after which an event will never come; in a test its `timeout` ends all waits."""


def slowness() -> float:
    """Return how many times as long as on a quiet machine work takes now; at least 1."""
    began = monotonic()
    subprocess.run([sys.executable, "-I", "-c", ""], check=True, stdin=subprocess.DEVNULL)
    return max(1.0, (monotonic() - began) / QUIET_S)


class Stopwatch:
    """The seconds since the clock was made, as a quiet machine would have taken them.

    Args:
        slowness: gives how many times as long as on a quiet machine work takes now.
        clock: gives the time in seconds.
    """

    def __init__(self, slowness: Callable[[], float] = slowness, clock: Callable[[], float] = monotonic):
        self._slowness, self._clock = slowness, clock
        self._seconds, self._looked = 0.0, clock()

    def seconds(self) -> float:
        """Return the seconds up to the last measurement; measure again where it is older than `LOOK_S`."""
        now = self._clock()
        if now - self._looked >= LOOK_S:
            self._seconds += (now - self._looked) / self._slowness()
            self._looked = now
        return self._seconds


def comes(event: Callable[[], object], *, seconds: float = PATIENCE_S) -> bool:
    """Wait until `event` is true; return False where it is not within so many seconds of a quiet machine."""
    watch = Stopwatch()
    while not event():
        if watch.seconds() >= seconds:
            return False
        sleep(PAUSE_S)
    return True


def until(event: Callable[[], object], *, output: Callable[[], str] = lambda: "") -> None:
    """Wait until `event` is true.

    Args:
        event: is looked at every `PAUSE_S`; what it raises ends the wait.
        output: what is shown where the event never comes: what the awaited process printed.

    Raises:
        AssertionError: the event does not come within `PATIENCE_S`.
    """
    assert comes(event), f"it never came to that:\n{output()}"


class Alarm:
    """Sends SIGALRM to the main thread of this process after so many `seconds` of a quiet machine."""

    def __init__(self, seconds: float):
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(seconds,), name="patience", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Send nothing any more."""
        self._cancelled.set()
        self._thread.join()

    def _watch(self, seconds: float) -> None:
        watch = Stopwatch()
        while watch.seconds() < seconds:
            if self._cancelled.wait(LOOK_S):
                return
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
