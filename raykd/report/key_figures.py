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
from raykd.report.findings import GOOD_ENOUGH
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import costs_in_words, gain, main_costs, percent


class KeyFigure(NamedTuple):
    """A figure, its subject, and a line below."""

    value: str
    text: str
    detail: str


def key_figures(rows: Sequence[FrontRow], teachers: Sequence[Teacher], part: Part) -> list[KeyFigure]:
    """Return the figures of the tiles for one part.

    They are the teacher, the best student, the fastest good enough, and the gain over gold labels. Students are chosen
    on dev for both parts.
    """
    scored = [*teachers, *(row.trial for row in rows)]
    score = f"{part} {common_score_label(scored)}"
    means = f"{score}, source · target" if part == "test" and target_languages(scored) else score
    figures = []
    reference = teacher_score(teachers, part)
    if reference is not None:
        target = max((mean for t in teachers if (mean := t.scores.mean("test", "target"))), default=None)
        best = max(teachers, key=lambda teacher: teacher.scores.mean(part) or 0)
        figures.append(KeyFigure(_both(reference, target, part), f"teacher, {means}", _sizes(best)))
    if rows:
        student = max((row.trial for row in rows), key=lambda trial: trial.scores.mean("dev") or 0)
        value = _both(student.scores.mean(part), student.scores.mean("test", "target"), part)
        figures.append(KeyFigure(value, f"best student, {means}", _cost(student)))
    good = [row.trial for row in rows if row.teacher_share is not None and row.teacher_share >= GOOD_ENOUGH]
    if good:
        # Without a teacher's latency to compare with, in milliseconds.
        fast = next(iter([*costs_in_words(good[0], [SPEEDUP]), *costs_in_words(good[0], [LATENCY])]), "")
        text = f"with {GOOD_ENOUGH:.0%} of the teacher’s dev {common_score_label(scored)}"
        figures.append(KeyFigure(fast, text, _cost(good[0])))
    gains = [gained for row in rows if (gained := row.gain(part)) is not None]
    if gains:
        students = f"median of {pluralise(len(gains), 'student')} on the front"
        figures.append(KeyFigure(f"{gain(median(gains))} {score}", "over gold labels alone", students))
    return figures


def _both(source: float | None, target: float | None, part: Part) -> str:
    """A mean; on test the mean of target languages is added, if there is one."""
    return percent(source) + ("" if part == "dev" or target is None else f" · {percent(target)}")


def _cost(trial: Trial) -> str:
    return f"#{trial.number:02d} · {_sizes(trial)}"


def _sizes(scored: TrialOrTeacher) -> str:
    costs = [main_costs(scored), *costs_in_words(scored, [BYTES])]
    return " · ".join(costs).replace(" ", "\u00a0").replace("·\u00a0", "· ")
