"""The table of the HTML page: teachers, the front, and all other trials, hidden at first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from raykd.figures.results import Part
from raykd.figures.table import DEV, TARGET, TEST, Directions
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher
from raykd.report.front_rows import FrontRow
from raykd.report.language_scores import PARTS
from raykd.report.stopped_trials import STATES
from raykd.report.student_columns import LEARNT_BY, NUMBER, STUDENT, Column, Line, StudentColumns


def table_lines(
    trials: Sequence[Trial], rows: Sequence[FrontRow], teachers: Sequence[Teacher], measured: Collection[int]
) -> Iterator[Line]:
    """Return all rows from top to bottom.

    Args:
        trials: Trials to list.
        rows: Students of the front.
        teachers: Teachers of the sweep.
        measured: Numbers of the trials that compete for the front.
    """
    yield from (Line(teacher, css="teacher") for teacher in teachers)
    yield from (Line(member, css="quiet") for teacher in teachers for member in teacher.members)
    yield from (Line(row.trial, row, "front") for row in rows)
    on_front = {row.trial.number for row in rows}
    for trial in sorted(trials, key=lambda trial: trial.number):
        if trial.number not in on_front:
            yield Line(trial, css="quiet", measured=trial.number in measured)


def table_columns(scored: Sequence[TrialOrTeacher], objectives: Directions) -> list[Column]:
    """Return the columns from left to right, among them one for each objective of the front."""
    columns = StudentColumns(scored, objectives)
    figures = (
        DEV,
        TEST,
        *(figure for figure in columns.beside if figure.score and figure.score[1] == "source"),
    )
    return [
        NUMBER,
        STUDENT,
        LEARNT_BY,
        *(column for part in PARTS for column in _score_columns(part, columns)),
        *map(columns.cost, columns.costs),
        # Languages come last: there may be dozens.
        *(column for figure in figures for column in columns.by_language(figure)),
        Column("", _state, css="text"),
    ]


def _score_columns(part: Part, columns: StudentColumns) -> Iterator[Column]:
    """Means with spreads over languages, the scores beside them, and the gain from distillation."""
    figure_of_part = DEV if part == "dev" else TEST
    yield columns.mean(figure_of_part)
    yield from columns.languages_sd(figure_of_part)
    yield from columns.target_means(part)
    if part == "test":
        yield from columns.languages_sd(TARGET)
        yield from columns.changes()
    yield from (columns.mean(figure) for figure in columns.beside if figure.part == part)
    yield columns.gain(part)


def _state(line: Line) -> str:
    if line.trial is None or line.row is not None:
        return ""
    if line.trial.role == "baseline" and line.trial.state == "COMPLETE":
        return "gold baseline"
    return STATES.get(line.trial.state, "" if line.measured else "not measured")
