"""The length of a stage, and the weight λ over its epochs."""

from typing import Annotated

from pydantic import Field

from raykd.identity import PlainObject
from raykd.spec import Frozen

TO_CONVERGENCE = {"max_steps": 20_000, "patience": 10}
"""Limits of a training for which none is stated."""


class Duration(Frozen):
    """Length of training, which ends at the first of these limits; the best state is kept.

    With gradual unfreezing the limits hold for each of its steps. Without any limit training goes on to convergence:
    `patience: 10`, and 20,000 steps at most.
    """

    epochs: Annotated[int, Field(ge=1)] | None = None
    """Largest number of passes over the text."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Largest number of optimiser steps; training may end inside an epoch."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Epochs without a better state after which training ends."""


def with_default_end(schedule: PlainObject) -> PlainObject:
    """Return the schedule, with the limits of `TO_CONVERGENCE` if it has none.

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
