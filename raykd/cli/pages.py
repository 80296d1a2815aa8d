"""The report of a sweep as files in the sweep's folder: the page while trials run, all files at the end."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import MappingProxyType

from ruamel.yaml import YAML

from raykd import __version__
from raykd.cli.console import duration
from raykd.errors import RaykdError
from raykd.figures.trial import Teacher, Trial
from raykd.recipes.run import validate_plain
from raykd.report.front_page import front_html
from raykd.report.provenance import Provenance
from raykd.report.stopped_trials import stopped_trials
from raykd.report.training_curves import Curve, training_curves
from raykd.report.trials_file import trials_csv, trials_parquet
from raykd.sweep.importance import compute_importance
from raykd.sweep.progress_monitor import Monitor
from raykd.sweep.records import SweepRecords, training_labels
from raykd.sweep.status import Status
from raykd.tracking.config import TrackingConfig

PAGE = "front.html"
READERS = 16
"""Files of the store read at once."""
SHARE = 0.01
"""Largest share of a sweep's time spent on writing its page."""
QUICK_S = 1.0
"""Seconds below which the page is written once more when its sweep is interrupted."""


def report_files(trials: list[Trial], teachers: list[Teacher], records: SweepRecords) -> dict[str, bytes]:
    """Return the files of a report by name, for a sweep that has ended."""
    computed = compute_importance(records.tree(), records.load(), records.objectives)
    page = front_page(
        trials, teachers, records, {}, importances=computed.shares, no_importances=computed.missing
    )
    return {
        PAGE: page.encode(),
        "front.csv": trials_csv(trials, objectives=records.objectives),
        "trials.parquet": trials_parquet(trials, objectives=records.objectives),
    }


def front_page(
    trials: list[Trial],
    teachers: list[Teacher],
    records: SweepRecords,
    curves: dict[int, tuple[Curve, ...]],
    *,
    importances: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    no_importances: str = "it is computed when the sweep has ended",
    running: str = "",
) -> str:
    """Return the HTML page.

    Args:
        trials: All trials of the sweep.
        teachers: Rows of the teachers.
        records: Records of the sweep.
        curves: Training curves read before, by number of the trial; missing ones are read and added.
        importances: Importance of settings for each objective.
        no_importances: Reason why there are none.
        running: Progress in words; empty if the sweep has ended.
    """
    students = [trial for trial in trials if trial.state == "COMPLETE"]
    missing = [trial for trial in students if trial.number not in curves]
    # Each run has two small files; reading them one after the other from a bucket would take minutes.
    with ThreadPoolExecutor(READERS) as pool:
        curves.update(pool.map(lambda trial: (trial.number, training_curves(records.runs(trial))), missing))
    alternatives = records.training()
    return front_html(
        trials,
        teachers,
        sweep=records.name,
        objectives=records.objectives,
        dev_labels=records.dev_labels(),
        curves={trial.number: curves[trial.number] for trial in students},
        training_labels={trial.number: training_labels(alternatives, trial) for trial in students},
        stopped=stopped_trials(trials, {record.trial.number: record.epochs for record in records.load()}),
        provenance=provenance(records, students),
        importances=importances,
        no_importances=no_importances,
        running=running,
    )


def provenance(records: SweepRecords, students: list[Trial]) -> Provenance:
    """Return the origin of a sweep's figures."""
    tree, text = records.tree(), io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(tree, text)
    return Provenance(
        version=__version__,
        sentences=records.sentences(students[0]) if students else {},
        dev_labels=records.dev_labels(),
        pos_origin=records.pos_origin(students[0]) if students else "",
        tracking=validate_plain(TrackingConfig, tree.get("tracking", {})).uri,
        run=records.run_place(),
        file=text.getvalue(),
    )


class RunningPage:
    """A watcher: rewrites the page after trials have ended, for at most `SHARE` of the time."""

    def __init__(self, records: SweepRecords, *, clock: Callable[[], float] = time.monotonic):
        self._records, self._clock = records, clock
        self._curves: dict[int, tuple[Curve, ...]] = {}
        self._shown_trials, self._next = 0, clock()
        self._took: float | None = None

    def __call__(self, status: Status) -> None:
        """Write the page if a trial has ended and enough time has passed."""
        ended = sum(
            number
            for counts in status.trials.values()
            for state, number in counts.items()
            if state != "RUNNING"
        )
        if ended > self._shown_trials and self._clock() >= self._next:
            began = self._clock()
            self._write(running=progress_in_words(status))
            self._took, self._shown_trials = self._clock() - began, ended
            self._next = began + self._took / SHARE

    def interrupted(self) -> None:
        """Write the page once more, without progress, if that is quick."""
        if self._took is not None and self._took < QUICK_S:
            with suppress(RaykdError, OSError):
                self._write(running="")

    def _write(self, *, running: str) -> None:
        records = self._records
        page = front_page(records.trials(), records.teachers(), records, self._curves, running=running)
        records.save_file(PAGE, page.encode())


@contextmanager
def update_page(monitor: Monitor, records: SweepRecords) -> Iterator[None]:
    """Update the page while the body runs; the phase `report` writes the final page afterwards."""
    page = RunningPage(records)
    try:
        with monitor.add_watcher(page):
            yield
    except BaseException:
        page.interrupted()
        raise


def progress_in_words(status: Status) -> str:
    """Return `12 of 40 trials, about 25 min left`."""
    phases = {phase.name: phase for phase in status.phases}
    trials, now = phases.get("trials"), status.phase
    parts = [f"{trials.done} of {trials.total} trials"] if trials else []
    if now is not None and now is not trials and not now.ended:
        parts.append(f"{now.name} {now.done} of {now.total}")
    if now is not None and now.left_s is not None:
        parts.append(f"about {duration(now.left_s)} left")
    return ", ".join(parts)
