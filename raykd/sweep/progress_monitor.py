"""The monitor counts the reports of phases, and passes them on to the views and watchers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from typing_extensions import override

from raykd.cluster.background import repeated
from raykd.cluster.listener import Listener, RunEpoch, Unit
from raykd.errors import RaykdError
from raykd.figures.table import DEV, LATENCY, PARAMETERS
from raykd.figures.trial import Trial
from raykd.redact import redact
from raykd.sweep.phase_progress import OpenUnit, PhaseProgress
from raykd.sweep.records import SweepRecords
from raykd.sweep.status import PhaseStatus, RunStatus, Status, StudentStatus

THREAD = "raykd-monitor"
EVERY_S = 5.0
"""Seconds between two calls of the watchers."""
LAST_LOOK_S = 10.0
"""Seconds for which the end of a command waits for a watcher that hangs, because a store is out of reach."""
KEEP_S = 10.0
"""Seconds between two statuses in the store: `raykd watch` reads them, and on a bucket each is a request."""

Watcher = Callable[[Status], None]


class View(Protocol):
    """Shows the progress of phases."""

    def begin(self, phase: PhaseStatus) -> None:
        """Show the beginning of a phase."""
        ...

    def moved(self, phase: PhaseStatus) -> None:
        """Show new progress or activity, or the time passed; the phase may be complete."""
        ...

    def end(self, phase: PhaseStatus) -> None:
        """Show the end of a phase."""
        ...

    def note(self, text: str) -> None:
        """Show a lasting sentence on the screen."""
        ...

    def warn(self, text: str) -> None:
        """Show a lasting warning on the screen."""
        ...


@dataclass
class Monitor(Listener):
    """The listener of a driver. Call `status` from any thread."""

    view: View
    clock: Callable[[], float] = time.monotonic
    watchers: list[Watcher] = field(default_factory=list)
    """Called every few seconds while the monitor runs, in a thread, and once more at its end."""
    untracked: Callable[[], int] = lambda: 0
    """Returns the number of values that the tracking server does not have yet."""

    def __post_init__(self) -> None:
        self._lock, self._began = threading.Lock(), self.clock()
        self._showing = threading.Lock()
        self._phases: dict[str, PhaseProgress] = {}
        self._running: dict[str, dict[str, RunEpoch]] = {}
        self._trials: dict[int, Trial] = {}
        self._budget: tuple[float, float | None, float | None] = (self._began, None, None)
        self._totals = Status()

    def status(self) -> Status:
        """Return the progress of the sweep."""
        with self._lock:
            now = self.clock()
            since, seconds, gpu_hours = self._budget
            trials: dict[str, Counter[str]] = {}
            for trial in self._trials.values():
                trials.setdefault(trial.role, Counter())[trial.state] += 1
            runs = [epoch for epochs in self._running.values() for epoch in epochs.values()]
            return replace(
                self._totals,
                untracked=self.untracked(),
                written=Status().written,
                seconds=round(now - self._began, 1),
                phases=tuple(phase.status(now) for phase in self._phases.values()),
                running=self._now_running(),
                trials={role: dict(states) for role, states in trials.items()},
                tokens_per_second=round(sum(run.tokens_per_second for run in runs), 1),
                budget_s=None if seconds is None else round(max(0.0, seconds - (now - since)), 1),
                budget_gpu_hours=gpu_hours,
            )

    def _now_running(self) -> tuple[RunStatus, ...]:
        units = (unit for phase in self._phases.values() for unit in phase.units.values())
        return tuple(
            _run_status(unit, self._running.get(unit.unit.key)) for unit in units if unit.unit.trains
        )

    @contextmanager
    def call_watchers(self) -> Iterator[None]:
        """Call the watchers every few seconds while the body runs, and once more at its end.

        A watcher that fails is called again the next time.
        """
        with repeated(self._show, EVERY_S, name=THREAD, wait_s=LAST_LOOK_S, at_end=True):
            yield

    @contextmanager
    def refresh_view(self) -> Iterator[None]:
        """Refresh the view every few seconds while the body runs, also when nothing happens.

        The view does not wait for watchers, which may hang.
        """
        with repeated(self._refresh, EVERY_S, name=THREAD, wait_s=LAST_LOOK_S):
            yield

    def _refresh(self) -> None:
        phase = self.status().phase
        if phase is not None:
            self.view.moved(phase)

    @contextmanager
    def add_watcher(self, watcher: Watcher) -> Iterator[None]:
        """Add a watcher while the body runs."""
        self.watchers.append(watcher)
        try:
            yield
        finally:
            with self._showing:  # the watcher is not called any more after this block
                self.watchers.remove(watcher)

    def _show(self) -> None:
        with self._showing:
            for watcher in self.watchers:
                with suppress(RaykdError, OSError):
                    watcher(self.status())

    @override
    def begin(self, phase: str, total: int, *, done_before: int = 0) -> None:
        with self._lock:
            now = self.clock()
            begun = self._phases[phase] = PhaseProgress(phase, total, done_before, now)
        self.view.begin(begun.status(now))

    @override
    def started(self, unit: Unit) -> None:
        with self._lock:
            self._phases[unit.phase].start(unit, self.clock())

    @override
    def part_progress(self, part: str, share: float | None, doing: str, first: float = 0.0) -> None:
        with self._lock:
            now, phases = self.clock(), self._phases.values()
            phase = next(
                (phase for phase in phases if phase.part_progress(part, share, doing, now, first)), None
            )
            status = None if phase is None else phase.status(now)
        if status is not None:
            self.view.moved(status)

    @override
    def advance(self, phase: str, units: int = 1, *, detail: str = "", sentences: int = 0) -> None:
        with self._lock:
            self._totals = replace(self._totals, sentences=self._totals.sentences + sentences)
        self._move(phase, units, detail)

    @override
    def detail(self, phase: str, detail: str) -> None:
        self._move(phase, 0, detail)

    @override
    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        with self._lock:
            self._running.setdefault(epoch.job, {})[epoch.name] = epoch
            status = self._totals
            self._totals = replace(
                status, epochs=status.epochs + 1, tokens=status.tokens + epoch.tokens, label=epoch.label
            )
        self._move(phase, 0, str(epoch))

    def _move(self, phase: str, units: int, detail: str) -> None:
        with self._lock:
            now = self.clock()
            self._phases[phase].advance(units, detail, now)
            status = self._phases[phase].status(now)
        self.view.moved(status)

    @override
    def ended(self, key: str) -> None:
        with self._lock:
            self._running.pop(key, None)
            for phase in self._phases.values():
                phase.end_unit(key, self.clock())

    @override
    def trial(self, trial: Trial) -> None:
        with self._lock:
            self._trials[trial.number] = trial

    @override
    def front(self, students: Sequence[Trial], hypervolume: float) -> None:
        best = sorted(students, key=lambda trial: -(DEV.read(trial) or 0.0))
        rows = (
            StudentStatus(trial.name, DEV.read(trial) or 0.0, LATENCY.read(trial), PARAMETERS.read(trial))
            for trial in best
        )
        with self._lock:
            label = best[0].score_label if best else self._totals.label
            self._totals = replace(self._totals, front=tuple(rows), hypervolume=hypervolume, label=label)

    @override
    def budget(self, *, seconds: float | None, gpu_hours: float | None) -> None:
        with self._lock:
            self._budget = (self.clock(), seconds, gpu_hours)

    @override
    def note(self, text: str) -> None:
        self.view.note(text)

    @override
    def warn(self, text: str) -> None:
        self.view.warn(text)

    @override
    def end(self, phase: str, summary: str = "") -> None:
        with self._lock:
            now = self.clock()
            progress = self._phases.setdefault(phase, PhaseProgress(phase, 0, 0, now))
            progress.end(summary, now)
            status = progress.status(now)
        self.view.end(status)


def _run_status(unit: OpenUnit, epochs: Mapping[str, RunEpoch] | None) -> RunStatus:
    """Return the state of a job, from a unit and the last finished epoch of the unit's runs."""
    about = unit.unit.about
    name = unit.unit.parts.get(unit.part) or next(iter(unit.unit.parts.values()))
    share = unit.done / unit.unit.counts if unit.shares else None
    if not epochs:
        return RunStatus(name, about, done=share, doing=unit.doing)
    last = max(epochs.values(), key=lambda epoch: epoch.number)
    return RunStatus(last.name, about, last.number, last.last_number, last.dev, share, unit.doing)


@contextmanager
def status_kept(monitor: Monitor, records: SweepRecords) -> Iterator[None]:
    """Keep the status of a sweep in its folder while the body runs; at the end, add how the body ended.

    Args:
        monitor: The source of the status.
        records: The folder of the sweep.
    """
    written = -KEEP_S

    def keep(status: Status) -> None:
        nonlocal written
        if monitor.clock() - written >= KEEP_S:
            written = monitor.clock()
            records.save_status(status)

    end = "interrupted"
    with monitor.add_watcher(keep):
        try:
            yield
            end = "ended"
        except RaykdError as error:
            end = f"failed: {redact(str(error))}"
            raise
        finally:
            with suppress(RaykdError, OSError):
                records.save_status(replace(monitor.status(), end=end))
