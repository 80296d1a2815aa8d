"""Early stopping with several objectives: whether a trial goes on, from what trials reported so far.

What a student costs is known exactly before it trains; only its score has still to be seen. Two rules use that:

* **Out of reach.** What a trial can still reach is its score so far, plus what nine in ten complete trials of the same
  plan gained at most from this point to the end, plus a margin. It is stopped where a complete trial costs as little
  in everything and scores more than that, or where such a score would add less than `worth` to the hypervolume.
* **Rungs**, after MO-ASHA (Schmucker et al. 2021, "Multi-objective asynchronous successive halving"). At the shares
  `first_rung`, `first_rung` · eta, … of its plan a trial is compared with all that reached the rung before it, by
  non-dominated sorting of score and costs, and by an epsilon-net within a front. It goes on where it is among the best
  1/eta of them. Unlike there, it also goes on where it is on the first front of the rung: costs are exact, so only
  scores can change who is on it, and cutting it cost more volume than it saved epochs (docs/results/stopping.md).

Both are functions of what was reported: there is no other state, so a sweep that is killed and resumed decides as it
would have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raykd.figures.front import dominated_share
from raykd.figures.pareto import Direction, epsilon_net, front_ranks, non_dominated
from raykd.figures.results import RunResult
from raykd.figures.table import COSTS, Directions, objective_values
from raykd.figures.trial import Trial
from raykd.identity import PlainObject
from raykd.recipes.run import Run
from raykd.spec import Frozen
from raykd.training.plan_length import plan_length, reads_scores

QUANTILE = 0.9
"""Of the gains of complete trials; one that gains more than that late is rare, and costs all others epochs."""
CLOSE = 1e-9
"""Shares that differ by less are the same point of a plan."""

Place = tuple[int, int]
"""A run of a trial: its seed, and which of that seed's runs it is."""
Epochs = Mapping[str, Sequence[PlainObject]]
"""Run → the metrics of its epochs."""


class StoppingConfig(Frozen):
    """When trials are stopped before their end: where no score that they can still reach would put them on the front,
    given what they cost, and where others were better at the same share of their epochs. A trial that was stopped is
    never on a front. Use it with `sampler: tpe`: `gp` and `nsga2` learn from complete trials alone, and draw at random
    until there are enough of them.
    """

    kind: Literal["none", "mo_asha"] = "none"
    eta: Annotated[float, Field(gt=1)] = 3.0
    """At each rung those on its front go on, and the best 1/eta of all; rungs are a factor of eta apart."""
    first_rung: Annotated[float, Field(gt=0, lt=1)] = 0.08
    """Share of a trial's epochs (or optimiser steps) at which it is first compared."""
    complete_first: Annotated[int, Field(ge=1)] = 3
    """So many trials are complete before any is stopped: what can still be gained is learned from them."""
    worth: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """Share of the hypervolume that a trial must still be able to add to the complete ones; 0: that it can be on their
    front."""

    @property
    def stops(self) -> bool:
        """Whether any trial is stopped."""
        return self.kind != "none"

    @property
    def rungs(self) -> tuple[float, ...]:
        """Shares of the plan, rising; the end is none."""
        count = math.ceil(-math.log(self.first_rung) / math.log(self.eta) - CLOSE)
        return tuple(self.first_rung * self.eta**step for step in range(count))


@dataclass(frozen=True)
class Point:
    """Where a run was after an epoch: the share of its plan that is done, and the dev score it would end with now."""

    share: float
    score: float


class RunCourse:
    """The points of one run, epoch by epoch.

    An epoch has a point where its stage trains the scores of the head: after an epoch of hidden states alone dev says
    nothing. The score of a point is that of the epoch that the step would keep: the best on dev, or the one with the
    lowest held-out loss where the stage selects by that.
    """

    def __init__(self, run: Run):
        self.points: list[Point] = []
        self.epochs: list[PlainObject] = []
        """What was reported."""
        self.done = 0.0
        """The share of the plan that is done. Patience may end a plan earlier."""
        self._has_points = [reads_scores(stage) for stage in run.stages]
        self._length = plan_length(run)
        kinds = [
            (has_points, json.dumps(stage["layers"]), stage["select"])
            for has_points, stage in zip(self._has_points, run.stages, strict=True)
        ]
        shares = [round(share, 3) for share in self._length.shares]
        self.plan: Hashable = tuple(zip(kinds, shares, strict=True))
        """Equal for runs that can be compared at one share of their plans."""
        self._step = (-1, -1)

    def add(self, metrics: PlainObject) -> None:
        """Add the metrics of an epoch; one that was added before changes nothing."""
        if self.epochs and metrics["epoch"] <= self.epochs[-1]["epoch"]:
            return
        self.epochs.append(metrics)
        step = (metrics["stage"], metrics["step"])
        if step != self._step:
            before = self.epochs[-2]["steps"] if len(self.epochs) > 1 else 0
            self._step, self._first, self._before = step, metrics["epoch"], before
            self._best, self._kept = -float("inf"), 0.0
        held_out = metrics.get("held_out_loss")
        selected = metrics["dev"] if held_out is None else -held_out
        if selected > self._best:
            self._best, self._kept = selected, metrics["dev"]
        epochs, steps = metrics["epoch"] - self._first + 1, metrics["steps"] - self._before
        self.done = self._length.share_done(*step, epochs, steps)
        if self._has_points[step[0]]:
            self.points.append(Point(self.done, self._kept))

    def end(self) -> None:
        """End the run, by patience or as planned: it is at the end of its plan."""
        if self.points:
            self.points.append(Point(1.0, self._kept))


@dataclass
class Course:
    """A trial as far as it is known. `seeds`: of each seed its runs (one, or one for each language), of each run its
    points by rising share.
    """

    number: int
    costs: tuple[float, ...]
    plan: Hashable
    """Trials of one plan are compared: at one share they are in the same stage."""
    seeds: Sequence[Sequence[Sequence[Point]]]
    final: float | None = None
    """The score of a complete trial."""

    def reached(self, share: float) -> tuple[int, ...]:
        """The seeds of which every run has come that far."""
        return tuple(
            place
            for place, runs in enumerate(self.seeds)
            if all(points and points[-1].share >= share - CLOSE for points in runs)
        )

    def at(self, share: float, seeds: Sequence[int]) -> float | None:
        """The mean score over `seeds` when they came that far: of the first points there. None where one did not."""
        if not set(seeds) <= set(self.reached(share)):
            return None
        return fmean(
            next(point.score for point in points if point.share >= share - CLOSE)
            for seed in seeds
            for points in self.seeds[seed]
        )

    def before(self, share: float, seeds: Sequence[int]) -> float | None:
        """The same of the last points until there."""
        scores = []
        for points in (points for seed in seeds for points in self.seeds[seed]):
            done = [point.score for point in points if point.share <= share + CLOSE]
            if not done:
                return None
            scores.append(done[-1])
        return fmean(scores)


class Stopper:
    """Follows the trials of a search. It holds nothing that the store does not: `begin` is given what a trial reported
    to an earlier driver, and a sweep that is resumed decides as it would have.
    """

    def __init__(self, config: StoppingConfig, objectives: Directions, teacher: Mapping[str, float]):
        """`teacher`: what the teacher costs; the hypervolume measures costs by it."""
        self._config = config
        costs = {figure.name for figure in COSTS}
        self._costs: Directions = {name: way for name, way in objectives.items() if name in costs}
        self._scales = tuple(teacher.get(name) for name in self._costs)
        self._courses: dict[int, Course] = {}
        self._runs: dict[int, dict[str, tuple[Place, RunCourse]]] = {}
        """By trial, and by the id of the run."""

    def begin(self, trial: Trial, seeds: Sequence[Sequence[Run]], epochs: Epochs | None = None) -> str:
        """A trial begins, or is taken up again with the `epochs` that it has reported. Returns why it is to be stopped
        after the last of them; empty where it goes on.
        """
        own = [[RunCourse(run) for run in runs] for runs in seeds]
        runs = self._runs[trial.number] = {
            run.id: ((seed, number), own[seed][number])
            for seed, of_seed in enumerate(seeds)
            for number, run in enumerate(of_seed)
        }
        costs = tuple(cost for cost in objective_values(trial, self._costs) if cost is not None)
        plan = tuple(course.plan for _, course in runs.values())
        points = [[course.points for course in of_seed] for of_seed in own]
        self._courses[trial.number] = Course(trial.number, costs, plan, points)
        for run_id, reported in (epochs or {}).items():
            for metrics in reported:
                runs[run_id][1].add(metrics)
        places = (runs[run_id][0] for run_id in epochs or {})
        return next(filter(None, (self._judge(trial.number, place) for place in places)), "")

    def epoch(self, number: int, run_id: str, metrics: PlainObject) -> str:
        """Why the trial is to be stopped after this epoch of one of its runs; empty where it goes on."""
        place, course = self._runs[number][run_id]
        before = len(course.points)
        course.add(metrics)
        return self._judge(number, place) if len(course.points) > before else ""

    def _judge(self, number: int, place: Place) -> str:
        # A trial that lacks a figure is on no front, and is compared with none.
        known = {key: each for key, each in self._courses.items() if len(each.costs) == len(self._costs)}
        course = known.pop(number, None)
        if course is None:
            return ""
        ways = tuple(self._costs.values())
        return reason_to_stop(course, place, known.values(), self._config, ways, self._scales)

    def ended(self, trial: Trial, results: Sequence[RunResult] = ()) -> Epochs:
        """A trial ended. Returns what of its epochs has to be recorded: those of one that was stopped early.

        Those of a complete trial are in its `results`, also where its runs were found in the store and reported
        nothing; what a trial reported that failed counts for no other.
        """
        if trial.state == "FAILED":
            del self._courses[trial.number]
            return {}
        runs = {run_id: course for run_id, (_, course) in self._runs[trial.number].items()}
        if trial.state == "PRUNED":
            return {run_id: tuple(course.epochs) for run_id, course in runs.items() if course.epochs}
        for result in results:
            for metrics in result.epochs:
                runs[result.run_id].add(metrics)
            runs[result.run_id].end()
        self._courses[trial.number].final = trial.scores.mean("dev")
        return {}


def reason_to_stop(
    course: Course,
    place: Place,
    others: Iterable[Course],
    config: StoppingConfig,
    directions: Sequence[Direction],
    scales: Sequence[float | None],
) -> str:
    """Why the trial is to be stopped after the last point of the run at that place; empty where it goes on.

    `others`: every other trial that reported something and did not fail. `directions`: of the costs.
    `scales`: the teacher's costs, None where it has no such cost.

    With several runs nothing waits for the last of them: the seeds that have come as far are compared with the *same*
    seeds of the others, whose data came in the same order. The languages of one seed are one student, and are awaited.
    """
    others = list(others)
    complete = [other for other in others if other.final is not None]
    if not config.stops or len(complete) < config.complete_first:
        return ""
    runs = course.seeds[place[0]]
    if not all(runs) or len(course.reached(1.0)) == len(course.seeds):
        return ""
    share = min(points[-1].share for points in runs)
    rung = _crossed(runs, place[1], config.rungs)
    why, reach = "", reachable(course, share, complete)
    if reach is not None:
        why = _out_of_reach(course, share, reach, complete, directions) or _not_worth_it(
            course, share, reach, complete, config.worth, directions, scales
        )
    return why or _below_rung(course, rung, others, config.eta, directions)


def reachable(course: Course, share: float, complete: Sequence[Course]) -> float | None:
    """The largest score that a trial is expected to reach from that share of its plan; None where no curve tells."""
    seeds = course.reached(share)
    score = course.before(share, seeds)
    gains = gains_from(share, seeds, [other for other in complete if other.plan == course.plan])
    return min(1.0, score + reachable_gain(gains)) if score is not None and gains else None


def _out_of_reach(
    course: Course, share: float, reach: float, complete: Sequence[Course], directions: Sequence[Direction]
) -> str:
    better = [
        other
        for other in complete
        if (other.final or 0.0) > reach and _no_dearer(other.costs, course.costs, directions)
    ]
    if not better:
        return ""
    best = max(better, key=lambda other: other.final or 0.0)
    return (
        f"{_could_reach(share, reach)}, and #{best.number:02d}, which costs no more, "
        f"has {100 * (best.final or 0.0):.1f}"
    )


def _not_worth_it(
    course: Course, share: float, reach: float, complete: Sequence[Course], worth: float,
    directions: Sequence[Direction], scales: Sequence[float | None],
) -> str:  # fmt: skip
    if not worth:
        return ""
    rows = [(reach, *course.costs), *((other.final or 0.0, *other.costs) for other in complete)]
    table = np.array(rows, dtype=np.float64)
    ways: tuple[Direction, ...] = ("max", *("min" for _ in directions))
    for place, (scale, way) in enumerate(zip(scales, directions, strict=True), 1):
        column = table[:, place]
        # Of a cost that is to be large, such as a speed, the share is of its inverse, as on the front.
        table[:, place] = (scale or 1.0) / column if way == "max" else column / (scale or column.max() or 1.0)
    own, others = dominated_share(table, ways), dominated_share(table[1:], ways)
    if own - others >= worth * own:
        return ""
    return f"{_could_reach(share, reach)}, and add {100 * (1 - others / own):.1f} % to the hypervolume"


def _could_reach(share: float, reach: float) -> str:
    return f"at {100 * share:.0f} % of its plan it could reach {100 * reach:.1f} at most"


def gains_from(share: float, seeds: Sequence[int], complete: Iterable[Course]) -> list[float]:
    """What complete trials gained from that share of their plan to the end, given those of their seeds."""
    scores = ((other, other.before(share, seeds)) for other in complete)
    return [(other.final or 0.0) - score for other, score in scores if score is not None]


def reachable_gain(gains: Sequence[float]) -> float:
    """What one more trial may gain: the gain that `QUANTILE` of n trials kept within, and a share of 1/n of it more,
    since few curves say little.
    """
    return float(np.quantile(np.maximum(gains, 0.0), QUANTILE)) * (1 + 1 / len(gains))


def _no_dearer(costs: Sequence[float], than: Sequence[float], directions: Sequence[Direction]) -> bool:
    return all(
        own >= other if direction == "max" else own <= other
        for own, other, direction in zip(costs, than, directions, strict=True)
    )


def _below_rung(
    course: Course, rung: float | None, others: Sequence[Course], eta: float, directions: Sequence[Direction]
) -> str:
    if rung is None:
        return ""
    seeds = course.reached(rung)
    own = course.at(rung, seeds)
    alike = [other for other in others if other.plan == course.plan]
    there = [(other, score) for other in alike if (score := other.at(rung, seeds)) is not None]
    rows = [(own, *course.costs), *((score, *other.costs) for other, score in there)]
    values = np.array(rows, dtype=np.float64)
    ways: tuple[Direction, ...] = ("max", *directions)
    keep, place = math.ceil(len(rows) / eta), priority(values, ways).index(0)
    if place < keep or non_dominated(values, ways)[0]:
        return ""
    better = [(score, other) for other, score in there if _no_dearer(other.costs, course.costs, directions)]
    score, best = max(better, key=lambda each: (each[0], -each[1].number))
    return (
        f"at {100 * rung:.0f} % of its plan it was {place + 1} of {len(rows)}, of which {keep} went on, "
        f"with {100 * (own or 0.0):.1f}, and #{best.number:02d}, which costs no more, with {100 * score:.1f}"
    )


def _crossed(runs: Sequence[Sequence[Point]], last: int, rungs: Sequence[float]) -> float | None:
    """The last rung that a seed's runs have all come to with the last point of one of them; None: no new one."""
    now = min(points[-1].share for points in runs)
    own = [points[:-1] if place == last else points for place, points in enumerate(runs)]
    earlier = min(points[-1].share if points else 0.0 for points in own)
    return next((rung for rung in reversed(rungs) if earlier < rung - CLOSE <= now), None)


def priority(values: np.ndarray, directions: Sequence[Direction]) -> list[int]:
    """The candidates, best first: front by front, each in the order of its epsilon-net. `values` [N, objectives]."""
    rank = front_ranks(values, directions)
    order: list[int] = []
    for front in range(int(rank.max(initial=-1)) + 1):
        own = np.flatnonzero(rank == front)
        order += [int(own[place]) for place in epsilon_net(values[own], directions)]
    return order
