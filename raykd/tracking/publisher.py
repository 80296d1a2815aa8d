"""Publish a sweep in MLflow: compare the pages of the store with the runs in MLflow, and write the differences.

A thread publishes every few seconds, and whenever it is woken, so the driver never waits for the server. Publishing
twice changes nothing. If the server is away or does not answer, the thread tries again at its next turn and writes
everything that is missing. One request ends after `ANSWER_S` at the latest, and at the end of a sweep the attempts go
on for `LAST_S`. After `kill -9` of the driver the next driver finds the runs by their tags.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from mlflow.tracking import MlflowClient

from raykd.errors import TrackingError
from raykd.figures.trial import State
from raykd.pluralise import pluralise
from raykd.progress import report_progress
from raykd.redact import redact
from raykd.tracking.database import ANSWER_SECONDS
from raykd.tracking.pages import Key, Page
from raykd.tracking.published_runs import PublishedRuns
from raykd.tracking.registry import shipped_version
from raykd.tracking.server import check_connection, check_server, find_or_create_experiment, quick_requests
from raykd.tracking.sweep_pages import SweepPages
from raykd.tracking.views import Experiment, run_link

PUBLISH_S = 5.0
"""Seconds between two publications."""
ANSWER_S = 20.0
"""Limit of one request in seconds; MLflow's own client would repeat it for a quarter of an hour."""
LAST_S, LAST_PAUSE_S = 20.0, 2.0
"""Seconds for which a complete sweep tries to reach a server that is away, and the seconds between two attempts."""
LOOK_S = 0.5
"""Seconds between two looks at the thread's progress."""
CLOSE_S = 120.0
"""Longest wait at the end of a sweep, in seconds, for a thread that may be writing a large file."""
LOCAL_PAGES = "http://127.0.0.1:5000"
"""Address at which `mlflow ui` shows a local database."""


class Publisher:
    """The publisher of one sweep, for the driver only. Create it, start it, close it."""

    def __init__(
        self,
        uri: str,
        experiment: Experiment,
        pages: SweepPages,
        *,
        warn: Callable[[str], None] = lambda message: None,
        may_write: Callable[[], bool] = lambda: True,
    ):
        """Find the sweep's experiment and runs, or create the experiment and the sweep's run.

        Args:
            uri: Address of the server or database.
            experiment: Name and views of the sweep's experiment.
            pages: Pages of the sweep, made from its records.
            warn: Called with one sentence when the server stops answering and when it answers again, from another
                thread.
            may_write: Nothing is written while it returns False: another driver has the sweep.

        Raises:
            TrackingError: The server cannot be used (see `check_server`); raised within seconds.
        """
        self.uri, self.pages = check_server(uri), pages
        self._name, self._warn, self._may_write = experiment.name, warn, may_write
        self.trouble = ""
        """The reason why the last attempt failed; empty if it succeeded."""
        self._models: list[Page] = []
        """Pages with a model."""
        self._missing: dict[Key, tuple[str, int]] = {}
        """Name of each run with missing values, and their number."""
        self._complete: dict[Key, Page] = {}
        """Pages of which the server shows everything."""
        self._publishing, self._woken, self._seconds = threading.Lock(), threading.Event(), PUBLISH_S
        self._thread = threading.Thread(target=self._run, name="raykd-publisher", daemon=True)
        client, sweep = MlflowClient(self.uri), pages.sweep()
        try:
            with quick_requests(ANSWER_S):
                self.experiment_id = find_or_create_experiment(client, self.uri, experiment)
                self.published = PublishedRuns(client, self.experiment_id, sweep.key, warn)
                self.published.read()
                self.published.write(replace(sweep, files={}))  # files may go to a slow bucket: later
        except TrackingError:
            raise
        except Exception as error:
            raise TrackingError(
                f"tracking.uri: {redact(self.uri)} cannot be written: {reason(error)}"
            ) from error
        pages.shown_front_steps = self.published.front_step

    def start(self, seconds: float = PUBLISH_S) -> None:
        """Start the thread, which publishes every `seconds`, whenever `wake` is called, and once more in `close`."""
        self._seconds = seconds
        self._thread.start()

    def wake(self) -> None:
        """Make the thread publish now. Returns at once."""
        self._woken.set()

    def publish(self) -> tuple[str, ...]:
        """Write all values of the sweep missing in MLflow; a second call changes nothing.

        Returns:
            The values still missing on the server, one line per run.
        """
        with self._publishing:
            pages = self.pages()
            self._models = [page for page in pages if page.model is not None]
            self._count_missing(pages)
            if self._missing and self._may_write():
                trouble = self._write([page for page in pages if page.key in self._missing])
                self._report(trouble)
                self._count_missing(pages)
        return self.missing()

    def _write(self, pages: Sequence[Page]) -> str:
        """Return the reason why the server could not be written; empty if it could."""
        trouble = ""
        # No error of the server or its client may reach the sweep.
        try:
            check_connection(self.uri)
            with quick_requests(ANSWER_S):
                if not self.published.is_known:
                    self.published.read()
                for page in pages:
                    self.published.write(page)
        except Exception as error:
            self.published.is_known = False
            return reason(error)
        # Models take long and a registry may refuse them: they come last, one by one.
        for page in pages:
            try:
                self.published.write_model(page)
            except Exception as error:
                self.published.is_known = False
                trouble = trouble or reason(error)
        return trouble

    def _count_missing(self, pages: Sequence[Page]) -> None:
        missing = {}
        for page in pages:
            if self._complete.get(page.key) is page and not page.points:
                continue
            points = len(page.points)
            count = sum(count for count, _ in self.published.changes(page)) + self.published.lacks_model(page)
            if count:
                missing[page.key] = (page.name, count)
            else:
                self._complete[page.key] = page
                del page.points[:points]  # the driver may have added others meanwhile
        self._missing = missing

    def _report(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and not before:
            self._warn(
                f"MLflow at {redact(self.uri)} cannot be written, the sweep goes on without it: {trouble}"
            )
        elif before and not trouble:
            self._warn(f"MLflow at {redact(self.uri)} answers again; what it missed is written")

    def _run(self) -> None:
        state: State = "RUNNING"
        while state == "RUNNING":
            self._woken.wait(self._seconds)
            self._woken.clear()
            state = self.pages.state  # read before publishing, so that the last publication shows the end
            self._publish_guarded()
        deadline = time.monotonic() + (LAST_S if state == "COMPLETE" else 0.0)
        while self.trouble and time.monotonic() < deadline:
            time.sleep(LAST_PAUSE_S)
            self._publish_guarded()

    def _publish_guarded(self) -> None:
        """Publish; an error outside the server, such as a store that does not answer, does not end the thread."""
        try:
            self.publish()
        except Exception as error:
            self._report(reason(error))

    def close(self, state: State) -> tuple[str, ...]:
        """Publish for the last time and end; after `CLOSE_S` a thread that hangs is abandoned.

        Args:
            state: State in which the sweep ends. If it is complete and the server is away, the thread tries for
                `LAST_S` more.

        Returns:
            The reason and the missing values, as `missing`; empty if the server shows everything.
        """
        self.pages.state = state
        self.wake()
        deadline = time.monotonic() + CLOSE_S
        while self._thread.is_alive() and (left_s := deadline - time.monotonic()) > 0:
            models = self._models
            waiting = sum(map(self.published.lacks_model, models))
            share = 1 - waiting / len(models) if models else None
            doing = f"{pluralise(waiting, 'model')} to log" if waiting else "writing the last values"
            report_progress(share, doing)
            self._thread.join(min(LOOK_S, left_s))
        missing = self.missing()
        trouble = self.trouble or "it does not answer in time"
        return (f"tracking server: {trouble}", *missing) if missing or self.trouble else ()

    def missing(self) -> tuple[str, ...]:
        """Return the values missing on the server, one line per run; empty if the server shows everything."""
        return tuple(f"{name}: {count} values not written" for name, count in self._missing.values())

    @property
    def waiting(self) -> int:
        """Number of values, files and states that the server lacked after the last attempt."""
        return sum(count for _, count in self._missing.values())

    def shipped_version(self) -> str:
        """Return the version under the registry's alias `ship`, whoever set it.

        Returns:
            Version and trial in words; empty if there is no such alias or the server does not answer.
        """
        if self.trouble:
            return ""
        try:
            check_connection(self.uri)
            with quick_requests(ANSWER_SECONDS):
                return shipped_version(self.published.client, self._name)
        # No error of the server or its client may reach the sweep.
        except Exception:
            return ""

    @property
    def place(self) -> str:
        """Address of the sweep's run, relative to the server's URI."""
        return run_link(self.experiment_id, self.published.sweep_run)

    @property
    def link(self) -> str:
        """Address of the sweep's run: below the server's address, or below that of `mlflow ui`."""
        parts = urlsplit(self.uri)
        # Without user and password: a browser asks for them.
        server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        at = server.rstrip("/") if parts.scheme in ("http", "https") else LOCAL_PAGES
        return f"{at}/{self.place}"


def reason(error: Exception) -> str:
    """Return an error of the server or of MLflow's client on one line, without secrets."""
    return redact(" ".join(str(error).split()))[:300]
