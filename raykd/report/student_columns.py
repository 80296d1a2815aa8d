"""Columns for tables of students and teachers, on the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raykd.figures.figure_values import has_values, language_values
from raykd.figures.results import GROUPS, Group, Part
from raykd.figures.table import DEV, TARGET, TARGET_DEV, TEST, Directions, Figure, cost_columns, score_figures
from raykd.figures.trial import Trial, TrialOrTeacher, common_score_label, common_score_name, target_languages
from raykd.report.front_rows import FrontRow
from raykd.report.readable_numbers import FORMS, NONE, change, gain, percent, spread

GAIN = "vs gold"
"""Heading for the gain from distillation over gold labels alone."""


@dataclass(frozen=True)
class Line:
    """A row of a table: a teacher, or a student; a student of the front has more figures."""

    scored: TrialOrTeacher
    row: FrontRow | None = None
    css: str = ""
    """CSS class on the page."""
    measured: bool = True
    """True if all objectives of the front are known."""

    @property
    def trial(self) -> Trial | None:
        """The trial; None for a teacher."""
        return self.scored if isinstance(self.scored, Trial) else None

    @property
    def number(self) -> int | None:
        """Number of a student for selection on the page; None for all others."""
        return self.trial.number if self.trial and self.trial.state == "COMPLETE" else None


@dataclass(frozen=True)
class Column:
    """A column: the value to sort by, and its form."""

    heading: str
    value: Callable[[Line], float | str | None]
    form: Callable[[Any], str] = str
    missing: str = ""
    """Text for a missing value."""
    spread_of: Figure | None = None
    """Score whose standard deviation over seeds, in points, follows the value; None for no spread."""
    css: str = ""
    """CSS classes on the page: "text" aligns left, "on-dev" and "on-test" show the column for that part only."""
    front_only: bool = False
    """True if only students of the front have a value."""
    left_out: int = 0
    """Order of removal on a narrow terminal: higher numbers go first, 0 always stays."""

    def text(self, line: Line) -> str:
        """Return the cell of a line."""
        value = self.value(line)
        score = self.spread_of and self.spread_of.score and line.scored.scores.get(*self.spread_of.score)
        return (self.missing if value is None else self.form(value)) + spread(score.sd if score else None)

    def on_terminal(self, left_out: int, heading: str = "") -> Column:
        """Return the column with an order of removal on a narrow terminal, and a shorter heading if given."""
        return replace(self, left_out=left_out, heading=heading or self.heading)


NUMBER = Column("#", lambda line: line.trial and line.trial.number, lambda number: f"{number:02d}")
STUDENT = Column("student", lambda line: line.trial.shape if line.trial else line.scored.name, css="text")
LEARNT_BY = Column("learnt by", lambda line: line.trial.method if line.trial else "teacher", css="text")


class StudentColumns:
    """Columns of scores and costs for a table of `scored`.

    Columns of several figures or languages come as lists, empty if there are none.
    """

    def __init__(self, scored: Sequence[TrialOrTeacher], objectives: Directions):
        self._label, self._scored = common_score_label(scored), scored
        self.sources, self.targets = source_languages(scored), target_languages(scored)
        scores = score_figures(common_score_name(scored), targets=bool(self.targets), among=scored)
        self.beside = [figure for figure in scores if figure.metric]
        """The scores beside the task's."""
        self.costs = cost_columns(objectives)

    def mean(self, figure: Figure, *, spreads: bool = True) -> Column:
        """Return the mean of a score, with the spread over seeds if the score is in points."""
        heading = f"{figure.heading}, source" if figure is TEST and self.targets else figure.heading
        return Column(
            heading.format(label=self._label),
            lambda line: figure.read(line.scored),
            FORMS[figure.form],
            missing=NONE,
            spread_of=figure if spreads and figure.form == DEV.form else None,
            css=f"on-{figure.part}",
        )

    def target_means(self, part: Part, *, spreads: bool = True) -> list[Column]:
        """Return the mean over target languages; for dev only if it was computed."""
        figure = TARGET_DEV if part == "dev" else TARGET
        return [self.mean(figure, spreads=spreads)] if has_values(figure, self._scored) else []

    def languages_sd(self, figure: Figure) -> list[Column]:
        """Return the standard deviation of a score over languages (± in other columns is over seeds)."""

        def value(line: Line) -> float | None:
            score = line.scored.scores.get(*figure.score) if figure.score else None
            return score and score.languages_sd

        target = figure is TARGET
        heading = f"{TARGET.heading} sd" if target else "languages sd"
        column = Column(heading, value, percent, css=f"on-{figure.part}")
        return [column] if len(self.targets if target else self.sources) > 1 else []

    def by_language(self, figure: Figure) -> list[Column]:
        """Return one column per language; on test for source and target languages."""

        def column(name: str) -> Column:
            return Column(
                f"{name} {figure.short}".rstrip(),
                lambda line: language_values(figure, line.scored).get(name),
                FORMS[figure.form],
                missing=NONE,
                css=f"on-{figure.part}",
            )

        return list(map(column, self.sources if figure.part == "dev" else [*self.sources, *self.targets]))

    def gain(self, part: Part) -> Column:
        """Return the gain from distillation over gold labels alone."""
        css = f"on-{part} gain"
        return Column(GAIN, lambda line: line.row and line.row.gain(part), gain, css=css, front_only=True)

    def changes(self) -> list[Column]:
        """Return the relative differences to the teacher's scores, for source and target languages."""

        def column(group: Group) -> Column:
            def value(line: Line) -> float | None:
                return line.row and line.row.change(group)

            return Column(f"{group} vs teacher", value, change, css="on-test", front_only=True)

        return list(map(column, GROUPS)) if self.targets else []

    def cost(self, figure: Figure) -> Column:
        """Return the column of a cost."""
        heading = figure.heading or figure.name
        return Column(heading, lambda line: figure.read(line.scored), FORMS[figure.form])


def source_languages(scored: Iterable[TrialOrTeacher]) -> list[str]:
    """Return the source languages in the order of first occurrence."""
    scores = (model.scores.get("dev", "source") for model in scored)
    return list(dict.fromkeys(language for score in scores if score for language in score.by_language))
