"""The recorder: trials and their results go into the store, onto the tracking pages, and onto the screen."""

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
    """The recorder of trials, which all schedulers report to.

    Attributes:
        records: The sweep's records in the store.
        pages: Pages of the tracking server, made of the records. Epochs go to the pages at once, and into the records
            when their trial ends.
        listener: Shows progress.
        objectives: Name of a figure → "max" or "min".
        cost_of: Returns the cost of a setting's student, absolute and against its teachers.
        constraints: Constraints of the search.
        grid: The grid on which costs are compared.
        phase: Name of the phase that progress is shown for.
        logged: (trial, run, epoch) of every epoch that the pages have.
    """

    records: SweepRecords
    pages: SweepPages
    listener: Listener
    objectives: Directions
    cost_of: Callable[[Setting], Cost]
    constraints: Constraints = field(default_factory=Constraints)
    grid: Grid = field(default_factory=dict)
    phase: str = "trials"
    logged: set[tuple[int, str, int]] = field(default_factory=set)

    def start(self, record: Record, setting: Setting) -> None:
        """Record the beginning of a trial."""
        trial = record.trial
        self.records.save(record)
        self.listener.trial(trial)
        names = {run.id: shown_run_name(trial, setting, run.id) for run in self._runs_to_do(setting)}
        self.listener.started(Unit(self.phase, str(trial.number), names, describe_trial(trial), trains=True))

    def _runs_to_do(self, setting: Setting) -> Sequence[Run]:
        """Return the trial's runs without a result, or else all its runs; with more seeds, some results are stored."""
        if len(setting.runs) == 1:
            return setting.runs
        storage = self.records.storage
        return [run for run in setting.runs if find_result(storage, run) is None] or setting.runs

    def epoch(self, trial: Trial, setting: Setting, run_id: str, metrics: PlainObject) -> None:
        """Log and show a finished epoch of a run."""
        self._log_epoch(trial, setting, run_id, metrics)
        name, about = shown_run_name(trial, setting, run_id), describe_trial(trial)
        run = setting.run(run_id)
        self.listener.epoch(
            self.phase, epoch_event(str(trial.number), name, about, run, trial.score_label, metrics)
        )

    def end(self, record: Record, setting: Setting, results: Sequence[RunResult]) -> None:
        """Record the end of a trial, in whichever state.

        Args:
            record: The record with the trial's state and result.
            setting: The trial's setting.
            results: Results of its runs; empty if it failed or was stopped.
        """
        trial = record.trial
        self.publish(record, setting, results)
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

    def publish(self, record: Record, setting: Setting, results: Sequence[RunResult]) -> None:
        """Publish an ended trial, with its epochs.

        Epochs are published even if the run was in the store already, or ran before the driver was killed.
        """
        epochs = {**record.epochs, **{result.run_id: result.epochs for result in results}}
        for run_id, run_epochs in epochs.items():
            for metrics in run_epochs:
                self._log_epoch(record.trial, setting, run_id, metrics)
        self.pages.end_trial(record.trial.number)
        self.listener.trial(record.trial)

    def republish_ended_trials(self, resolve: Callable[[PlainObject], Setting]) -> None:
        """Publish the trials of an earlier driver, which may have been killed before MLflow had them."""
        ended = [record for record in self.records.load() if record.trial.state != "RUNNING"]
        for record in ended:
            setting = resolve(record.resolved)
            self.publish(record, setting, setting.found_results(self.records.storage))
        if ended:
            self.show_front()

    def summary(self, role: str) -> str:
        """Return the final states of the trials of one role: `5 complete, 1 failed`."""
        states = [record.trial.state for record in self.records.load() if record.trial.role == role]
        counts = (f"{states.count(state)} {state.lower()}" for state in sorted(set(states)))
        return ", ".join(counts) or "none"

    def _log_epoch(self, trial: Trial, setting: Setting, run_id: str, metrics: PlainObject) -> None:
        epoch = int(metrics["epoch"])
        if (trial.number, run_id, epoch) in self.logged:
            return
        self.logged.add((trial.number, run_id, epoch))
        values = {name: value for name, value in metrics.items() if name != "epoch"}
        self.pages.log_epoch(
            trial.number, epoch, values, run=setting.run_name(run_id), stages=setting.run(run_id).stage_names
        )

    def show_front(self) -> None:
        """Show the front of all ended trials."""
        trials = [record.trial for record in self.records.load() if record.trial.state != "RUNNING"]
        volume = front_hypervolume(trials, self.records.teachers(), self.objectives)
        self.listener.front(pareto_front(trials, self.objectives), volume)


def shown_run_name(trial: Trial, setting: Setting, run_id: str) -> str:
    """Return the displayed name of a run: `#04`, `#04 seed 1`."""
    return f"#{trial.number:02d} {setting.run_name(run_id)}".rstrip()


def describe_trial(trial: Trial) -> str:
    """Return a trial's method and shape."""
    return f"{trial.method} · {trial.shape}"


def epoch_event(job: str, name: str, about: str, run: Run, label: str, metrics: PlainObject) -> RunEpoch:
    """Return the listeners' event for an epoch.

    Args:
        job: Number of the trial, as text.
        name: The run's name as it is shown.
        about: The trial's method and shape.
        run: The run.
        label: Readable name of the score.
        metrics: Metrics of the epoch.
    """
    return RunEpoch(
        job, name, about, metrics["epoch"] + 1, plan_length(run).max_epochs, metrics["dev"], label,
        metrics["tokens"], metrics["tokens_per_second"],
    )  # fmt: skip
