"""The length of a stage, and the weight λ over its epochs."""

from typing import Annotated

from pydantic import Field

from raykd.identity import PlainObject
from raykd.spec import Frozen

TO_CONVERGENCE = {"max_steps": 20_000, "patience": 10}
"""Length of a training without any stated limit."""


class Duration(Frozen):
    """Length of a training, which ends at the first of these limits; its best state is kept.

    Each step of unfreezing has these limits. Without any limit training goes on to convergence: `patience: 10`, and
    20,000 steps at most.
    """

    epochs: Annotated[int, Field(ge=1)] | None = None
    """Passes over its text at most."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Optimiser steps at most, also inside an epoch."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Epochs without a better state after which training ends."""


def with_default_end(schedule: PlainObject) -> PlainObject:
    """Return the schedule, to convergence if without a limit.

    Args:
        schedule: a dumped `Duration`, or a model that extends it.
    """
    endless = all(schedule[name] is None for name in Duration.model_fields)
    return {**schedule, **TO_CONVERGENCE} if endless else schedule


class ScheduleConfig(Duration):
    """Length of a stage, and how λ, the weight of its objective against that of labels, falls over its epochs."""

    anneal_rate: Annotated[float, Field(ge=0)] = 1.0
    anneal_horizon: Annotated[int, Field(ge=1)] = 12
    """Epochs at which rate 1 reaches λ = 0 (fixed to 100 in the authors' code)."""

    def kd_weight(self, epoch: int) -> float:
        """Return λ = max(0, 1 − rate · epoch / horizon), with epochs from 0 (teacher annealing, ACL 2020 §3.3)."""
        return max(0.0, 1.0 - self.anneal_rate * epoch / self.anneal_horizon)
