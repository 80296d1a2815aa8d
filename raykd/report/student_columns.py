"""The columns that tables of students and teachers have, on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raykd.figures.results import GROUPS, Group, Part
from raykd.figures.table import (
    DEV,
    TARGET,
    TARGET_DEV,
    TEST,
    Directions,
    Figure,
    cost_columns,
    has_values,
    language_values,
    score_figures,
)
from raykd.figures.trial import Trial, TrialOrTeacher, common_score_label, common_score_name, target_languages
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import FORMS, NONE, change, gain, percent, spread

GAIN = "vs gold"
"""The heading of what distillation gains over gold labels alone."""


@dataclass(frozen=True)
class Line:
    """One row of a table: a teacher, or a student, which on the front has more to be shown."""

    scored: TrialOrTeacher
    row: FrontRow | None = None
    css: str = ""
    """How it looks on the page."""
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
    """One column: the value by which it sorts, and how that is written."""

    heading: str
    value: Callable[[Line], float | str | None]
    form: Callable[[Any], str] = str
    missing: str = ""
    """What stands where there is no value."""
    spread: Figure | None = None
    """The score whose spread over seeds follows the value, in points."""
    css: str = ""
    """On the page: "text" aligns left, "on-dev" and "on-test" show it for that part only."""
    front_only: bool = False
    """Whether it is of students of the front alone."""
    left_out: int = 0
    """Columns with higher numbers are left out first when the terminal is narrow; 0 always stays."""

    def text(self, line: Line) -> str:
        """The cell of a line."""
        value = self.value(line)
        score = self.spread and self.spread.score and line.scored.scores.get(*self.spread.score)
        return (self.missing if value is None else self.form(value)) + spread(score.sd if score else None)

    def on_terminal(self, left_out: int, heading: str = "") -> Column:
        """The same on a terminal, where it has a place among those that are left out."""
        return replace(self, left_out=left_out, heading=heading or self.heading)


NUMBER = Column("#", lambda line: line.trial and line.trial.number, lambda number: f"{number:02d}")
STUDENT = Column("student", lambda line: line.trial.shape if line.trial else line.scored.name, css="text")
LEARNT_BY = Column("learnt by", lambda line: line.trial.method if line.trial else "teacher", css="text")


class StudentColumns:
    """The columns of scores and costs of a table of `scored`; those of several figures or languages as lists, empty
    where there are none.
    """

    def __init__(self, scored: Sequence[TrialOrTeacher], objectives: Directions):
        self._label, self._scored = common_score_label(scored), scored
        self.sources, self.targets = source_languages(scored), target_languages(scored)
        scores = score_figures(common_score_name(scored), targets=bool(self.targets), among=scored)
        self.beside = [figure for figure in scores if figure.beside]
        """The scores beside the task's."""
        self.costs = cost_columns(objectives)

    def mean(self, figure: Figure, *, spreads: bool = True) -> Column:
        """The mean of a score, with the spread of its seeds where that is in points too."""
        heading = f"{figure.heading}, source" if figure is TEST and self.targets else figure.heading
        seeds = figure if spreads and figure.form == DEV.form else None
        return Column(
            heading.format(label=self._label), lambda line: figure.read(line.scored), FORMS[figure.form], NONE,
            seeds, f"on-{figure.part}",
        )  # fmt: skip

    def target_means(self, part: Part, *, spreads: bool = True) -> list[Column]:
        """The mean over target languages; that of dev where it was read."""
        figure = TARGET_DEV if part == "dev" else TARGET
        return [self.mean(figure, spreads=spreads)] if has_values(figure, self._scored) else []

    def languages_sd(self, figure: Figure) -> list[Column]:
        """The standard deviation of a score over several languages; ± is over seeds."""

        def value(line: Line) -> float | None:
            score = line.scored.scores.get(*figure.score) if figure.score else None
            return score and score.languages_sd

        target = figure is TARGET
        heading = f"{TARGET.heading} sd" if target else "languages sd"
        column = Column(heading, value, percent, css=f"on-{figure.part}")
        return [column] if len(self.targets if target else self.sources) > 1 else []

    def by_language(self, figure: Figure) -> list[Column]:
        """A score in each language; on test of source and target languages alike."""

        def column(name: str) -> Column:
            heading, form = f"{name} {figure.short}".rstrip(), FORMS[figure.form]
            css = f"on-{figure.part}"
            return Column(
                heading, lambda line: language_values(figure, line.scored).get(name), form, NONE, css=css
            )

        return list(map(column, self.sources if figure.part == "dev" else [*self.sources, *self.targets]))

    def gain(self, part: Part) -> Column:
        """What distillation gains over gold labels alone."""
        css = f"on-{part} gain"
        return Column(GAIN, lambda line: line.row and line.row.gain(part), gain, css=css, front_only=True)

    def changes(self) -> list[Column]:
        """By which fractions scores of source and of target languages are above the teacher's."""

        def column(group: Group) -> Column:
            def value(line: Line) -> float | None:
                return line.row and line.row.change(group)

            return Column(f"{group} vs teacher", value, change, css="on-test", front_only=True)

        return list(map(column, GROUPS)) if self.targets else []

    def cost(self, figure: Figure) -> Column:
        """A cost."""
        heading = figure.heading or figure.name
        return Column(heading, lambda line: figure.read(line.scored), FORMS[figure.form])


def source_languages(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """The source languages, in the order in which they occur."""
    scores = (each.scores.get("dev", "source") for each in scored)
    return list(dict.fromkeys(language for score in scores if score for language in score.by_language))
