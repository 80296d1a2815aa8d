"""Brings what is recorded to the tracking server: a thread writes it every few seconds, so that nobody waits for it.

A server may go away, or take connections and answer nothing, for as long as it likes: what it missed is kept, and
written when it answers again. Each attempt ends by itself after `ANSWER_S` where nothing answers, and the last one of a
sweep is repeated for `LAST_S`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from raykd.counted import counted
from raykd.progress import report_progress
from raykd.redact import redacted
from raykd.tracking.record import Record
from raykd.tracking.server import quick_requests, reachable
from raykd.tracking.writer import Writer

ANSWER_S = 20.0
"""How long one request may take; MLflow's own client would repeat it for a quarter of an hour."""
LAST_S, LAST_PAUSE_S = 20.0, 2.0
"""For so long a sweep that has ended tries to reach a server that is away, and the seconds between two attempts."""
LOOK_S = 0.5
"""Seconds between two looks at how far the thread is."""
CLOSE_S = 120.0
"""How long the end of a sweep waits for the thread, which may be in the middle of a large file."""


class Delivery:
    """Of one sweep's records; `records` are asked for each time, those that wait for something are written."""

    def __init__(
        self,
        uri: str,
        writer: Writer,
        records: Callable[[], Sequence[Record]],
        *,
        lock: threading.Lock,
        warn: Callable[[str], None],
        may_write: Callable[[], bool],
    ):
        self._uri, self._writer, self._records = uri, writer, records
        self._lock, self._warn, self._may_write = lock, warn, may_write
        self.trouble = ""
        """Why the server could not be written the last time; empty where it could."""
        self._writing, self._stop = threading.Lock(), threading.Event()
        self._last_s = 0.0
        self._thread: threading.Thread | None = None

    def start(self, seconds: float) -> None:
        """Write every so many seconds from now on."""
        self._thread = threading.Thread(target=self._run, args=(seconds,), name="raykd-tracker", daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    def stop(self, *, patient: bool) -> None:
        """Write what waits, and end; `patient`: where the server is away, try again for a while."""
        self._last_s = LAST_S if patient else 0.0
        self._stop.set()
        if self._thread is None:
            self.flush()
        else:
            self._wait(self._thread)

    def _wait(self, thread: threading.Thread) -> None:
        """Wait until the thread has ended, for `CLOSE_S` at most."""
        until, all_models = time.monotonic() + CLOSE_S, self._waiting_models()
        while thread.is_alive() and (left_s := until - time.monotonic()) > 0:
            models = self._waiting_models()
            share = 1 - models / all_models if all_models else None
            report_progress(
                share, f"{counted(models, 'model')} to log" if models else "writing the last values"
            )
            thread.join(min(LOOK_S, left_s))

    def _waiting_models(self) -> int:
        with self._lock:
            return sum(record.model is not None for record in self._records())

    def flush(self) -> None:
        """Write what waits."""
        with self._writing:
            with self._lock:
                records = [record for record in self._records() if record.waiting]
            if not records or not self._may_write():
                return
            trouble = ""
            try:
                reachable(self._uri)
                with quick_requests(ANSWER_S):
                    for record in records:
                        self._writer.write(record)
            # Whatever the server or its client does must not reach the sweep.
            except Exception as error:
                trouble = reason(error)
            # What takes long, and a registry may refuse, comes last, each by itself.
            for record in [] if trouble else records:
                try:
                    self._writer.write_model(record)
                except Exception as error:
                    trouble = trouble or reason(error)
            self._report(trouble)

    def _run(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            self.flush()
        self.flush()
        until = time.monotonic() + self._last_s
        while self.trouble and time.monotonic() < until:
            time.sleep(LAST_PAUSE_S)
            self.flush()

    def _report(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and not before:
            self._warn(
                f"MLflow at {redacted(self._uri)} cannot be written, the sweep goes on without it: {trouble}"
            )
        elif before and not trouble:
            self._warn(f"MLflow at {redacted(self._uri)} answers again; what it missed is written")


def reason(error: Exception) -> str:
    """An error of the server or of its client on one line."""
    return redacted(" ".join(str(error).split()))[:300]
