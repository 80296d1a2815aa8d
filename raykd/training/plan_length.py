"""The length of a run's plan, and the finished share of it: by epochs if possible, else by optimiser steps.

With patience a stage may end earlier than its plan.
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
    """Limits of one stage beside patience; None for a limit that is not set."""

    epochs: int | None
    """Epochs of one stage step."""
    max_steps: int | None
    """Optimiser steps of one stage step."""
    steps: int = 1
    """Number of stage steps: several if layers are unfrozen, one group after another."""

    def share(self, epochs: float, optimiser_steps: float) -> float:
        """Return the finished share of one stage step, from 0 to 1, by the limit that ends it first.

        Args:
            epochs: finished epochs of the stage step, parts of one included.
            optimiser_steps: finished optimiser steps of the stage step.
        """
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
        """The shares of the stages: by epochs if all stages limit them, else by optimiser steps, else equal."""
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
        """The limit of epochs of the whole run; None if a stage has no such limit."""
        limits = [stage.epochs and stage.epochs * stage.steps for stage in self.stages]
        return None if None in limits else sum(limit or 0 for limit in limits)

    def share_done(self, stage: int, step: int, epochs: float, optimiser_steps: float) -> float:
        """Return the finished share of the run, from 0 to 1.

        Args:
            stage: the current stage, from 0.
            step: the current stage step, from 0.
            epochs: finished epochs of this stage step.
            optimiser_steps: finished optimiser steps of this stage step.
        """
        length = self.stages[stage]
        within = (step + length.share(epochs, optimiser_steps)) / length.steps
        return sum(self.shares[:stage]) + self.shares[stage] * within


def plan_length(run: Run) -> PlanLength:
    """Return the length of a run's plan, without building its model.

    Args:
        run: the run.
    """
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
    """Return the number of stage steps with `layers: unfreeze`, one for each layer group.

    The groups are the head (if the loss reads scores), the projection (if the model has one), the encoder, the
    embeddings.

    Args:
        run: the run.
        scores: true if the loss reads the scores of the head.
    """
    return 2 + scores + bool(run.model.get("projection"))


def reads_scores(stage: PlainObject) -> bool:
    """Return true if the objective of a stage reads the scores of the head.

    Args:
        stage: as plain data.
    """
    return validate_plain(ObjectiveConfig, stage["objective"]).reads_scores
