"""The pages of a sweep in MLflow, made of its trials: the sweep's own, and below it one for each teacher and trial.

They are made anew from what the store has, and no page depends on what was published before. What a trial reports while
it trains is in no record yet: it is kept here until MLflow shows it.
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
    """What a student gains over the same student on labels alone."""

    twin: int
    """The number of that trial."""
    figures: Mapping[str, float]
    """`over_gold`, …"""


@dataclass(frozen=True)
class Ending:
    """What is known of a sweep at its end alone."""

    front: frozenset[int] = frozenset()
    """The numbers of its trials."""
    gains: Mapping[int, Gain] = field(default_factory=dict)
    ship: int | None = None
    verdict: str = ""
    description: str = ""
    """Markdown, with which the page of the sweep's run opens."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    exports: Mapping[int, Path | None] = field(default_factory=dict)
    """By the numbers of the trials whose students are to be models, what `raykd export` wrote; None: MLflow has it."""


@dataclass(eq=False)
class SweepPages:
    """Call it for the pages of a sweep as it stands, from any thread."""

    name: str
    """Of the sweep, and of its experiment."""
    sweep_id: str
    """Identifies the sweep within the experiment."""
    trials: Callable[[], Iterable[Trial]]
    """Gives all trials of the sweep, which are other objects where they have changed."""
    score_name: str
    objectives: Directions
    """Of the front."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of the sweep's run, and of all runs that are made now: git commit, …"""
    params: Mapping[str, str] = field(default_factory=dict)
    corpora: Sequence[Dataset] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    ending: Ending | None = None
    state: State = "RUNNING"
    shown_front_steps: int = 0
    """For so many trials MLflow shows, or is going to, how the front grew."""

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
        """Add a point to each curve of a trial: `epoch/loss`, `epoch/dev_f1`, `epoch/dev_f1/en`.

        Args:
            number: of the trial.
            epoch: counted from 0.
            metrics: with the keys of a run's epochs (`RunResult.epochs`).
            run: with it each run of a trial has its own curves: `epoch/seed 1/dev_f1`, `epoch/en/dev_f1`.
            stages: what the stages of the run are called.
        """
        values = epoch_values(metrics, self.score_name, curve_prefix(run), stages)
        self._points.setdefault(number, []).extend(points(values, epoch))

    def end_trial(self, number: int) -> None:
        """Show a trial as it ended: all its epochs are logged. Call it before the trial is recorded."""
        self._ended.add(number)

    def log_teachers(self, teachers: Sequence[tuple[Teacher, Mapping[str, Epochs]]]) -> None:
        """Show what students are compared with, each as a run of its own, tagged `role: teacher`, with the epochs of
        each of its models, by what its curves are called (empty of a single one).
        """
        self._teacher_pages = [self._teacher(teacher, epochs) for teacher, epochs in teachers]
        self._teachers = [teacher for teacher, _ in teachers]

    def _teacher(self, teacher: Teacher, epochs: Mapping[str, Epochs]) -> Page:
        curves = [
            points(epoch_values(metrics, self.score_name, curve_prefix(run)), int(metrics["epoch"]))
            for run, of_run in epochs.items()
            for metrics in of_run
        ]
        # A quote would end the text that the run is searched by.
        key = f"{self.sweep_id}/{teacher.name}".replace("'", "")
        return Page(
            f"teacher {teacher.name}", (TEACHER_TAG, key), "FINISHED", tags={**self.tags, "role": "teacher"},
            results=results(teacher), points=[point for own in curves for point in own], datasets=self.corpora,
        )  # fmt: skip

    def __call__(self) -> list[Page]:
        trials = sorted(self.trials(), key=lambda trial: trial.number)
        self._add_front_growth(trials)
        # MLflow's state says that all points are there, also to the next driver.
        logged = (trial for trial in trials if trial.state == "RUNNING" or trial.number in self._ended)
        return [self.sweep(), *self._teacher_pages, *map(self._page, logged)]

    def trial_key(self, number: int) -> tuple[str, str]:
        """The key of a trial's page."""
        return TRIAL_TAG, f"{self.sweep_id}/{number}"

    def sweep(self) -> Page:
        """The page of the sweep's own run."""
        ending = self.ending or Ending()
        tags = {NOTE_TAG: text(ending.description), "verdict": text(ending.verdict)}
        return Page(
            f"sweep {self.name}", (SWEEP_TAG, self.sweep_id), STATUS[self.state], first_tags=self.tags,
            tags={**self.tags, "role": "sweep"} | {key: value for key, value in tags.items() if value},
            params=self.params, points=self._front, datasets=self.corpora, files={**self.files, **ending.files},
        )  # fmt: skip

    def _page(self, trial: Trial) -> Page:
        made_of = (trial, self.ending, self.state)
        made = self._last_pages.get(trial.number)
        if made is not None and all(one is other for one, other in zip(made[0], made_of, strict=True)):
            return made[1]
        tags, figures, ending = trial_tags(trial), results(trial), self.ending
        if ending is not None:
            tags["on_front"] = str(trial.number in ending.front).lower()
            tags["ship"] = str(trial.number == ending.ship).lower()
            if (gain := ending.gains.get(trial.number)) is not None:
                tags["gold_twin"] = str(gain.twin)
                figures |= rounded(gain.figures)
        # What still runs when the sweep ends, ends with it.
        interrupted = trial.state == "RUNNING" and self.state != "RUNNING"
        as_before = made is not None and made[0][0] is trial and not interrupted
        page = Page(
            trial.name, self.trial_key(trial.number), "KILLED" if interrupted else STATUS[trial.state],
            made[1].moment_ms if made is not None and as_before else now_ms(),
            duration_s=trial.wall_s or 0.0, first_tags={**self.tags, "on_front": "false"}, tags=tags,
            params=texts(trial.settings), results=figures, points=self._points.setdefault(trial.number, []),
            datasets=self.corpora, model=self._model(trial),
        )  # fmt: skip
        self._last_pages[trial.number] = (made_of, page)
        return page

    def _model(self, trial: Trial) -> StudentModel | None:
        ending = self.ending
        if ending is None or trial.number not in ending.exports:
            return None
        why = ending.verdict if trial.number == ending.ship else ""
        export = ending.exports[trial.number]
        return StudentModel(f"student-{trial.number:02d}", export, self.name, self.score_name, why)

    def _add_front_growth(self, trials: Sequence[Trial]) -> None:
        """Add how the front grew, over the number of trials that have ended, in the order of their numbers."""
        if self._teachers is None:
            return
        ended = list(takewhile(lambda trial: trial.state != "RUNNING", trials))
        for count in range(self.shown_front_steps + 1, len(ended) + 1):
            volume = front_hypervolume(ended[:count], self._teachers, self.objectives)
            students = len(pareto_front(ended[:count], self.objectives))
            self._front += points(flatten({"hypervolume": volume, "students": students}, "front/"), count)
        self.shown_front_steps = max(self.shown_front_steps, len(ended))
