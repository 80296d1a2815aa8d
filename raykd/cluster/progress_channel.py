"""Progress from workers to the driver, through the key-value store of Ray's head node.

The work never waits for it. A thread of the worker writes the newest report about once a second, below a key of this
worker, and a thread of the driver reads all reports about once a second. No process is started. Lost reports are not
repeated, since the next one says the same and more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import ray
from ray.experimental import internal_kv

from raykd.progress import listen_to_progress

EVERY_S = 1.0
"""Seconds between two reports of a worker, and between two looks of the driver."""
LAST_LOOK_S = 2.0
"""Seconds for which the driver waits at the end for a look that hangs, because Ray's head is out of reach."""
NAMESPACE = b"raykd-progress"

HearPart = Callable[[str, float | None, str, float], None]
"""Called with the id of a part (such as a run), the arguments of `raykd.progress.ProgressListener`, and the share that
was finished when the work on the part began."""


class Reports:
    """Keeps the newest report of one part, and sends new reports from a thread."""

    def __init__(self, part: str, send: Callable[[str], None], *, every_s: float = EVERY_S):
        self._part, self._send, self._every_s = part, send, every_s
        self._first = 0.0
        self._share: float | None = None
        self._doing = ""
        self._new, self._ended = threading.Event(), threading.Event()

    def hear(self, share: float | None, doing: str) -> None:
        """Replace the last report."""
        if share is not None:
            self._first = share if self._share is None else self._first
            self._share = share
        self._doing = doing
        self._new.set()

    @contextmanager
    def sent(self) -> Iterator[None]:
        """Send the reports while the body runs."""
        threading.Thread(target=self._work, name="raykd-progress", daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()
            self._new.set()

    def _work(self) -> None:
        while self._new.wait() and not self._ended.is_set():
            self._new.clear()
            # Nobody depends on it: whatever Ray raises must not reach the work.
            with suppress(Exception):
                self._send(json.dumps([self._part, self._share, self._doing, self._first]))
            self._ended.wait(self._every_s)


@contextmanager
def reported(part: str) -> Iterator[None]:
    """Send the progress of the body to the driver; without Ray, do nothing.

    Args:
        part: Id of the part of a unit that the body works on.
    """
    if not ray.is_initialized():
        yield
        return
    context = ray.get_runtime_context()
    key = f"{context.get_job_id()}/{context.get_worker_id()}"
    reports = Reports(part, lambda text: _put(key, text))
    with reports.sent(), listen_to_progress(reports.hear):
        yield


@contextmanager
def received(hear: HearPart) -> Iterator[None]:
    """Receive progress from the workers of the present driver while the body runs; without Ray, do nothing.

    Args:
        hear: Called with each new report.
    """
    if not ray.is_initialized():
        yield
        return
    prefix, ended = f"{ray.get_runtime_context().get_job_id()}/", threading.Event()
    inbox = Inbox(lambda: _all_below(prefix), hear)

    def look() -> None:
        # As in `Reports`: no error of Ray may reach the work.
        while not ended.wait(EVERY_S):
            with suppress(Exception):
                inbox.look()
        with suppress(Exception):
            internal_kv._internal_kv_del(prefix, del_by_prefix=True, namespace=NAMESPACE)

    thread = threading.Thread(target=look, name="raykd-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_LOOK_S)


class Inbox:
    """Passes on new reports; the last report of a dead worker stays in the store and counts once."""

    def __init__(self, read: Callable[[], dict[str, str]], hear: HearPart):
        self._read, self._hear = read, hear
        self._last_reports: dict[str, str] = {}

    def look(self) -> None:
        """Read all reports, and pass on the new ones."""
        reports = self._read()
        for key, text in reports.items():
            if self._last_reports.get(key) != text:
                self._hear(*json.loads(text))
        self._last_reports = reports


def _put(key: str, text: str) -> None:
    internal_kv._internal_kv_put(key, text, overwrite=True, namespace=NAMESPACE)


def _all_below(prefix: str) -> dict[str, str]:
    keys = internal_kv._internal_kv_list(prefix, namespace=NAMESPACE)
    reports = {key.decode(): internal_kv._internal_kv_get(key, namespace=NAMESPACE) for key in keys}
    return {key: text.decode() for key, text in reports.items() if text is not None}
