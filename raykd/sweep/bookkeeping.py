"""The recorder: what becomes of trials goes into the store, which is published, and onto the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from raykd.cluster.listener import Listener, RunEpoch, Unit
from raykd.figures.cost_grid import Grid
from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import Cost, RunResult
from raykd.figures.table import Directions, main_latency
from raykd.figures.trial import Trial
from raykd.identity import PlainObject
from raykd.recipes.run import Run
from raykd.sweep.constraints import Constraints
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.settings import Setting
from raykd.training.execute import find_result
from raykd.training.plan_length import plan_length

if TYPE_CHECKING:
    from raykd.tracking.sweep_pages import SweepPages


@dataclass
class Recorder:
    """What every scheduler of trials reports to."""

    records: SweepRecords
    pages: SweepPages
    """They are made of the records; epochs are in none before the end of their trial."""
    listener: Listener
    objectives: Directions
    cost_of: Callable[[Setting], Cost]
    """What a setting's student costs, absolutely and against its teachers."""
    constraints: Constraints = field(default_factory=Constraints)
    grid: Grid = field(default_factory=dict)
    """On which costs are compared."""
    phase: str = "trials"
    logged: set[tuple[int, str, int]] = field(default_factory=set)
    """(trial, run, epoch) that the pages have."""

    def start(self, record: Record, setting: Setting) -> None:
        """A trial begins."""
        trial = record.trial
        self.records.save(record)
        self.listener.trial(trial)
        names = {run.id: run_name(trial, setting, run.id) for run in self._to_do(setting)}
        self.listener.started(Unit(self.phase, str(trial.number), names, about_trial(trial), trains=True))

    def _to_do(self, setting: Setting) -> Sequence[Run]:
        """The runs of a trial that say how far they are: with more seeds, those of the first ones are found."""
        if len(setting.runs) == 1:
            return setting.runs
        storage = self.records.storage
        return [run for run in setting.runs if find_result(storage, run) is None] or setting.runs

    def epoch(self, trial: Trial, setting: Setting, run_id: str, metrics: PlainObject) -> None:
        """One of the trial's runs finished an epoch."""
        self._log(trial, setting, run_id, metrics)
        name, about = run_name(trial, setting, run_id), about_trial(trial)
        run = setting.run(run_id)
        self.listener.epoch(
            self.phase, run_epoch(str(trial.number), name, about, run, trial.score_label, metrics)
        )

    def end(self, record: Record, setting: Setting, results: Sequence[RunResult]) -> None:
        """A trial ended, in whichever state."""
        trial = record.trial
        self.log(record, setting, results)
        self.records.save(record)
        self.show_front()
        message = f"{trial.name}: {trial.state} {trial.message}"
        if trial.state == "COMPLETE":
            score = f"dev {trial.score_label} {100 * (trial.scores.mean('dev') or 0):.1f}"
            message = f"{trial.name}: {score}"
            figure = main_latency(self.objectives)
            if (latency_ms := figure.read(trial)) is not None:
                message += f", {latency_ms:.2f} {figure.words}"
        if trial.state == "FAILED":
            self.listener.warn(message)
        self.listener.ended(str(trial.number))
        self.listener.advance(self.phase, detail=message)

    def log(self, record: Record, setting: Setting, results: Sequence[RunResult]) -> None:
        """Show a trial that ended, with its epochs: also those of a run that was found in the store, or that ran before
        the driver was killed.
        """
        epochs = {**record.epochs, **{result.run_id: result.epochs for result in results}}
        for run_id, of_run in epochs.items():
            for metrics in of_run:
                self._log(record.trial, setting, run_id, metrics)
        self.pages.end_trial(record.trial.number)
        self.listener.trial(record.trial)

    def log_again(self, resolve: Callable[[PlainObject], Setting]) -> None:
        """Show what an earlier driver recorded: it may have been killed before MLflow had it."""
        ended = [record for record in self.records.load() if record.trial.state != "RUNNING"]
        for record in ended:
            setting = resolve(record.resolved)
            self.log(record, setting, setting.found_results(self.records.storage))
        if ended:
            self.show_front()

    def summary(self, role: str) -> str:
        """How the trials of one role ended: `5 complete, 1 failed`."""
        states = [record.trial.state for record in self.records.load() if record.trial.role == role]
        counts = (f"{states.count(state)} {state.lower()}" for state in sorted(set(states)))
        return ", ".join(counts) or "none"

    def _log(self, trial: Trial, setting: Setting, run_id: str, metrics: PlainObject) -> None:
        epoch = int(metrics["epoch"])
        if (trial.number, run_id, epoch) in self.logged:
            return
        self.logged.add((trial.number, run_id, epoch))
        values = {name: value for name, value in metrics.items() if name != "epoch"}
        self.pages.log_epoch(
            trial.number, epoch, values, run=setting.run_name(run_id), stages=setting.run(run_id).stage_names
        )

    def show_front(self) -> None:
        """Show the front of all trials that have ended."""
        trials = [record.trial for record in self.records.load() if record.trial.state != "RUNNING"]
        volume = front_hypervolume(trials, self.records.teachers(), self.objectives)
        self.listener.front(pareto_front(trials, self.objectives), volume)


def run_name(trial: Trial, setting: Setting, run_id: str) -> str:
    """A run of a trial as it is shown: `#04`, `#04 seed 1`."""
    return f"#{trial.number:02d} {setting.run_name(run_id)}".rstrip()


def about_trial(trial: Trial) -> str:
    """What a trial trains, in short."""
    return f"{trial.method} · {trial.shape}"


def run_epoch(job: str, name: str, about: str, run: Run, label: str, metrics: PlainObject) -> RunEpoch:
    """What listeners are given of the `metrics` of an epoch."""
    return RunEpoch(
        job, name, about, metrics["epoch"] + 1, plan_length(run).max_epochs, metrics["dev"], label,
        metrics["tokens"], metrics["tokens_per_second"],
    )  # fmt: skip
