"""The most important figures of a sweep, one for each tile of the page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from raykd.figures.results import Part
from raykd.figures.table import BYTES, LATENCY, SPEEDUP
from raykd.figures.trial import (
    Teacher,
    Trial,
    TrialOrTeacher,
    common_score_label,
    target_languages,
    teacher_score,
)
from raykd.pluralise import pluralise
from raykd.report.dev_scores import dev_score
from raykd.report.front_rows import FrontRow
from raykd.report.labels_alone import GOOD_ENOUGH
from raykd.report.readable_numbers import costs_in_words, gain, main_costs, percent


class KeyFigure(NamedTuple):
    """A figure, its subject, and a line below."""

    value: str
    text: str
    detail: str


def key_figures(rows: Sequence[FrontRow], teachers: Sequence[Teacher], part: Part) -> list[KeyFigure]:
    """Return the figures of the tiles for one part.

    They are the teacher, the best student, the fastest that is good enough, and the gain over gold labels; unknown ones
    are left out. Students are chosen on dev for both parts.
    """
    scored = [*teachers, *(row.trial for row in rows)]
    score = f"{part} {common_score_label(scored)}"
    means = f"{score}, source · target" if part == "test" and target_languages(scored) else score
    figures = []
    reference = teacher_score(teachers, part)
    if reference is not None:
        target_means = [teacher.scores.mean("test", "target") for teacher in teachers]
        target = max((mean for mean in target_means if mean), default=None)
        best = max(teachers, key=lambda teacher: teacher.scores.mean(part) or 0)
        value = _with_target(reference, target, part)
        figures.append(KeyFigure(value, f"teacher, {means}", _costs(best)))
    if rows:
        student = max((row.trial for row in rows), key=dev_score)
        value = _with_target(student.scores.mean(part), student.scores.mean("test", "target"), part)
        figures.append(KeyFigure(value, f"best student, {means}", _number_and_costs(student)))
    good = [row.trial for row in rows if row.teacher_share is not None and row.teacher_share >= GOOD_ENOUGH]
    if good:
        # The latency stands in for a speedup that is unknown because the teacher's latency is.
        speed = next(iter(costs_in_words(good[0], [SPEEDUP, LATENCY])), "")
        text = f"with {GOOD_ENOUGH:.0%} of the teacher’s dev {common_score_label(scored)}"
        figures.append(KeyFigure(speed, text, _number_and_costs(good[0])))
    gains = [gained for row in rows if (gained := row.gain(part)) is not None]
    if gains:
        students = f"median of {pluralise(len(gains), 'student')} on the front"
        figures.append(KeyFigure(f"{gain(median(gains))} {score}", "over gold labels alone", students))
    return figures


def _with_target(source: float | None, target: float | None, part: Part) -> str:
    """The mean of source languages; on test also that of target languages, if there is one."""
    return percent(source) + ("" if part == "dev" or target is None else f" · {percent(target)}")


def _number_and_costs(trial: Trial) -> str:
    return f"#{trial.number:02d} · {_costs(trial)}"


def _costs(scored: TrialOrTeacher) -> str:
    costs = [main_costs(scored), *costs_in_words(scored, [BYTES])]
    # A line may break after a cost, but not between a number and its unit.
    return " · ".join(costs).replace(" ", "\u00a0").replace("·\u00a0", "· ")
