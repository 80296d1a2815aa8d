"""The pages of a sweep in MLflow: its own page, and below it one for each teacher and trial.

The pages are made anew from the store; no page depends on an earlier publication. The epochs of a trial in training
are in no record yet, so they are kept here until MLflow shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mlflow.entities import Dataset, Metric

from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.table import Directions
from raykd.figures.trial import State, Teacher, Trial
from raykd.identity import PlainObject
from raykd.tracking.pages import (
    SWEEP_TAG,
    TEACHER_TAG,
    TRIAL_TAG,
    Page,
    StudentModel,
    curve_prefix,
    epoch_values,
    flatten,
    now_ms,
    points,
    results,
    rounded,
    text,
    texts,
    trial_tags,
)
from raykd.tracking.views import NOTE_TAG

# MLflow's list of states is fixed: a trial stopped early is KILLED there, and its tag `state` is PRUNED.
STATUS: Mapping[State, str] = MappingProxyType(
    {"COMPLETE": "FINISHED", "PRUNED": "KILLED", "FAILED": "FAILED", "RUNNING": "RUNNING"}
)
Epochs = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Gain:
    """The gain of a student over the same student trained on gold labels alone."""

    twin: int
    """Number of the trial on gold labels."""
    figures: Mapping[str, float]
    """Figure → value: `over_gold`, …."""


@dataclass(frozen=True)
class Ending:
    """Results that exist only at the end of a sweep; trials are given by their numbers."""

    front: frozenset[int] = frozenset()
    """The trials on the front."""
    gains: Mapping[int, Gain] = field(default_factory=dict)
    ship: int | None = None
    """The trial whose student is to be shipped; None if there is none."""
    verdict: str = ""
    """A sentence on the result of the sweep."""
    description: str = ""
    """Markdown at the top of the page of the sweep's run."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    exports: Mapping[int, Path | None] = field(default_factory=dict)
    """Trial whose student becomes a model → folder of its export; None if MLflow has the model."""


@dataclass(eq=False)
class SweepPages:
    """The pages of a sweep. Call it, from any thread, for the pages in their present state.

    Attributes:
        name: Name of the sweep and of its experiment.
        sweep_id: Identifies the sweep within the experiment.
        trials: Returns all trials of the sweep; a changed trial is a new object.
        score_name: Score of the task.
        objectives: Objectives of the front.
        tags: Tags of the sweep's run and of all new runs: git commit, ….
        params: Parameters of the sweep's run.
        corpora: Datasets of all runs.
        files: Files of the sweep's run, by name.
        ending: Results at the end; None while the sweep runs.
        state: State of the sweep.
        shown_front_steps: Number of trials for which MLflow shows, or will show, the growth of the front.
    """

    name: str
    sweep_id: str
    trials: Callable[[], Iterable[Trial]]
    score_name: str
    objectives: Directions
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    corpora: Sequence[Dataset] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    ending: Ending | None = None
    state: State = "RUNNING"
    shown_front_steps: int = 0

    def __post_init__(self) -> None:
        self._front: list[Metric] = []
        self._teachers: list[Teacher] | None = None
        self._teacher_pages: list[Page] = []
        self._points: dict[int, list[Metric]] = {}
        self._ended: set[int] = set()
        self._last_pages: dict[int, tuple[tuple[Trial, Ending | None, State], Page]] = {}

    def log_epoch(
        self,
        number: int,
        epoch: int,
        metrics: PlainObject,
        *,
        run: str = "",
        stages: Sequence[str] = ("",),
    ) -> None:
        """Add a point to the curves of a trial: `epoch/loss`, `epoch/dev_f1`, `epoch/dev_f1/en`.

        Args:
            number: Number of the trial.
            epoch: Epoch, counted from 0.
            metrics: Values with the keys of a run's epochs (`RunResult.epochs`).
            run: Name of the run if a trial has several; the curves are then `epoch/seed 1/dev_f1`, `epoch/en/dev_f1`.
            stages: Names of the run's stages.
        """
        values = epoch_values(metrics, self.score_name, curve_prefix(run), stages)
        self._points.setdefault(number, []).extend(points(values, epoch))

    def end_trial(self, number: int) -> None:
        """Publish a trial as ended. Call it after its last epoch is logged and before the trial is recorded."""
        self._ended.add(number)

    def log_teachers(self, teachers: Sequence[tuple[Teacher, Mapping[str, Epochs]]]) -> None:
        """Show the teachers as runs tagged `role: teacher`.

        Args:
            teachers: Teachers, each with the epochs of its models by the name of their curves (empty for a single
                model).
        """
        self._teacher_pages = [self._teacher(teacher, epochs) for teacher, epochs in teachers]
        self._teachers = [teacher for teacher, _ in teachers]

    def _teacher(self, teacher: Teacher, epochs: Mapping[str, Epochs]) -> Page:
        curves = [
            points(epoch_values(metrics, self.score_name, curve_prefix(run)), int(metrics["epoch"]))
            for run, run_epochs in epochs.items()
            for metrics in run_epochs
        ]
        # A quote would end the string in the filter by which the run is found.
        key = f"{self.sweep_id}/{teacher.name}".replace("'", "")
        return Page(
            f"teacher {teacher.name}", (TEACHER_TAG, key), "FINISHED", tags={**self.tags, "role": "teacher"},
            results=results(teacher), points=[point for curve in curves for point in curve], datasets=self.corpora,
        )  # fmt: skip

    def __call__(self) -> list[Page]:
        """Return the pages of the sweep, its teachers and its trials."""
        trials = sorted(self.trials(), key=lambda trial: trial.number)
        self._add_front_growth(trials)
        # A run's state tells this driver and the next that all its points are written.
        logged = (trial for trial in trials if trial.state == "RUNNING" or trial.number in self._ended)
        return [self.sweep(), *self._teacher_pages, *map(self._page, logged)]

    def trial_key(self, number: int) -> tuple[str, str]:
        """Return the key of a trial's page."""
        return TRIAL_TAG, f"{self.sweep_id}/{number}"

    def sweep(self) -> Page:
        """Return the page of the sweep's run."""
        ending = self.ending or Ending()
        tags = {NOTE_TAG: text(ending.description), "verdict": text(ending.verdict)}
        return Page(
            f"sweep {self.name}", (SWEEP_TAG, self.sweep_id), STATUS[self.state], first_tags=self.tags,
            tags={**self.tags, "role": "sweep"} | {key: value for key, value in tags.items() if value},
            params=self.params, points=self._front, datasets=self.corpora, files={**self.files, **ending.files},
        )  # fmt: skip

    def _page(self, trial: Trial) -> Page:
        inputs = (trial, self.ending, self.state)
        last = self._last_pages.get(trial.number)
        if last is not None and all(old is new for old, new in zip(last[0], inputs, strict=True)):
            return last[1]
        tags, figures, ending = trial_tags(trial), results(trial), self.ending
        if ending is not None:
            tags["on_front"] = str(trial.number in ending.front).lower()
            tags["ship"] = str(trial.number == ending.ship).lower()
            if (gain := ending.gains.get(trial.number)) is not None:
                tags["gold_twin"] = str(gain.twin)
                figures |= rounded(gain.figures)
        # A trial still running when the sweep ends is interrupted.
        interrupted = trial.state == "RUNNING" and self.state != "RUNNING"
        # The end of the sweep adds tags to a trial, but does not move the time of its last change.
        unchanged = last is not None and last[0][0] is trial and not interrupted
        page = Page(
            trial.name, self.trial_key(trial.number), "KILLED" if interrupted else STATUS[trial.state],
            last[1].moment_ms if last is not None and unchanged else now_ms(),
            duration_s=trial.wall_s or 0.0, first_tags={**self.tags, "on_front": "false"}, tags=tags,
            params=texts(trial.settings), results=figures, points=self._points.setdefault(trial.number, []),
            datasets=self.corpora, model=self._model(trial),
        )  # fmt: skip
        self._last_pages[trial.number] = (inputs, page)
        return page

    def _model(self, trial: Trial) -> StudentModel | None:
        ending = self.ending
        if ending is None or trial.number not in ending.exports:
            return None
        reason = ending.verdict if trial.number == ending.ship else ""
        export = ending.exports[trial.number]
        return StudentModel(f"student-{trial.number:02d}", export, self.name, self.score_name, reason)

    def _add_front_growth(self, trials: Sequence[Trial]) -> None:
        """Add points to the curves of the front, one for each ended trial in the order of their numbers."""
        if self._teachers is None:
            return
        ended = list(takewhile(lambda trial: trial.state != "RUNNING", trials))
        for count in range(self.shown_front_steps + 1, len(ended) + 1):
            volume = front_hypervolume(ended[:count], self._teachers, self.objectives)
            students = len(pareto_front(ended[:count], self.objectives))
            self._front += points(flatten({"hypervolume": volume, "students": students}, "front/"), count)
        self.shown_front_steps = max(self.shown_front_steps, len(ended))
