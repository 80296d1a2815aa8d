"""The front of a sweep's own objectives, and how much of the space it dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from raykd.pareto import hypervolume, non_dominated
from raykd.trial import Teacher, Trial

Metric = Literal["f1", "latency_ms", "parameters", "bytes"]
Directions = Mapping[Metric, Literal["max", "min"]]
OBJECTIVES: Directions = MappingProxyType({"f1": "max", "latency_ms": "min", "parameters": "min"})
"""What a sweep searches by default."""
FIELDS = {"f1": "dev_f1"}


def candidates(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that may stand on a front: complete ones of the search, never pruned, failed or baseline ones."""
    return [trial for trial in trials if trial.state == "COMPLETE" and trial.role == "search"]


def front_of(trials: Sequence[Trial], objectives: Directions) -> list[Trial]:
    """The complete trials that no other dominates."""
    able = candidates(trials)
    if not able:
        return []
    mask = non_dominated(_table(able, objectives), tuple(objectives.values()))
    return [trial for trial, keep in zip(able, mask, strict=True) if keep]


def hypervolume_of(trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions) -> float:
    """Share of the box between F1 0 at the teacher's cost and F1 1 at no cost that the trials dominate (0 … 1)."""
    able = candidates(trials)
    if not able or not teachers:
        return 0.0
    scale = [1.0 if metric == "f1" else float(getattr(teachers[0], metric) or 1.0) for metric in objectives]
    values = _table(able, objectives) / np.array(scale)
    reference = [0.0 if direction == "max" else 1.0 for direction in objectives.values()]
    return float(hypervolume(values, reference, tuple(objectives.values())))


def _table(trials: Sequence[Trial], objectives: Directions) -> np.ndarray:
    """[trials, objectives]."""
    fields = [FIELDS.get(metric, metric) for metric in objectives]
    return np.array([[getattr(trial, name) for name in fields] for trial in trials], dtype=np.float64)
