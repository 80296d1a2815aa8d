"""How far a run is in its plan after each epoch, and the dev score that it would end with now.

The plan is what its stages and their schedules say; patience may end it earlier. An epoch counts where its stage trains
the scores of the head: after an epoch of hidden states alone dev says nothing. Its score is that of the epoch that the
step would keep: the best on dev, or the one with the lowest held-out loss where the stage selects by that.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from raykd.cluster.listener import RunEpoch
from raykd.objectives import ObjectiveConfig
from raykd.recipes.run import Run, validated
from raykd.sweep.stopping import Point
from raykd.training.plan_length import PlanLength, StageLength


class RunCourse:
    """The points of one run, epoch by epoch."""

    def __init__(self, run: Run):
        self.points: list[Point] = []
        self.epochs: list[Mapping[str, Any]] = []
        """What was reported."""
        self.done = 0.0
        """The share of the plan that is done."""
        self._stages = [_Stage(stage) for stage in run.stages]
        self._length = plan_length(run)
        self._place = (-1, -1)

    @property
    def plan(self) -> Hashable:
        """Equal for runs that can be compared at one share of their plans."""
        kinds = (stage.kind for stage in self._stages)
        return tuple((kind, round(share, 3)) for kind, share in zip(kinds, self._length.shares, strict=True))

    def add(self, metrics: Mapping[str, Any]) -> None:
        """The metrics of an epoch; one that was added before changes nothing."""
        if self.epochs and metrics["epoch"] <= self.epochs[-1]["epoch"]:
            return
        self.epochs.append(metrics)
        place = (metrics["stage"], metrics["step"])
        if place != self._place:
            before = self.epochs[-2]["steps"] if len(self.epochs) > 1 else 0
            self._place, self._first, self._before = place, metrics["epoch"], before
            self._best, self._kept = -float("inf"), 0.0
        held_out = metrics.get("held_out_loss")
        selected = metrics["dev"] if held_out is None else -held_out
        if selected > self._best:
            self._best, self._kept = selected, metrics["dev"]
        epochs, steps = metrics["epoch"] - self._first + 1, metrics["steps"] - self._before
        self.done = self._length.done(*place, epochs, steps)
        if self._stages[place[0]].counts:
            self.points.append(Point(self.done, self._kept))

    def end(self) -> None:
        """The run is finished, by patience or as planned: it is at the end of its plan."""
        if self.points:
            self.points.append(Point(1.0, self._kept))


class _Stage:
    def __init__(self, stage: Mapping[str, Any]):
        self.counts = _reads_scores(stage)
        self.kind = (self.counts, json.dumps(stage["layers"]), stage["select"])


def _reads_scores(stage: Mapping[str, Any]) -> bool:
    return validated(ObjectiveConfig, stage["objective"]).reads_scores


def plan_length(run: Run) -> PlanLength:
    """Return how long the plan of a run is, without its model."""
    return PlanLength(
        tuple(
            StageLength(
                stage["schedule"].get("epochs"),
                stage["schedule"].get("max_steps"),
                unfreezing_steps(run, scores=_reads_scores(stage)) if stage["layers"] == "unfreeze" else 1,
            )
            for stage in run.stages
        )
    )


def run_epoch(job: str, name: str, about: str, run: Run, label: str, metrics: Mapping[str, Any]) -> RunEpoch:
    """What listeners are given of the `metrics` of an epoch."""
    return RunEpoch(
        job, name, about, metrics["epoch"] + 1, plan_length(run).most_epochs, metrics["dev"], label,
        metrics["tokens"], metrics["tokens_per_second"],
    )  # fmt: skip


def unfreezing_steps(run: Run, *, scores: bool = True) -> int:
    """Steps of a stage that unfreezes layer after layer: head (where the loss reads scores), projection if the model
    has one, encoder, embeddings."""
    return 2 + scores + bool(run.model.get("projection"))
