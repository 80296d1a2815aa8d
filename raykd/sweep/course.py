"""The course of a trial: shares of its plan and scores, epoch by epoch, which early stopping compares."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from raykd.identity import PlainObject
from raykd.recipes.run import Run
from raykd.training.plan_length import plan_length, reads_scores

CLOSE = 1e-9
"""Shares that differ by less are the same point of a plan."""


@dataclass(frozen=True)
class Point:
    """A run after an epoch: the share of its plan that is done, and its dev score if it ended now, both 0 to 1."""

    share: float
    score: float


class RunCourse:
    """The points of one run, epoch by epoch.

    An epoch has a point if its stage trains the scores of the head: while only hidden states are trained, the dev score
    says nothing. The score of a point is the dev score of the best epoch so far in the same unfreezing step: the best
    on dev, or the one with the lowest held-out loss if the stage selects by loss.

    Attributes:
        points: The points, by rising share.
        epochs: The metrics of each reported epoch.
        done_share: Share of the plan that is done, from 0 to 1; patience may end the run earlier.
        plan: Kinds of the stages, and the share of the plan at which each ends. Runs with equal plans can be compared
            at one share.
    """

    def __init__(self, run: Run):
        self.points: list[Point] = []
        self.epochs: list[PlainObject] = []
        self.done_share = 0.0
        self._has_points = [reads_scores(stage) for stage in run.stages]
        self._length = plan_length(run)
        kinds = [
            (has_points, json.dumps(stage["layers"]), stage["select"])
            for has_points, stage in zip(self._has_points, run.stages, strict=True)
        ]
        shares = [round(share, 3) for share in self._length.shares]
        self.plan: Hashable = tuple(zip(kinds, shares, strict=True))
        self._step = (-1, -1)  # stage and unfreezing step of the last epoch

    def add(self, metrics: PlainObject) -> None:
        """Add the metrics of an epoch; adding them again changes nothing."""
        if self.epochs and metrics["epoch"] <= self.epochs[-1]["epoch"]:
            return
        self.epochs.append(metrics)
        step = (metrics["stage"], metrics["step"])
        if step != self._step:
            steps_before = self.epochs[-2]["steps"] if len(self.epochs) > 1 else 0
            self._step, self._first_epoch, self._steps_before = step, metrics["epoch"], steps_before
            self._best, self._best_dev = -float("inf"), 0.0
        held_out = metrics.get("held_out_loss")
        selected = metrics["dev"] if held_out is None else -held_out
        if selected > self._best:
            self._best, self._best_dev = selected, metrics["dev"]
        epochs, steps = metrics["epoch"] - self._first_epoch + 1, metrics["steps"] - self._steps_before
        self.done_share = self._length.share_done(*step, epochs, steps)
        if self._has_points[step[0]]:
            self.points.append(Point(self.done_share, self._best_dev))

    def end(self) -> None:
        """End the run, by patience or as planned: it moves to the end of its plan."""
        if self.points:
            self.points.append(Point(1.0, self._best_dev))


@dataclass
class TrialCourse:
    """The epochs of a trial so far.

    Attributes:
        number: Number of the trial.
        costs: The figures among the objectives that are costs, in the order of the objectives; known exactly.
        plan: The plans of all runs. Only trials with equal plans are compared: at one share they are in the same stage.
        seeds: `seeds[seed][run]` are the points of a run, by rising share. A seed has one run, or one for each
            language.
        final: Mean dev score of a complete trial; None for an unfinished one.
    """

    number: int
    costs: tuple[float, ...]
    plan: Hashable
    seeds: Sequence[Sequence[Sequence[Point]]]
    final: float | None = None

    def seeds_at(self, share: float) -> tuple[int, ...]:
        """Return the indices of the seeds with all runs at the share or beyond."""
        return tuple(
            seed
            for seed, runs in enumerate(self.seeds)
            if all(points and points[-1].share >= share - CLOSE for points in runs)
        )

    def score_at(self, share: float, seeds: Sequence[int]) -> float | None:
        """Return the mean score of `seeds` at the first points from the share on; None if a run is not there yet."""
        if not set(seeds) <= set(self.seeds_at(share)):
            return None
        return fmean(
            next(point.score for point in points if point.share >= share - CLOSE)
            for seed in seeds
            for points in self.seeds[seed]
        )

    def last_score_until(self, share: float, seeds: Sequence[int]) -> float | None:
        """Return the mean score of `seeds` at the last points up to the share; None if a run has no such point."""
        scores = []
        for points in (points for seed in seeds for points in self.seeds[seed]):
            scores_so_far = [point.score for point in points if point.share <= share + CLOSE]
            if not scores_so_far:
                return None
            scores.append(scores_so_far[-1])
        return fmean(scores)
