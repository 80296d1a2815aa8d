"""The front of a sweep's own objectives, and how much of the space it dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from raykd.pareto import hypervolume, non_dominated
from raykd.trial import Teacher, Trial

Directions = Mapping[str, Literal["max", "min"]]
FIELDS = {"f1": "dev_f1"}


def candidates(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that may stand on a front: complete ones of the search, never pruned, failed or baseline ones."""
    return [trial for trial in trials if trial.state == "COMPLETE" and trial.role == "search"]


def values_of(trial: Trial, objectives: Directions) -> list[float]:
    """The trial's values in the sweep's objectives."""
    return [float(getattr(trial, FIELDS.get(metric, metric))) for metric in objectives]


def front_of(trials: Sequence[Trial], objectives: Directions) -> list[Trial]:
    """The complete trials that no other dominates."""
    able = candidates(trials)
    if not able:
        return []
    mask = non_dominated([values_of(trial, objectives) for trial in able], tuple(objectives.values()))
    return [trial for trial, keep in zip(able, mask, strict=True) if keep]


def hypervolume_of(trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions) -> float:
    """Share of the box between F1 0 at the teacher's cost and F1 1 at no cost that the trials dominate (0 … 1)."""
    able = candidates(trials)
    if not able or not teachers:
        return 0.0
    scale = [1.0 if metric == "f1" else float(getattr(teachers[0], metric) or 1.0) for metric in objectives]
    values = [
        [value / unit for value, unit in zip(values_of(trial, objectives), scale, strict=True)]
        for trial in able
    ]
    reference = [0.0 if direction == "max" else 1.0 for direction in objectives.values()]
    return float(hypervolume(values, reference, tuple(objectives.values())))
