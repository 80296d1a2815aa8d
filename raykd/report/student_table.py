"""The table of the HTML page: teachers, the front, and all other trials, which the page hides until asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from raykd.figures.results import GROUPS, Group, Part
from raykd.figures.table import (
    DEV,
    TARGET,
    TARGET_DEV,
    TEST,
    Directions,
    Figure,
    cost_columns,
    language_values,
    read_of_any,
    scores_of,
)
from raykd.figures.trial import Scored, Teacher, Trial, score_label_of, score_name_of, targets_of
from raykd.report.front_rows import FrontRow
from raykd.report.language_scores import PARTS
from raykd.report.readable_numbers import FORMS, LANGUAGES_SD, change, gain, percent, shown, spread
from raykd.report.terminal_table import languages_of

STATES = {"PRUNED": "stopped early", "FAILED": "failed", "RUNNING": "running"}


class Cell(NamedTuple):
    """What is shown, and what the column sorts by."""

    text: str = ""
    value: float | str | None = None


@dataclass(frozen=True)
class Line:
    """One row of the table, and how it looks."""

    scored: Scored
    css: str
    row: FrontRow | None = None
    measured: bool = True
    """Whether all that the front is chosen by is known of it."""

    @property
    def trial(self) -> Trial | None:
        """The trial; None for a teacher."""
        return self.scored if isinstance(self.scored, Trial) else None

    @property
    def number(self) -> int | None:
        """The number of a student that can be chosen."""
        return self.trial.number if self.trial and self.trial.state == "COMPLETE" else None


@dataclass(frozen=True)
class Column:
    """One column; `css` "text" aligns left, "on-dev" and "on-test" show it for that part only."""

    heading: str
    cell: Callable[[Line], Cell]
    css: str = ""
    marked: bool = False
    """Whether a student of the front has its marker in it."""


def table_lines(
    trials: Sequence[Trial], rows: Sequence[FrontRow], teachers: Sequence[Teacher], measured: Collection[int]
) -> Iterator[Line]:
    """All rows from above to below. `measured`: the numbers of the trials that compete."""
    yield from (Line(teacher, "teacher") for teacher in teachers)
    yield from (Line(member, "quiet") for teacher in teachers for member in teacher.members)
    yield from (Line(row.trial, "front", row) for row in rows)
    standing = {row.trial.number for row in rows}
    for trial in sorted(trials, key=lambda trial: trial.number):
        if trial.number not in standing:
            yield Line(trial, "quiet", measured=trial.number in measured)


def table_columns(scored: Sequence[Scored], objectives: Directions) -> list[Column]:
    """The columns from left to right, for a table of `scored`; each of `objectives` has one."""
    return [
        Column(
            "#", lambda line: Cell(f"{line.trial.number:02d}", line.trial.number) if line.trial else Cell()
        ),
        Column("student", lambda line: _text(line.trial.shape if line.trial else line.scored.name), "text"),
        Column(
            "learnt by",
            lambda line: _text(line.trial.method if line.trial else "teacher"),
            "text",
            marked=True,
        ),
        *(column for part in PARTS for column in _score_columns(part, scored)),
        *(Column(figure.heading or figure.name, _cost(figure)) for figure in cost_columns(objectives)),
        # Last: there may be dozens.
        *_language_columns(scored),
        Column("", lambda line: _text(_state(line)), "text"),
    ]


def _score_columns(part: Part, scored: Sequence[Scored]) -> Iterator[Column]:
    """Means with their spreads over languages, the scores beside them, and what distillation gained."""
    css, label = f"on-{part}", score_label_of(scored)
    sources, targets = languages_of(scored), targets_of(scored)
    if part == "dev":
        # Dev has no target languages where nothing else is asked for: choosing on them would not be zero-shot.
        means = [(DEV, DEV.heading, sources)]
        means += [(TARGET_DEV, TARGET_DEV.heading, [])] if read_of_any(TARGET_DEV, scored) else []
    else:
        means = [(TEST, f"{TEST.heading}, source" if targets else TEST.heading, sources)]
        means += [(TARGET, TARGET.heading, targets)] if targets else []
    for figure, heading, languages in means:
        yield Column(heading.format(label=label), _mean(figure), css)
        if len(languages) > 1:
            sd_heading = f"{TARGET.heading} sd" if figure is TARGET else LANGUAGES_SD
            yield Column(sd_heading, _languages_sd(figure), css)
    if part == "test" and targets:
        yield from (Column(f"{group} vs teacher", _changed(group), css) for group in GROUPS)
    for figure in scores_of(score_name_of(scored), targets=bool(targets), among=scored):
        if figure.beside and figure.part == part:
            yield Column(figure.heading, _mean(figure), css)
    yield Column("vs gold", _gained(part), f"{css} gain")


def _language_columns(scored: Sequence[Scored]) -> Iterator[Column]:
    sources, targets = languages_of(scored), targets_of(scored)
    # Those of test are of source and target languages alike.
    for figure in scores_of(score_name_of(scored), targets=False, among=scored):
        for language in sources if figure.part == "dev" else [*sources, *targets]:
            heading = f"{language} {figure.short}".rstrip()
            yield Column(heading, _in_language(figure, language), f"on-{figure.part}")


def _mean(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        score = line.scored.scores.get(*figure.score) if figure.score else None
        # A spread of seeds is written in points.
        over = spread(score and score.sd) if figure.form == DEV.form else ""
        return Cell(FORMS[figure.form](score and score.mean) + over, score and score.mean)

    return cell


def _languages_sd(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        score = line.scored.scores.get(*figure.score) if figure.score else None
        return Cell(percent(score.languages_sd), score.languages_sd) if score else Cell()

    return cell


def _changed(group: Group) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        fraction = line.row and line.row.change(group)
        return Cell() if fraction is None else Cell(change(fraction), fraction)

    return cell


def _gained(part: Part) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        difference = line.row and line.row.gain(part)
        return Cell() if difference is None else Cell(gain(difference), difference)

    return cell


def _in_language(figure: Figure, language: str) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = language_values(figure, line.scored).get(language)
        return Cell(FORMS[figure.form](value), value)

    return cell


def _cost(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = figure.read(line.scored)
        return Cell() if value is None else Cell(shown(figure, line.scored), value)

    return cell


def _text(text: str) -> Cell:
    return Cell(text, text)


def _state(line: Line) -> str:
    if line.trial is None or line.row is not None:
        return ""
    if line.trial.role == "baseline" and line.trial.state == "COMPLETE":
        return "gold baseline"
    return STATES.get(line.trial.state, "" if line.measured else "not measured")
