"""Early stopping with several objectives: after each epoch, decide whether a trial goes on.

The cost of a student is known exactly before training; only its score is still open. Two rules use that:

* **Out of reach.** Nine in ten complete trials of the same plan gained at most g from this point to the end. The score
  that a trial can still reach is its score so far, plus g, plus a margin. The trial is stopped if a complete trial
  scores higher than that and costs no more in any objective, or if such a score would add less than `worth` to the
  hypervolume.
* **Rungs**, after MO-ASHA (Schmucker et al. 2021, "Multi-objective asynchronous successive halving"). At the shares
  `first_rung`, `first_rung` · eta, … of its plan, a trial is compared with all trials that reached the rung before it,
  by non-dominated sorting of score and costs, and by an epsilon-net within a front. It goes on if it is among the best
  1/eta. Unlike in MO-ASHA, it also goes on if it is on the first front of the rung: costs are exact, so only scores can
  change the front, and stopping such trials cost more hypervolume than it saved epochs (docs/results/stopping.md).

Both rules are functions of the reported epochs and of nothing else, so a sweep that is killed and resumed makes the
same decisions. `course.py` keeps the epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
from raykd.sweep.course import CLOSE, Point, RunCourse, TrialCourse

QUANTILE = 0.9
"""Quantile of the gains of complete trials. Larger late gains are rare, and waiting for one takes epochs from all other
trials."""
RunIndex = tuple[int, int]
"""A run of a trial: index of its seed, and index among the runs of that seed."""
Epochs = Mapping[str, Sequence[PlainObject]]
"""Run id → metrics of its epochs."""


class StoppingConfig(Frozen):
    """Early stopping of trials.

    A trial is stopped if no score that it can still reach would put it on the front, given its costs, or if other
    trials were better at the same share of their epochs. A stopped trial is never on a front. Use early stopping with
    `sampler: tpe`: `gp` and `nsga2` learn from complete trials alone, and draw at random until there are enough of
    them.
    """

    kind: Literal["none", "mo_asha"] = "none"
    eta: Annotated[float, Field(gt=1)] = 3.0
    """At each rung the trials on its front go on, and the best 1/eta of all trials; rungs are a factor of eta apart."""
    first_rung: Annotated[float, Field(gt=0, lt=1)] = 0.08
    """Share of a trial's epochs (or optimiser steps) at which it is first compared."""
    complete_first: Annotated[int, Field(ge=1)] = 3
    """Number of trials that complete before any trial is stopped; their curves show how much a trial can still gain."""
    worth: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """Share of the hypervolume that a trial must still be able to add to the complete trials; 0: it must be able to
    join their front."""

    @property
    def stops_trials(self) -> bool:
        """True if trials may be stopped."""
        return self.kind != "none"

    @property
    def rungs(self) -> tuple[float, ...]:
        """Shares of the plan, rising; the end of the plan is no rung."""
        count = math.ceil(-math.log(self.first_rung) / math.log(self.eta) - CLOSE)
        return tuple(self.first_rung * self.eta**step for step in range(count))


class EarlyStopper:
    """Follows the trials of a search and decides after every epoch whether a trial goes on.

    All state is also in the store: `begin` receives the epochs that a trial reported to an earlier driver, and a
    resumed sweep makes the same decisions.
    """

    def __init__(self, config: StoppingConfig, objectives: Directions, teacher: Mapping[str, float]):
        """Prepare for a search.

        Args:
            config: When to stop trials.
            objectives: Name of a figure → "max" or "min".
            teacher: The teacher's costs, name → value: the units in which the hypervolume measures costs.
        """
        self._config = config
        costs = {figure.name for figure in COSTS}
        self._costs: Directions = {name: objectives[name] for name in objectives if name in costs}
        self._scales = tuple(teacher.get(name) for name in self._costs)
        self._courses: dict[int, TrialCourse] = {}
        self._runs: dict[int, dict[str, tuple[RunIndex, RunCourse]]] = {}  # by trial and run id

    def begin(self, trial: Trial, seeds: Sequence[Sequence[Run]], epochs: Epochs | None = None) -> str:
        """Begin to follow a trial.

        Args:
            trial: The trial, whose costs are known.
            seeds: The runs of each seed.
            epochs: Epochs that the trial reported to an earlier driver.

        Returns:
            The reason to stop the trial after the last of these epochs; empty if it goes on.
        """
        courses = [[RunCourse(run) for run in runs] for runs in seeds]
        runs = self._runs[trial.number] = {
            run.id: ((seed, position), courses[seed][position])
            for seed, seed_runs in enumerate(seeds)
            for position, run in enumerate(seed_runs)
        }
        costs = tuple(cost for cost in objective_values(trial, self._costs) if cost is not None)
        plan = tuple(course.plan for _, course in runs.values())
        points = [[course.points for course in seed_courses] for seed_courses in courses]
        self._courses[trial.number] = TrialCourse(trial.number, costs, plan, points)
        for run_id, reported in (epochs or {}).items():
            for metrics in reported:
                runs[run_id][1].add(metrics)
        indices = (runs[run_id][0] for run_id in epochs or {})
        return next(filter(None, (self._judge(trial.number, index) for index in indices)), "")

    def epoch(self, number: int, run_id: str, metrics: PlainObject) -> str:
        """Add an epoch of one of a trial's runs.

        Args:
            number: Number of the trial.
            run_id: Id of the run.
            metrics: Metrics of the epoch.

        Returns:
            The reason to stop the trial now; empty if it goes on.
        """
        index, course = self._runs[number][run_id]
        earlier_points = len(course.points)
        course.add(metrics)
        return self._judge(number, index) if len(course.points) > earlier_points else ""

    def _judge(self, number: int, index: RunIndex) -> str:
        # A trial with an unknown cost can be on no front, so it is compared with no other trial.
        comparable = {
            trial: course for trial, course in self._courses.items() if len(course.costs) == len(self._costs)
        }
        course = comparable.pop(number, None)
        if course is None:
            return ""
        directions = tuple(self._costs.values())
        return reason_to_stop(course, index, comparable.values(), self._config, directions, self._scales)

    def ended(self, trial: Trial, results: Sequence[RunResult] = ()) -> Epochs:
        """Record the end of a trial.

        The epochs of a complete trial are in its results, even if its runs were found in the store and reported
        nothing. A failed trial counts for no other trial.

        Args:
            trial: The trial, in its final state.
            results: Results of its runs.

        Returns:
            The epochs to store with the trial's record: those of a stopped trial; none for other trials.
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
    course: TrialCourse,
    index: RunIndex,
    rivals: Iterable[TrialCourse],
    config: StoppingConfig,
    directions: Sequence[Direction],
    scales: Sequence[float | None],
) -> str:
    """Return the reason to stop a trial after the newest point of a run; empty if the trial goes on.

    If a trial has several runs, no decision waits for the last of them: the seeds that have come this far are compared
    with the *same* seeds of other trials, whose data came in the same order. The languages of one seed are one student,
    so all of them are awaited.

    Args:
        course: The trial.
        index: The run that has a new point.
        rivals: All other trials that reported something and did not fail.
        config: When to stop trials.
        directions: "max" or "min" for each cost.
        scales: The teacher's costs; None for a cost that the teacher lacks.
    """
    rivals = list(rivals)
    complete = [rival for rival in rivals if rival.final is not None]
    if not config.stops_trials or len(complete) < config.complete_first:
        return ""
    seed, position = index
    runs = course.seeds[seed]
    if not all(runs) or len(course.seeds_at(1.0)) == len(course.seeds):
        return ""
    share = min(points[-1].share for points in runs)
    rung = _crossed_rung(runs, position, config.rungs)
    reason, reach = "", reachable_score(course, share, complete)
    if reach is not None:
        reason = _out_of_reach(course, share, reach, complete, directions) or _not_worth_it(
            course, share, reach, complete, config.worth, directions, scales
        )
    return reason or _below_rung(course, rung, rivals, config.eta, directions)


def reachable_score(course: TrialCourse, share: float, complete: Sequence[TrialCourse]) -> float | None:
    """Return the largest score expected from a trial at a share of its plan, from 0 to 1.

    None if the trial has no score yet, or no complete trial of the same plan has a score at the share.
    """
    seeds = course.seeds_at(share)
    score = course.last_score_until(share, seeds)
    gains = gains_from(share, seeds, [rival for rival in complete if rival.plan == course.plan])
    return min(1.0, score + reachable_gain(gains)) if score is not None and gains else None


def _out_of_reach(
    course: TrialCourse,
    share: float,
    reach: float,
    complete: Sequence[TrialCourse],
    directions: Sequence[Direction],
) -> str:
    better = [
        rival
        for rival in complete
        if (rival.final or 0.0) > reach and _costs_no_more(rival.costs, course.costs, directions)
    ]
    if not better:
        return ""
    best = max(better, key=lambda rival: rival.final or 0.0)
    return (
        f"{_could_reach(share, reach)}; #{best.number:02d} costs no more "
        f"and has {100 * (best.final or 0.0):.1f}"
    )


def _not_worth_it(
    course: TrialCourse, share: float, reach: float, complete: Sequence[TrialCourse], worth: float,
    directions: Sequence[Direction], scales: Sequence[float | None],
) -> str:  # fmt: skip
    if not worth:
        return ""
    rows = [(reach, *course.costs), *((rival.final or 0.0, *rival.costs) for rival in complete)]
    table = np.array(rows, dtype=np.float64)
    table_directions: tuple[Direction, ...] = ("max", *("min" for _ in directions))
    # Column 0 is the score.
    for number, (scale, direction) in enumerate(zip(scales, directions, strict=True), 1):
        column = table[:, number]
        # A cost to be maximised, such as a speed, is measured by its inverse, as on the front.
        table[:, number] = (
            (scale or 1.0) / column if direction == "max" else column / (scale or column.max() or 1.0)
        )
    with_trial = dominated_share(table, table_directions)
    without_trial = dominated_share(table[1:], table_directions)
    if with_trial - without_trial >= worth * with_trial:
        return ""
    gain = 1 - without_trial / with_trial
    return f"{_could_reach(share, reach)}, and add {100 * gain:.1f} % to the hypervolume"


def _could_reach(share: float, reach: float) -> str:
    return f"at {100 * share:.0f} % of its plan the trial could reach {100 * reach:.1f} at most"


def gains_from(share: float, seeds: Sequence[int], complete: Iterable[TrialCourse]) -> list[float]:
    """Return the gains of complete trials from a share of the plan to the end, over the seeds."""
    scores = ((rival, rival.last_score_until(share, seeds)) for rival in complete)
    return [(rival.final or 0.0) - score for rival, score in scores if score is not None]


def reachable_gain(gains: Sequence[float]) -> float:
    """Return the largest gain to expect from a further trial.

    It is the quantile `QUANTILE` of the gains of n complete trials, plus a margin of 1/n of it: few trials say little.
    """
    return float(np.quantile(np.maximum(gains, 0.0), QUANTILE)) * (1 + 1 / len(gains))


def _costs_no_more(costs: Sequence[float], limits: Sequence[float], directions: Sequence[Direction]) -> bool:
    return all(
        cost >= limit if direction == "max" else cost <= limit
        for cost, limit, direction in zip(costs, limits, directions, strict=True)
    )


def _below_rung(
    course: TrialCourse,
    rung: float | None,
    courses: Sequence[TrialCourse],
    eta: float,
    directions: Sequence[Direction],
) -> str:
    if rung is None:
        return ""
    seeds = course.seeds_at(rung)
    score = course.score_at(rung, seeds)
    comparable = [rival for rival in courses if rival.plan == course.plan]
    rivals = [
        (at_rung, rival) for rival in comparable if (at_rung := rival.score_at(rung, seeds)) is not None
    ]
    rows = [(score, *course.costs), *((at_rung, *rival.costs) for at_rung, rival in rivals)]
    values = np.array(rows, dtype=np.float64)
    row_directions: tuple[Direction, ...] = ("max", *directions)
    keep, rank = math.ceil(len(rows) / eta), rank_candidates(values, row_directions).index(0)
    if rank < keep or non_dominated(values, row_directions)[0]:
        return ""
    # Never empty: the trial is dominated, and the trial that dominates it costs no more.
    better = [pair for pair in rivals if _costs_no_more(pair[1].costs, course.costs, directions)]
    best_score, best = max(better, key=lambda pair: (pair[0], -pair[1].number))
    return (
        f"at {100 * rung:.0f} % of its plan the trial was number {rank + 1} of {len(rows)}, and {keep} went on; "
        f"it had {100 * (score or 0.0):.1f}, and #{best.number:02d}, which costs no more, {100 * best_score:.1f}"
    )


def _crossed_rung(runs: Sequence[Sequence[Point]], newest: int, rungs: Sequence[float]) -> float | None:
    """Return the highest rung that all runs of a seed have reached with the last point of run `newest`, else None."""
    now = min(points[-1].share for points in runs)
    earlier_points = [points[:-1] if index == newest else points for index, points in enumerate(runs)]
    earlier = min(points[-1].share if points else 0.0 for points in earlier_points)
    return next((rung for rung in reversed(rungs) if earlier < rung - CLOSE <= now), None)


def rank_candidates(values: np.ndarray, directions: Sequence[Direction]) -> list[int]:
    """Return the rows of `values` [N, objectives], best first: front by front, each in the order of its epsilon-net."""
    rank = front_ranks(values, directions)
    order: list[int] = []
    for front in range(int(rank.max(initial=-1)) + 1):
        members = np.flatnonzero(rank == front)
        order += [int(members[index]) for index in epsilon_net(values[members], directions)]
    return order
