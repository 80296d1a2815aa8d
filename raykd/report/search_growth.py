"""The course of the search as numbers to draw.

They show the growth of the front from trial to trial, the importance of settings for each objective, and the trade-off
between the scores of source and target languages if both are searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from raykd.figures.front import candidates, hypervolume_history, pareto_front
from raykd.figures.table import DEV, TARGET_DEV, Directions, selectable_figures
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher, common_score_label, common_score_name
from raykd.identity import PlainObject

MOST_SETTINGS = 15
"""Largest number of settings shown, the most important ones."""

Importances = Mapping[str, Mapping[str, float]]
"""Objective → setting → share of the objective's variance explained by the setting."""


def volume_growth(
    trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> list[tuple[int, float]]:
    """Return the hypervolume after each trial: (number of the trial, percentage of the teacher's box dominated so far).

    The list is empty if it has fewer than two points.
    """
    history = hypervolume_history(trials, teachers, objectives)
    return [(number, round(100 * volume, 3)) for number, volume in history] if len(history) > 1 else []


def source_and_target_scores(
    trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> dict[str, list[list[str | float]]]:
    """Return the dev scores of source and target languages; empty if the search was not for both.

    Returns:
        `front`: the students that no other beats in both scores, whatever else was searched for; `dominated`: the other
        students; `teacher`: the teachers. For each [name, source, target], in percent.
    """
    score_name = common_score_name([*teachers, *trials])
    if any(objectives.keys().isdisjoint(figure.accepted_names(score_name)) for figure in (DEV, TARGET_DEV)):
        return {}
    both: Directions = {figure.full_name(score_name): "max" for figure in (DEV, TARGET_DEV)}
    front = sorted(pareto_front(trials, both), key=lambda trial: DEV.read(trial) or 0.0)
    numbers = {trial.number for trial in front}
    dominated = [trial for trial in candidates(trials, both) if trial.number not in numbers]
    groups: dict[str, Sequence[TrialOrTeacher]] = {
        "dominated": dominated,
        "front": front,
        "teacher": teachers,
    }
    return {
        group: [
            [f"{model.number:02d}" if isinstance(model, Trial) else model.name, *_percents(model)]
            for model in scored
            if DEV.read(model) is not None and TARGET_DEV.read(model) is not None
        ]
        for group, scored in groups.items()
    }


def most_important(shares: Importances, scored: Sequence[TrialOrTeacher]) -> PlainObject | None:
    """Return `settings`, the most important last, and `shares`: the percentages of each objective. None without any."""
    if not shares:
        return None
    total: Counter[str] = Counter()
    for by_setting in shares.values():
        total.update(by_setting)
    settings = [name for name, _ in total.most_common(MOST_SETTINGS)][::-1]
    figures, label = selectable_figures(common_score_name(scored)), common_score_label(scored)
    percentages = {}
    for objective, by_setting in shares.items():
        figure = figures.get(objective)
        heading = figure.heading.format(label=label) if figure and figure.score else objective
        percentages[heading] = [round(100 * by_setting.get(name, 0.0), 1) for name in settings]
    return {"settings": settings, "shares": percentages}


def _percents(scored: TrialOrTeacher) -> list[float]:
    return [round(100 * (figure.read(scored) or 0.0), 2) for figure in (DEV, TARGET_DEV)]
