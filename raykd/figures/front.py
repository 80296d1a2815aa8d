"""The front of a sweep's own objectives, how much of the space it dominates, and what gold labels alone would give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from raykd.figures.pareto import hypervolume, non_dominated
from raykd.figures.table import Direction, Directions, Figure, objective_values, selectable_figures
from raykd.figures.trial import Teacher, Trial

GOLD = "gold"
TEACHING = (
    "strategy",
    "objective",
    "stages",
    "text",
    "layers",
    "head",
    "select",
    "teachers",
    "teacher_corpus",
)
"""Sections of settings that have no effect where there are only gold labels to learn from."""
ANNEALING = ("schedule.anneal_rate", "schedule.anneal_horizon")
"""The same of `schedule`."""


def candidates(trials: Iterable[Trial], objectives: Directions) -> list[Trial]:
    """Trials that may be on a front: complete ones of the search that meet its constraints and whose every
    objective is known.
    """
    return [
        trial
        for trial in trials
        if trial.state == "COMPLETE"
        and trial.role == "search"
        and trial.feasible
        and None not in objective_values(trial, objectives)
    ]


def pareto_front(trials: Iterable[Trial], objectives: Directions) -> list[Trial]:
    """The candidates that no other dominates, in the order given."""
    able = candidates(trials, objectives)
    if not able:
        return []
    mask = non_dominated(_table(able, objectives), tuple(objectives.values()))
    return [trial for trial, keep in zip(able, mask, strict=True) if keep]


def front_hypervolume(trials: Iterable[Trial], teachers: Sequence[Teacher], objectives: Directions) -> float:
    """Share of the box between score 0 at the teacher's cost and score 1 at no cost that the trials dominate (0 … 1).

    A cost that the teacher lacks is measured against the worst of the trials.
    """
    able = candidates(trials, objectives)
    if not able or not teachers:
        return 0.0
    return dominated_share(_shares(able, teachers, objectives), _directions(teachers, objectives))


def hypervolume_history(
    trials: Iterable[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> list[tuple[int, float]]:
    """The same of the first candidate, of the first two, and so on, in the order of their numbers: how the front grew.

    (The number of the trial, the share that it and all before it dominate.) Empty without teachers.
    """
    able = sorted(candidates(trials, objectives), key=lambda trial: trial.number)
    if not able or not teachers:
        return []
    shares, directions = _shares(able, teachers, objectives), _directions(teachers, objectives)
    grown: list[tuple[int, float]] = []
    front = shares[:0]
    for trial, own in zip(able, shares, strict=True):
        known, front = front, np.vstack([front, own])
        keep = non_dominated(front, directions)
        front = front[keep]
        # The volume is expensive, and a trial that is not on the front adds nothing to it.
        volume = dominated_share(front, directions) if keep[-1] or not len(known) else grown[-1][1]
        grown.append((trial.number, volume))
    return grown


def _shares(able: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions) -> np.ndarray:
    """[trials, objectives]: scores as they are, costs as shares of the teacher's, of which less is better."""
    figures = selectable_figures(teachers[0].score_name)
    columns = zip(objectives, _table(able, objectives).T, strict=True)
    return np.stack([_share(figures[name], values, teachers[0]) for name, values in columns], axis=1)


def _share(figure: Figure, values: np.ndarray, teacher: Teacher) -> np.ndarray:
    """The trials' values of one figure; of one that is to be large, such as a speed, the share is of its inverse."""
    if figure.score:
        return values
    larger = figure.direction == "max"
    unknown = 1.0 if figure.against else float(values.min() if larger else values.max())
    reference = figure.read(teacher) or unknown or 1.0
    with np.errstate(divide="ignore"):  # of 0 the inverse is beyond the box
        return reference / values if larger else values / reference


def _directions(teachers: Sequence[Teacher], objectives: Directions) -> tuple[Direction, ...]:
    """Of the columns of `_shares`."""
    figures = selectable_figures(teachers[0].score_name)
    return tuple("max" if figures[name].score else "min" for name in objectives)


def dominated_share(shares: np.ndarray, directions: Sequence[Direction]) -> float:
    """Share of the box that rows of `shares` [trials, objectives] dominate: scores as they are ("max"), costs as shares
    of the teacher's ("min").
    """
    reference = [0.0 if direction == "max" else 1.0 for direction in directions]
    return float(hypervolume(shares, reference, directions))


def find_confirmation(trial: Trial, trials: Iterable[Trial]) -> Trial | None:
    """The same setting over more seeds, whose figures are the trial's with less chance in them; None where it was not
    confirmed. Of several the one with most seeds.
    """
    seeds = len(trial.run_ids)
    found = [
        other
        for other in trials
        if other.role == "confirm" and other.state == "COMPLETE" and other.run_ids[:seeds] == trial.run_ids
    ]
    return max(found, key=lambda other: len(other.run_ids), default=None)


def with_confirmed_scores(trial: Trial, trials: Iterable[Trial]) -> Trial:
    """The trial with the scores of its confirmation, and how it stands to the constraints by them."""
    by = find_confirmation(trial, trials)
    if by is None:
        return trial
    return replace(trial, scores=by.scores, violations=by.violations, still_rises=by.still_rises)


def find_gold_twin(trial: Trial, trials: Iterable[Trial]) -> Trial | None:
    """The same student, trained in the same way on labels alone: what distillation is compared with.

    It is complete, of the baseline or a trial on gold labels, and its settings differ only in what belongs to teaching.
    One that took as many optimiser steps comes first, then one with the same schedule (`as_many_steps` says which it
    is); of several the best on dev. None where there is none, and for a trial that itself learns from labels alone.
    """
    if trial.objective == GOLD or trial.role == "baseline":
        return None
    own, schedule = _without_teaching(trial), _schedule(trial)
    twins = [
        other
        for other in trials
        if other.state == "COMPLETE"
        and (other.objective == GOLD or other.role == "baseline")
        and _without_teaching(other) == own
        and (same_step_count(trial, other) or _schedule(other) == schedule)
    ]
    return max(
        twins, key=lambda twin: (same_step_count(trial, twin), twin.scores.mean("dev") or 0.0), default=None
    )


def same_step_count(trial: Trial, twin: Trial) -> bool:
    """Whether both took as many optimiser steps; else they had as many epochs, of texts that may differ in length."""
    return trial.steps is not None and trial.steps == twin.steps


def _without_teaching(trial: Trial) -> dict[str, object]:
    return {
        path: value
        for path, value in trial.settings.items()
        if path.partition(".")[0] not in (*TEACHING, "schedule")
    }


def _schedule(trial: Trial) -> dict[str, object]:
    return {
        path: value
        for path, value in trial.settings.items()
        if path.partition(".")[0] == "schedule" and path not in ANNEALING
    }


def _table(trials: Sequence[Trial], objectives: Directions) -> np.ndarray:
    """[trials, objectives]."""
    return np.array([objective_values(trial, objectives) for trial in trials], dtype=np.float64)
