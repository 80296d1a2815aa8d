"""The plan of a run: its stages, the layer groups trained in each step, and the held-out text."""

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
    """The training of one stage.

    Attributes:
        objective: Objective; if it is annealed, mixed with labels (`annealed_objective`).
        data: Opens the training data.
        live: Opens the teacher that reads the batches in the training step; gives None if there is none.
        layers: "all", "unfreeze", or the names of the trained layer groups.
        head: "keep", or "new" for a head with new random weights.
        select: Criterion for the best epoch: "dev" (the dev score), or "loss" (the stage's loss on held-out text).
        held_out: Share of the text that is held out for `select: loss`.
    """

    objective: Objective
    schedule: ScheduleConfig
    training: TrainingConfig
    data: Callable[[], TrainingData]
    live: Callable[[], LiveTeacher | None] = lambda: None

    layers: str | Sequence[str] = "all"
    head: str = "keep"
    select: str = "dev"
    held_out: float = 0.0

    def steps(self, model: Model) -> list[list[str] | None]:
        """Return the trained layer groups of each stage step; None stands for all.

        Args:
            model: to be trained.
        """
        if self.layers == "all":
            return [None]
        if self.layers == "unfreeze":
            # A head has no effect on hidden states.
            groups = [name for name in model.layer_groups() if name != "head" or self.objective.reads_scores]
            return [groups[: count + 1] for count in range(len(groups))]
        return [list(self.layers)]


@dataclass(frozen=True)
class TrainingPlan:
    """The training of a run.

    Attributes:
        tags: Number of the model's labels.
        sampling_alpha: Exponent of the sampling of languages; 1 takes every sentence once per epoch.
    """

    stages: Sequence[StagePlan]
    tags: int
    sampling_alpha: float = 1.0
    checkpoint_steps: int = 1000
    """Optimiser steps between checkpoints inside a long epoch; counted in steps, because saving is a collective."""


def select_trainable(model: Model, groups: Sequence[str] | None) -> list[nn.Parameter]:
    """Return the parameters of some layer groups, and freeze all others.

    The model's `fixed_parameters` are always frozen.

    Args:
        model: changed in place.
        groups: names of the layer groups; None for all groups.

    Raises:
        RunError: the model has no such layer group.
    """
    layer_groups = model.layer_groups()
    groups = list(layer_groups) if groups is None else groups
    if unknown := [group for group in groups if group not in layer_groups]:
        raise RunError(f"the model has no layer group {unknown[0]!r}; it has {', '.join(layer_groups)}")
    chosen = {id(parameter) for group in groups for parameter in layer_groups[group]}
    chosen -= {id(parameter) for parameter in model.fixed_parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) in chosen)
    return [parameter for parameter in model.parameters() if id(parameter) in chosen]


def split_held_out(rows: np.ndarray, stage: StagePlan) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows for training, and the held-out rows drawn by the seed; without `select: loss` none are held out.

    Args:
        rows: of the stage's text.
        stage: its `select`, `held_out` and seed decide.
    """
    if stage.select != "loss":
        return rows, rows[:0]
    order = np.random.default_rng([stage.training.seed, len(rows)]).permutation(len(rows))
    count = min(max(1, round(stage.held_out * len(rows))), len(rows) - 1)
    return rows[np.sort(order[count:])], rows[np.sort(order[:count])]


def labelled_share(part: Part, rows: np.ndarray, *, per_token: bool, alpha: float) -> float:
    """Return the share of labelled text in the average of a stage's loss.

    Args:
        part: the text.
        rows: of an epoch.
        per_token: true if the loss is averaged over tokens, false for sentences.
        alpha: exponent of the sampling of languages; the share is then an expectation.
    """
    weight_N = part.text.lengths[rows].astype(np.float64) if per_token else np.ones(len(rows))
    _, language_N, counts = np.unique(part.languages[rows], return_inverse=True, return_counts=True)
    weight_N *= (counts ** (alpha - 1.0))[language_N]
    return float(weight_N[part.labels.labelled[rows]].sum() / weight_N.sum())
