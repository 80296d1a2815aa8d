"""Publishes a sweep in MLflow: what the store holds is compared with what MLflow shows, and the difference is written.

A thread publishes every few seconds, and whenever it is woken, so that nobody waits for the server. Publishing twice
changes nothing. A server may go away, or take connections and answer nothing, for as long as it likes: it is tried
again at the next turn, and what it lacks then is written. Each attempt ends by itself after `ANSWER_S` where nothing
answers, and the last one of a sweep is repeated for `LAST_S`. After `kill -9` of the driver the next one finds the runs
again by their tags.
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
"""Seconds from one publishing to the next."""
ANSWER_S = 20.0
"""How long one request may take; MLflow's own client would repeat it for a quarter of an hour."""
LAST_S, LAST_PAUSE_S = 20.0, 2.0
"""For so long a sweep that has ended tries to reach a server that is away, and the seconds between two attempts."""
LOOK_S = 0.5
"""Seconds between two looks at how far the thread is."""
CLOSE_S = 120.0
"""How long the end of a sweep waits for the thread, which may be in the middle of a large file."""
LOCAL_PAGES = "http://127.0.0.1:5000"
"""Where `mlflow ui` shows a local database."""


class Publisher:
    """One sweep in MLflow: in the driver only. Make it, start it, close it."""

    def __init__(
        self,
        uri: str,
        experiment: Experiment,
        pages: SweepPages,
        *,
        warn: Callable[[str], None] = lambda message: None,
        may_write: Callable[[], bool] = lambda: True,
    ):
        """Find the sweep's experiment and runs, or make experiment and sweep run.

        Args:
            uri: of the server.
            experiment: with the name and the views of the sweep.
            pages: of the sweep, made of its records.
            warn: called, from another thread, with one sentence when the server stops answering and when it answers
                again.
            may_write: nothing is written while it says no: the sweep has another driver.

        Raises:
            TrackingError: the server cannot be used, within seconds (`check`).
        """
        self.uri, self.pages = check_server(uri), pages
        self._name, self._warn, self._may_write = experiment.name, warn, may_write
        self.trouble = ""
        """Why the server could not be written the last time; empty where it could."""
        self._models: list[Page] = []
        """Pages that have a model."""
        self._missing: dict[Key, tuple[str, int]] = {}
        """The name of each run of which the server lacks values, and how many."""
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
                self.published.write(replace(sweep, files={}))  # these may be elsewhere, and take long
        except TrackingError:
            raise
        except Exception as error:
            raise TrackingError(
                f"tracking.uri: {redact(self.uri)} cannot be written: {reason(error)}"
            ) from error
        pages.shown_front_steps = self.published.front_step

    def start(self, seconds: float = PUBLISH_S) -> None:
        """Publish every so many seconds from now on, whenever `wake` is called, and once more in `close`."""
        self._seconds = seconds
        self._thread.start()

    def wake(self) -> None:
        """Have the thread publish now instead of at its next turn. Returns at once."""
        self._woken.set()

    def publish(self) -> tuple[str, ...]:
        """Write what MLflow does not show of the sweep as it stands; calling it again changes nothing.

        Returns:
            What is still missing on the server, one line per run.
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
        """Return why the server could not be written; empty where it could."""
        trouble = ""
        # Whatever the server or its client does must not reach the sweep.
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
        # What takes long, and a registry may refuse, comes last, each by itself.
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
            state = self.pages.state  # before it publishes: the last time shows the end
            self._publish_guarded()
        until = time.monotonic() + (LAST_S if state == "COMPLETE" else 0.0)
        while self.trouble and time.monotonic() < until:
            time.sleep(LAST_PAUSE_S)
            self._publish_guarded()

    def _publish_guarded(self) -> None:
        """`publish`; what fails outside of the server, such as a store that does not answer, ends no thread."""
        try:
            self.publish()
        except Exception as error:
            self._report(reason(error))

    def close(self, state: State) -> tuple[str, ...]:
        """Publish the last time, and end; what hangs is left after `CLOSE_S`.

        Args:
            state: in which the sweep ends. Where it is complete and the server is away, that is tried for `LAST_S`
                more.

        Returns:
            Why something is missing, and what, as `missing`; empty where the server shows everything.
        """
        self.pages.state = state
        self.wake()
        until = time.monotonic() + CLOSE_S
        while self._thread.is_alive() and (left_s := until - time.monotonic()) > 0:
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
        """What the server does not show yet, one line per run; empty when it shows everything."""
        return tuple(f"{name}: {count} values not written" for name, count in self._missing.values())

    @property
    def waiting(self) -> int:
        """How many values, files and changes of state the server did not show after the last attempt."""
        return sum(count for _, count in self._missing.values())

    def shipped_version(self) -> str:
        """Which version the registry's alias `ship` names, whoever set it; empty where none does, or the server does
        not answer.
        """
        if self.trouble:
            return ""
        try:
            check_connection(self.uri)
            with quick_requests(ANSWER_SECONDS):
                return shipped_version(self.published.client, self._name)
        # Whatever the server or its client does must not reach the sweep.
        except Exception:
            return ""

    @property
    def place(self) -> str:
        """Where the sweep's run is shown, as it follows the server's URI."""
        return run_link(self.experiment_id, self.published.sweep_run)

    @property
    def link(self) -> str:
        """Where the sweep's run is shown: below the server's address, or below that of `mlflow ui`."""
        parts = urlsplit(self.uri)
        # A browser asks for user and password itself.
        server = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        at = server.rstrip("/") if parts.scheme in ("http", "https") else LOCAL_PAGES
        return f"{at}/{self.place}"


def reason(error: Exception) -> str:
    """An error of the server or of its client on one line."""
    return redact(" ".join(str(error).split()))[:300]
