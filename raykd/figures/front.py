"""The front of a sweep, the share of the space that it dominates, and the twins of its students on gold labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from raykd.figures.pareto import Direction, hypervolume, non_dominated
from raykd.figures.table import Directions, Figure, objective_values, selectable_figures
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
"""Sections of settings without effect on a student that learns from gold labels alone."""
ANNEALING = ("schedule.anneal_rate", "schedule.anneal_horizon")
"""Settings of `schedule` without effect on a student that learns from gold labels alone."""


def candidates(trials: Iterable[Trial], objectives: Directions) -> list[Trial]:
    """Return the trials eligible for a front.

    Candidates are complete trials of the search that meet its constraints and have a value for every objective.

    Args:
        trials: Trials in any state.
        objectives: Name of a figure → "max" or "min".
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
    """Return the non-dominated candidates, in the order given.

    Args:
        trials: Trials in any state; only `candidates` count.
        objectives: Name of a figure → "max" or "min".
    """
    eligible = candidates(trials, objectives)
    if not eligible:
        return []
    mask = non_dominated(_table(eligible, objectives), tuple(objectives.values()))
    return [trial for trial, keep in zip(eligible, mask, strict=True) if keep]


def front_hypervolume(trials: Iterable[Trial], teachers: Sequence[Teacher], objectives: Directions) -> float:
    """Return the share (0 to 1) of the box that the trials dominate.

    The box lies between score 0 at the teacher's cost and score 1 at no cost. A cost that the teacher lacks is measured
    against the worst of the trials.

    Args:
        trials: Trials in any state; only `candidates` count.
        teachers: The teachers' rows; the first one gives the costs.
        objectives: Name of a figure → "max" or "min".

    Returns:
        The share; 0 without candidates or teachers.
    """
    eligible = candidates(trials, objectives)
    if not eligible or not teachers:
        return 0.0
    return dominated_share(_shares(eligible, teachers, objectives), _directions(teachers, objectives))


def hypervolume_history(
    trials: Iterable[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> list[tuple[int, float]]:
    """Return the growth of the front: the hypervolume after every candidate, in the order of trial numbers.

    Args:
        trials: Trials in any state; only `candidates` count.
        teachers: The teachers' rows; the first one gives the costs.
        objectives: Name of a figure → "max" or "min".

    Returns:
        (Number of the trial, share that it and all before it dominate) for each candidate; empty without teachers.
    """
    eligible = sorted(candidates(trials, objectives), key=lambda trial: trial.number)
    if not eligible or not teachers:
        return []
    shares, directions = _shares(eligible, teachers, objectives), _directions(teachers, objectives)
    grown: list[tuple[int, float]] = []
    front = shares[:0]
    for trial, row in zip(eligible, shares, strict=True):
        earlier, front = front, np.vstack([front, row])
        keep = non_dominated(front, directions)
        front = front[keep]
        # The volume is expensive, and a trial that is not on the front adds nothing to it.
        volume = dominated_share(front, directions) if keep[-1] or not len(earlier) else grown[-1][1]
        grown.append((trial.number, volume))
    return grown


def _shares(eligible: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions) -> np.ndarray:
    """Scores as they are, and costs as shares of the teacher's cost, of which less is better; [trials, objectives]."""
    figures = selectable_figures(teachers[0].score_name)
    columns = zip(objectives, _table(eligible, objectives).T, strict=True)
    return np.stack([_share(figures[name], values, teachers[0]) for name, values in columns], axis=1)


def _share(figure: Figure, values: np.ndarray, teacher: Teacher) -> np.ndarray:
    """Return the trials' values of one figure; for a figure to be maximised, such as a speed, shares of its inverse."""
    if figure.score:
        return values
    larger_is_better = figure.direction == "max"
    worst = float(values.min() if larger_is_better else values.max())
    fallback = 1.0 if figure.against else worst  # a ratio to the teacher is 1 for the teacher itself
    reference = figure.read(teacher) or fallback or 1.0
    with np.errstate(divide="ignore"):  # the inverse of 0 is outside the box
        return reference / values if larger_is_better else values / reference


def _directions(teachers: Sequence[Teacher], objectives: Directions) -> tuple[Direction, ...]:
    """The directions of the columns of `_shares`."""
    figures = selectable_figures(teachers[0].score_name)
    return tuple("max" if figures[name].score else "min" for name in objectives)


def dominated_share(shares: np.ndarray, directions: Sequence[Direction]) -> float:
    """Return the share of the unit box dominated by the rows of `shares`.

    Args:
        shares: [trials, objectives]; scores as they are, costs as shares of the teacher's cost.
        directions: "max" for a score, "min" for a cost.
    """
    reference = [0.0 if direction == "max" else 1.0 for direction in directions]
    return float(hypervolume(shares, reference, directions))


def find_confirmation(trial: Trial, trials: Iterable[Trial]) -> Trial | None:
    """Return the confirmation of `trial`: the same setting over more seeds, so with less chance in its figures.

    Args:
        trial: A trial of the search.
        trials: All trials of the sweep.

    Returns:
        The confirmation with the most seeds; None if there is none.
    """
    seeds = len(trial.run_ids)
    confirmations = [
        candidate
        for candidate in trials
        if candidate.role == "confirm"
        and candidate.state == "COMPLETE"
        and candidate.run_ids[:seeds] == trial.run_ids
    ]
    return max(confirmations, key=lambda candidate: len(candidate.run_ids), default=None)


def with_confirmed_scores(trial: Trial, trials: Iterable[Trial]) -> Trial:
    """Return `trial` with the scores, and the margins to the constraints, of its confirmation, if it has one.

    Args:
        trial: A trial of the search.
        trials: All trials of the sweep.
    """
    confirmation = find_confirmation(trial, trials)
    if confirmation is None:
        return trial
    return replace(
        trial,
        scores=confirmation.scores,
        violations=confirmation.violations,
        still_rises=confirmation.still_rises,
    )


def find_gold_twin(trial: Trial, trials: Iterable[Trial]) -> Trial | None:
    """Return the counterpart of a distilled trial: the same student, trained in the same way on labels alone.

    A twin is complete, belongs to the baseline or trains on gold labels, and differs from `trial` only in settings of
    teaching. Twins with as many optimiser steps come first, then twins with the same schedule (`same_step_count` tells
    them apart); of several the best on dev.

    Args:
        trial: A trial that learns from a teacher.
        trials: All trials of the sweep.

    Returns:
        The twin; None if there is none, or if `trial` itself learns from labels alone.
    """
    if trial.objective == GOLD or trial.role == "baseline":
        return None
    settings, schedule = _without_teaching(trial), _schedule(trial)
    twins = [
        twin
        for twin in trials
        if twin.state == "COMPLETE"
        and (twin.objective == GOLD or twin.role == "baseline")
        and _without_teaching(twin) == settings
        and (same_step_count(trial, twin) or _schedule(twin) == schedule)
    ]
    return max(
        twins, key=lambda twin: (same_step_count(trial, twin), twin.scores.mean("dev") or 0.0), default=None
    )


def same_step_count(trial: Trial, twin: Trial) -> bool:
    """True if both trials took as many optimiser steps.

    If not, they had as many epochs, on texts that may differ in length.

    Args:
        trial: A trial that learns from a teacher.
        twin: Its twin on gold labels.
    """
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
    """The trials' values of the objectives, [trials, objectives]."""
    return np.array([objective_values(trial, objectives) for trial in trials], dtype=np.float64)
