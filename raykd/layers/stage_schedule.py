"""How long a stage trains, and how λ falls over its epochs."""

from typing import Annotated

from pydantic import Field

from raykd.identity import PlainObject
from raykd.spec import Frozen

TO_CONVERGENCE = {"max_steps": 20_000, "patience": 10}
"""What ends training where nothing is said of it."""


class Duration(Frozen):
    """How long something trains: until the first of these is reached, with unfreezing in each step. Its best state is
    kept. Where none is given it trains to convergence: `patience: 10`, and 20,000 steps at most.
    """

    epochs: Annotated[int, Field(ge=1)] | None = None
    """Passes over its text at most."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Optimiser steps at most, also inside an epoch."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Epochs without a better state after which it ends."""


def with_an_end(schedule: PlainObject) -> PlainObject:
    """A schedule as plain data, to convergence where it says nothing of its end."""
    endless = all(schedule[name] is None for name in Duration.model_fields)
    return {**schedule, **TO_CONVERGENCE} if endless else schedule


class ScheduleConfig(Duration):
    """How long a stage trains, and how λ, the weight of its objective beside labels, falls over its epochs."""

    anneal_rate: Annotated[float, Field(ge=0)] = 1.0
    anneal_horizon: Annotated[int, Field(ge=1)] = 12
    """Epochs at which rate 1 reaches λ = 0 (the authors' code fixes 100; here it is explicit)."""

    def kd_weight(self, epoch: int) -> float:
        """λ = max(0, 1 − rate · epoch / horizon), epoch of the stage from 0 (teacher annealing, ACL 2020 §3.3)."""
        return max(0.0, 1.0 - self.anneal_rate * epoch / self.anneal_horizon)
