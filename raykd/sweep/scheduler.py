"""Schedulers: who proposes the jobs of each phase of a sweep, and writes down how they end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from raykd.runs.execute import find_result
from raykd.runs.executor import Job
from raykd.runs.progress import Listener
from raykd.runs.recipe import TASKS
from raykd.runs.run import Run
from raykd.storage import Storage
from raykd.sweep.outcome import finished, flat_settings, with_cost
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.study import Study, Suggestion
from raykd.tracking import Tracker
from raykd.trial import Trial

# A sampler that proposes only settings that were tried has exhausted the space, or is as good as done.
MOST_REPEATS = 100


class RunList:
    """Does a fixed list of runs: teachers, or the one run of `raykd distill`."""

    def __init__(self, runs: Sequence[tuple[str, Run]], phase: str, listener: Listener):
        self._todo, self._phase, self._listener = list(runs), phase, listener
        self._names = {run.id: name for name, run in runs}
        self._metric = TASKS[runs[0][1].task].label if runs else ""
        self.failed: dict[str, str] = {}
        self.results: dict[str, dict[str, Any]] = {}

    def next(self) -> Job | None:
        """The next run of the list."""
        if not self._todo:
            return None
        _, run = self._todo.pop(0)
        return Job(run.id, (run,))

    def epoch(self, key: str, metrics: dict[str, Any]) -> None:
        """Shows the epoch."""
        epoch, score = metrics["epoch"] + 1, 100 * metrics["dev_f1"]
        detail = f"{self._names[key]}: epoch {epoch}, dev {self._metric} {score:.1f}"
        self._listener.advance(self._phase, detail=detail)

    def ended(self, key: str, results: list[dict[str, Any]] | None, error: str | None) -> None:
        """Keeps the result, or why there is none."""
        if results is None:
            self.failed[self._names[key]] = error or "no result"
        else:
            self.results[key] = results[0]


@dataclass
class Recorder:
    """What every scheduler of trials writes to: records, tracking server, and whoever watches."""

    records: SweepRecords
    tracker: Tracker
    listener: Listener
    cost_of: Callable[[Run], dict[str, Any]]
    grown: Callable[[], tuple[int, float, int]]
    """Finished trials, hypervolume and students of the front, as they now stand."""
    phase: str = "trials"
    logged: set[tuple[int, str, int]] = field(default_factory=set)
    """(trial, run, epoch) that the tracking server was told."""

    def start(self, record: Record) -> None:
        """A trial begins."""
        self.records.save(record)
        self.tracker.start_trial(record.trial)

    def epoch(self, trial: Trial, metrics: dict[str, Any]) -> None:
        """One of its runs finished an epoch."""
        self._log(trial, metrics)
        seed = f" seed {trial.run_ids.index(metrics['run_id'])}" if len(trial.run_ids) > 1 else ""
        # Figures first: on a narrow terminal the end of the line is cut off.
        epoch, score = metrics["epoch"] + 1, 100 * metrics["dev_f1"]
        told = f"#{trial.number:02d}{seed} epoch {epoch}, dev {trial.metric} {score:.1f}"
        self.listener.detail(self.phase, f"{told}, {trial.method} · {trial.shape}")

    def end(self, record: Record, results: Sequence[dict[str, Any]]) -> None:
        """A trial ended, in whichever state."""
        trial = record.trial
        self.records.save(record)
        self.tell_again(trial, results)
        count, volume, students = self.grown()
        self.tracker.log_front(count, hypervolume=volume, students=students)
        if trial.state == "COMPLETE":
            score = f"dev {trial.metric} {100 * (trial.dev_f1 or 0):.1f}"
            told = f"{trial.name}: {score}, {trial.latency_ms or 0:.2f} ms"
        else:
            told = f"{trial.name}: {trial.state} {trial.message}"
            self.listener.warn(told)
        self.listener.advance(self.phase, detail=told)

    def tell_again(self, trial: Trial, results: Sequence[dict[str, Any]]) -> None:
        """Tell the tracking server all of a trial that ended, whatever it heard before."""
        self.tracker.finish_trial(trial)
        for result in results:
            # Epochs of a run that was found, or that ran before the driver was killed, are told now.
            for metrics in result["epochs"]:
                self._log(trial, {**metrics, "run_id": result["run_id"]})

    def _log(self, trial: Trial, metrics: dict[str, Any]) -> None:
        run_id, epoch = metrics["run_id"], int(metrics["epoch"])
        if (trial.number, run_id, epoch) in self.logged:
            return
        self.logged.add((trial.number, run_id, epoch))
        seed = trial.run_ids.index(run_id) if len(trial.run_ids) > 1 else None
        values = {name: value for name, value in metrics.items() if name not in ("run_id", "epoch")}
        self.tracker.log_epoch(trial.number, epoch, values, seed=seed)


def running(number: int, runs: Sequence[Run], role: Any) -> Trial:
    """The trial of a setting that is about to be run."""
    return Trial(
        number=number, state="RUNNING", role=role, settings=flat_settings(runs[0]),
        objective=runs[0].objective["kind"], run_ids=tuple(run.id for run in runs),
        metric=TASKS[runs[0].task].label,
    )  # fmt: skip


class Trials:
    """Proposes what the search suggests, or a fixed list of settings (the baseline), and records how each ends."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        role: Any,
        resumed: Sequence[Record],
        runs_of: Callable[[dict[str, Any]], tuple[Run, ...]],
        suggest: Callable[[], tuple[Suggestion | None, dict[str, Any]] | None],
        study: Study | None,
        first: int,
        known: dict[tuple[str, ...], Record],
        most: int,
        deadline: float | None,
    ):
        self._recorder, self._role, self._runs_of, self._suggest = recorder, role, runs_of, suggest
        self._study, self._next, self._known = study, first, known
        self._most, self._deadline = most, deadline
        self._resumed = list(resumed)
        self._live: dict[str, tuple[Record, Suggestion | None]] = {}
        # A grid, like a list, ends by itself; a sampler could repeat itself for ever.
        self._exhaustive = study is None or study.exhaustive
        self.out_of_time = False

    def next(self) -> Job | None:
        """The next trial that has to be run: interrupted ones first."""
        if self._resumed:
            record = self._resumed.pop(0)
            return self._begin(record, None)
        if self._most <= 0:
            return None
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.out_of_time = True
            return None
        return self._suggested()

    def _suggested(self) -> Job | None:
        repeats = itertools.count() if self._exhaustive else range(MOST_REPEATS)
        for _ in repeats:
            proposal = self._suggest()
            if proposal is None:
                return None
            suggestion, tree = proposal
            runs = self._runs_of(tree)
            same = self._known.get(tuple(run.id for run in runs))
            if same is None:
                self._most -= 1
                return self._begin(self._record(runs, tree, suggestion), suggestion)
            # Asked for before: computed once, and the sampler hears what is known of it.
            if self._study is not None and suggestion is not None:
                told = same.trial if same.trial.state != "RUNNING" else replace(same.trial, state="PRUNED")
                self._study.tell(suggestion, told)
        return None

    def _record(self, runs: tuple[Run, ...], tree: dict[str, Any], suggestion: Suggestion | None) -> Record:
        trial = with_cost(running(self._next, runs, self._role), self._recorder.cost_of(runs[0]))
        self._next += 1
        if suggestion is None:
            return Record(trial, tree)
        return Record(trial, tree, suggestion.params, suggestion.distributions)

    def _begin(self, record: Record, suggestion: Suggestion | None) -> Job:
        runs = self._runs_of(dict(record.resolved))
        key = str(record.trial.number)
        self._known[tuple(run.id for run in runs)] = record
        self._live[key] = (record, suggestion)
        self._recorder.start(record)
        return Job(key, runs)

    def epoch(self, key: str, metrics: dict[str, Any]) -> None:
        """Logs the epoch."""
        record, _ = self._live[key]
        self._recorder.epoch(record.trial, metrics)

    def ended(self, key: str, results: list[dict[str, Any]] | None, error: str | None) -> None:
        """Records the trial, and tells the search."""
        record, suggestion = self._live.pop(key)
        if results is None:
            trial = replace(record.trial, state="FAILED", message=error or "no result")
        else:
            runs = self._runs_of(dict(record.resolved))
            trial = finished(record.trial, results, self._recorder.cost_of(runs[0]))
        record = replace(record, trial=trial)
        self._known[trial.run_ids] = record
        self._recorder.end(record, results or [])
        if self._study is not None:
            self._study.tell(suggestion, trial) if suggestion is not None else self._study.add(record)


def missing_results(storage: Storage, runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Those of `runs` that are not finished yet."""
    return [(name, run) for name, run in runs if find_result(storage, run) is None]
