"""The length of a run's plan, and the share of it that is done: by epochs, else by optimiser steps.

Patience may end a stage before its plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from raykd.identity import PlainObject
from raykd.objectives import ObjectiveConfig
from raykd.recipes.run import Run, validate_plain


@dataclass(frozen=True)
class StageLength:
    """What ends one stage beside patience; None where there is no such limit."""

    epochs: int | None
    """Of one step."""
    max_steps: int | None
    """Optimiser steps of one step of the stage."""
    steps: int = 1
    """Several where layers are unfrozen, one group after another."""

    def share(self, epochs: float, optimiser_steps: float) -> float:
        """Return the share of one step that is done, from 0 to 1, by whichever limit ends it first."""
        return min(
            1.0,
            max(
                epochs / self.epochs if self.epochs else 0.0,
                optimiser_steps / self.max_steps if self.max_steps else 0.0,
            ),
        )


@dataclass(frozen=True)
class PlanLength:
    """The lengths of all stages of a run."""

    stages: tuple[StageLength, ...]

    @cached_property
    def shares(self) -> Sequence[float]:
        """The share of the run that each stage has: by epochs, else by optimiser steps, else the same for all."""
        by_limit = ([stage.epochs for stage in self.stages], [stage.max_steps for stage in self.stages])
        for limits in by_limit:
            if None not in limits:
                lengths = [
                    (limit or 0) * stage.steps for limit, stage in zip(limits, self.stages, strict=True)
                ]
                return [length / sum(lengths) for length in lengths]
        return [1.0 / len(self.stages)] * len(self.stages)

    @property
    def max_epochs(self) -> int | None:
        """How many epochs the run may have in all; None where a stage has no such limit."""
        limits = [stage.epochs and stage.epochs * stage.steps for stage in self.stages]
        return None if None in limits else sum(limit or 0 for limit in limits)

    def share_done(self, stage: int, step: int, epochs: float, optimiser_steps: float) -> float:
        """Return the share of the run that is done, from 0 to 1.

        Args:
            stage: the stage in hand.
            step: its step in hand.
            epochs: how many epochs of this step are done.
            optimiser_steps: how many optimiser steps of this step are done.
        """
        length = self.stages[stage]
        within = (step + length.share(epochs, optimiser_steps)) / length.steps
        return sum(self.shares[:stage]) + self.shares[stage] * within


def plan_length(run: Run) -> PlanLength:
    """Return how long the plan of a run is, without its model."""
    return PlanLength(
        tuple(
            StageLength(
                stage["schedule"].get("epochs"),
                stage["schedule"].get("max_steps"),
                unfreezing_steps(run, scores=reads_scores(stage)) if stage["layers"] == "unfreeze" else 1,
            )
            for stage in run.stages
        )
    )


def unfreezing_steps(run: Run, *, scores: bool = True) -> int:
    """Steps of a stage that unfreezes layer after layer: head (where the loss reads scores), projection if the model
    has one, encoder, embeddings.
    """
    return 2 + scores + bool(run.model.get("projection"))


def reads_scores(stage: PlainObject) -> bool:
    """Whether the objective of a stage reads the scores of the head."""
    return validate_plain(ObjectiveConfig, stage["objective"]).reads_scores
