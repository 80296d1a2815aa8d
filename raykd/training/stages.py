"""The plan of a run: its stages, which layer groups each of their steps trains, and which text a stage holds out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from raykd.errors import RunError
from raykd.layers.model import Model
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import ScheduleConfig
from raykd.objectives import Objective
from raykd.training.data import Part, TrainingData
from raykd.training.live import LiveTeacher


@dataclass(frozen=True)
class StagePlan:
    """How one stage is trained: its objective (annealed, if it is), on which data, which layer groups, whether
    with a new head.
    """

    objective: Objective
    schedule: ScheduleConfig
    training: TrainingConfig
    data: Callable[[], TrainingData]
    live: Callable[[], LiveTeacher | None] = lambda: None
    """The teacher that reads each batch in the training step, where one does."""
    layers: str | Sequence[str] = "all"
    head: str = "keep"
    select: str = "dev"
    held_out: float = 0.0

    def steps(self, model: Model) -> list[list[str] | None]:
        """The layer groups that each step trains; None stands for all."""
        if self.layers == "all":
            return [None]
        if self.layers == "unfreeze":
            # A head has no effect on hidden states.
            groups = [each for each in model.layer_groups() if each != "head" or self.objective.reads_scores]
            return [groups[: count + 1] for count in range(len(groups))]
        return [list(self.layers)]


@dataclass(frozen=True)
class TrainingPlan:
    """How a run is trained."""

    stages: Sequence[StagePlan]
    tags: int
    sampling_alpha: float = 1.0
    checkpoint_steps: int = 1000
    """Optimiser steps between checkpoints inside a long epoch; counted in steps, because saving is a collective."""


def select_trainable(model: Model, groups: Sequence[str] | None) -> list[nn.Parameter]:
    """The parameters of the layer groups; the others are not trained. None trains all but those that are fixed."""
    known = model.layer_groups()
    groups = list(known) if groups is None else groups
    if unknown := [group for group in groups if group not in known]:
        raise RunError(f"the model has no layer group {unknown[0]!r}; it has {', '.join(known)}")
    chosen = {id(parameter) for group in groups for parameter in known[group]}
    chosen -= {id(parameter) for parameter in model.fixed_parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) in chosen)
    return [parameter for parameter in model.parameters() if id(parameter) in chosen]


def split_held_out(rows: np.ndarray, stage: StagePlan) -> tuple[np.ndarray, np.ndarray]:
    """The rows that a stage trains on, and those that it is selected on (none where dev selects), drawn by the seed."""
    if stage.select != "loss":
        return rows, rows[:0]
    order = np.random.default_rng([stage.training.seed, len(rows)]).permutation(len(rows))
    count = min(max(1, round(stage.held_out * len(rows))), len(rows) - 1)
    return rows[np.sort(order[count:])], rows[np.sort(order[:count])]


def labelled_share(part: Part, rows: np.ndarray, *, per_token: bool, alpha: float) -> float:
    """The share of labelled text in what a stage's loss is averaged over, sentences or tokens: of an epoch over these
    rows of `part`, or of one that samples languages with exponent `alpha`, in expectation.
    """
    weight_N = part.text.lengths[rows].astype(np.float64) if per_token else np.ones(len(rows))
    _, language_N, counts = np.unique(part.languages[rows], return_inverse=True, return_counts=True)
    weight_N *= (counts ** (alpha - 1.0))[language_N]
    return float(weight_N[part.labels.labelled[rows]].sum() / weight_N.sum())
