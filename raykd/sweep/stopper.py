"""The early stopping of one sweep: what its trials reported, and the rule's word on each epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raykd.figures.results import RunResult
from raykd.figures.table import COSTS, Directions, objective_values
from raykd.figures.trial import Trial
from raykd.recipes.run import Run
from raykd.sweep.course import RunCourse
from raykd.sweep.stopping import Course, Place, StoppingConfig, reason_to_stop

Epochs = Mapping[str, Sequence[Mapping[str, Any]]]
"""Run → the metrics of its epochs."""


@dataclass
class _Followed:
    costs: tuple[float, ...]
    seeds: tuple[tuple[RunCourse, ...], ...]
    places: Mapping[str, tuple[int, int]]
    final: float | None = None

    def course(self, number: int) -> Course:
        plan = tuple(run.plan for runs in self.seeds for run in runs)
        points = tuple(tuple(tuple(run.points) for run in runs) for runs in self.seeds)
        return Course(number, self.costs, plan, points, self.final)


class Stopper:
    """Follows the trials of a search. It holds nothing that the store does not: `begin` is given what a trial reported
    to an earlier driver, and a sweep that is resumed decides as it would have."""

    def __init__(self, config: StoppingConfig, objectives: Directions, teacher: Mapping[str, float]):
        """`teacher`: what the teacher costs; the hypervolume measures costs by it."""
        self._config = config
        costs = {figure.name for figure in COSTS}
        self._costs: Directions = {name: way for name, way in objectives.items() if name in costs}
        self._scales = tuple(teacher.get(name) for name in self._costs)
        self._followed: dict[int, _Followed] = {}

    def begin(self, trial: Trial, seeds: Sequence[Sequence[Run]], epochs: Epochs | None = None) -> str:
        """A trial begins, or is taken up again with the `epochs` that it has reported. Returns why it is to be stopped
        after the last of them; empty where it goes on."""
        courses = tuple(tuple(RunCourse(run) for run in runs) for runs in seeds)
        places = {run.id: (s, r) for s, runs in enumerate(seeds) for r, run in enumerate(runs)}
        costs = tuple(cost for cost in objective_values(trial, self._costs) if cost is not None)
        self._followed[trial.number] = _Followed(costs, courses, places)
        for run_id, own in (epochs or {}).items():
            seed, place = places[run_id]
            for metrics in own:
                courses[seed][place].add(metrics)
        known = (places[run_id] for run_id in epochs or {})
        return next(filter(None, (self._judge(trial.number, place) for place in known)), "")

    def epoch(self, number: int, run_id: str, metrics: Mapping[str, Any]) -> str:
        """Why the trial is to be stopped after this epoch of one of its runs; empty where it goes on."""
        followed = self._followed[number]
        seed, place = followed.places[run_id]
        course = followed.seeds[seed][place]
        before = len(course.points)
        course.add(metrics)
        return self._judge(number, (seed, place)) if len(course.points) > before else ""

    def _judge(self, number: int, place: Place) -> str:
        # A trial that lacks a figure is on no front, and is compared with none.
        known = {key: each for key, each in self._followed.items() if len(each.costs) == len(self._costs)}
        if number not in known:
            return ""
        others = [other.course(key) for key, other in known.items() if key != number]
        own, ways = known[number].course(number), tuple(self._costs.values())
        return reason_to_stop(own, place, others, self._config, ways, self._scales)

    def ended(self, trial: Trial, results: Sequence[RunResult] = ()) -> Epochs:
        """A trial ended. Returns what of its epochs has to be recorded: those of one that was stopped early.

        Those of a complete trial are in its `results`, also where its runs were found in the store and reported
        nothing; what a trial reported that failed counts for no other.
        """
        if trial.state == "FAILED":
            del self._followed[trial.number]
            return {}
        followed = self._followed[trial.number]
        runs = {run_id: followed.seeds[seed][place] for run_id, (seed, place) in followed.places.items()}
        if trial.state == "PRUNED":
            return {run_id: tuple(course.epochs) for run_id, course in runs.items() if course.epochs}
        for result in results:
            for metrics in result.epochs:
                runs[result.run_id].add(metrics)
            runs[result.run_id].end()
        followed.final = trial.scores.mean("dev")
        return {}
