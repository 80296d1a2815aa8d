"""The front as a table for the terminal and, in Markdown, for the tracking server's pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from raykd.figures.table import DEV, OBJECTIVES, TEST, Directions
from raykd.figures.trial import Teacher, Trial, TrialOrTeacher, common_score_label
from raykd.pluralise import pluralise
from raykd.report.cost_notes import cost_notes
from raykd.report.findings import empty_front_reason, infeasible_students, judge, most_missed_constraint
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.labels_alone import GOOD_ENOUGH
from raykd.report.markdown import markdown_table
from raykd.report.readable_numbers import NONE, share, tell_apart
from raykd.report.stopped_trials import STATES
from raykd.report.student_columns import GAIN, LEARNT_BY, NUMBER, STUDENT, Column, Line, StudentColumns

LANGUAGES = 5
"""Order of removal of the columns of languages, which go first."""
MARKDOWN_LEFT_OUT = 3
"""Columns with this order of removal or more are left out in Markdown: MLflow gives a description half of its page."""


def terminal_columns(
    scored: Sequence[TrialOrTeacher], objectives: Directions, *, alike: bool = False
) -> list[Column]:
    """Return the columns from left to right, among them one for each objective of the front.

    Args:
        scored: Teachers and students of the table.
        objectives: Objectives of the front.
        alike: Several students have the same shape, so that only "learnt by" and "#" distinguish them.
    """
    columns = StudentColumns(scored, objectives)
    dev_figures = [DEV, *(figure for figure in columns.beside if figure.part == "dev")]
    return [
        NUMBER.on_terminal(0 if alike else 1),
        STUDENT,
        LEARNT_BY.on_terminal(1 if alike else 2),
        columns.mean(DEV),
        *(column.on_terminal(2) for column in columns.languages_sd(DEV)),
        *(column.on_terminal(1) for column in columns.target_means("dev", spreads=False)),
        *(column.on_terminal(LANGUAGES) for figure in dev_figures for column in columns.by_language(figure)),
        Column(
            "of teacher", lambda line: line.row and line.row.teacher_share, _kept, front_only=True, left_out=4
        ),
        columns.gain("dev").on_terminal(1),
        columns.mean(TEST, spreads=False),
        *columns.target_means("test", spreads=False),
        *(column.on_terminal(3) for column in columns.changes()),
        *(columns.mean(figure, spreads=False).on_terminal(2) for figure in columns.beside),
        *(columns.cost(figure).on_terminal(figure.column or 0, figure.short) for figure in columns.costs),
    ]


@dataclass(frozen=True)
class FrontTable:
    """The front for rich: teachers first, then the students by latency, each above its gold baseline.

    On a narrow terminal the least important columns are left out, so that no cell is cut. Before a column goes that
    names a student or compares it, headings are broken into several lines.
    """

    title: str
    rows: Sequence[FrontRow]
    teachers: Sequence[Teacher]
    best: int | None = None
    """Number of the trial to highlight."""
    none: str = ""
    """Reason why there are no rows."""
    objectives: Directions = field(default_factory=lambda: OBJECTIVES)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scored = [*self.teachers, *(row.trial for row in self.rows)]
        alike = len({row.trial.shape for row in self.rows}) < len(self.rows)
        columns = terminal_columns(scored, self.objectives, alike=alike)
        table, stacked = self._table(columns), False
        while Measurement.get(console, options.update(max_width=1000), table).maximum > options.max_width:
            next_to_go = max(columns, key=lambda column: column.left_out)
            if next_to_go.left_out <= 1 and not stacked:
                table, stacked = self._table(columns, stacked=True), True
                continue
            if next_to_go.left_out == 0:
                break
            # The rightmost of equals goes first. Languages go together: one alone says little.
            last = [column for column in columns if column.left_out == next_to_go.left_out]
            removed = last if next_to_go.left_out == LANGUAGES else last[-1:]
            columns = [column for column in columns if column not in removed]
            table = self._table(columns, stacked=stacked)
        yield table

    def _table(self, columns: Sequence[Column], *, stacked: bool = False) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, title=self.title, title_justify="left", title_style="bold"
        )
        for column in columns:
            heading = column.heading.replace(" ", "\n") if stacked else column.heading
            table.add_column(heading, justify="left" if column.css == "text" else "right", no_wrap=True)
        for teacher in self.teachers:
            table.add_row(*(column.text(Line(teacher)) for column in columns), style="yellow")
            for member in teacher.members:
                table.add_row(*(column.text(Line(member)) for column in columns), style="dim yellow")
        table.add_section()
        for row in self.rows:
            mark = "bold green" if row.trial.number == self.best else "bold"
            table.add_row(*(_student_cell(column, row) for column in columns), style=mark)
            if row.baseline is not None:
                table.add_row(*(_baseline_cell(column, row.baseline) for column in columns), style="dim")
        if not self.rows:
            table.add_row(*(self.none if c.heading == "student" else "" for c in columns), style="dim")
        return table


def front_table(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    sweep: str = "",
    best: int | None = None,
    objectives: Directions = OBJECTIVES,
) -> FrontTable:
    """Return the front as a rich renderable.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        sweep: Name of the sweep, for the title.
        best: Number of a trial to highlight.
        objectives: Objectives of the front.
    """
    trials = list(trials)
    rows = front_rows(trials, teachers, objectives=objectives)
    return FrontTable(
        headline(trials, rows, sweep=sweep), rows, teachers, best, empty_front_reason(trials), objectives
    )


def headline(trials: Sequence[Trial], rows: Sequence[FrontRow], *, sweep: str = "") -> str:
    """Return a sentence of numbers: `wikiann: 11 of 26 students on the front`, and the stopped and failed trials."""
    searched = [trial for trial in trials if trial.role == "search"]
    complete = sum(trial.state == "COMPLETE" for trial in searched)
    parts = [f"{len(rows)} of {pluralise(complete, 'student')} on the front"]
    for state, word in STATES.items():
        number = sum(trial.state == state for trial in searched)
        if number:
            parts.append(f"{number} {word}")
    if missing := infeasible_students(searched):
        source, number = most_missed_constraint(missing)
        parts.append(f"{len(missing)} left out by the constraints, most by {source} ({number})")
    return f"{sweep}: {', '.join(parts)}" if sweep else ", ".join(parts)


def front_markdown(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    sweep: str = "",
    objectives: Directions = OBJECTIVES,
    dev_labels: int | None = None,
) -> str:
    """Return the verdict, the front as a narrow Markdown table, and the findings. Of baselines only the gain is shown.

    Args:
        trials: All trials of the sweep.
        teachers: Its teachers.
        sweep: Name of the sweep.
        objectives: Objectives of the front.
        dev_labels: Number of labels counted by the score on dev; None if unknown.
    """
    trials = list(trials)
    judged = judge(trials, teachers, objectives=objectives, dev_labels=dev_labels)
    rows = judged.rows
    scored = [*teachers, *trials]
    label = common_score_label(scored)
    columns = [
        column for column in terminal_columns(scored, objectives) if column.left_out < MARKDOWN_LEFT_OUT
    ]
    text_columns = [place for place, column in enumerate(columns) if column.css == "text"]
    cells = [[column.text(Line(teacher)) for column in columns] for teacher in teachers]
    cells += [[str(_student_cell(column, row)) for column in columns] for row in rows]
    lines = [
        f"**{judged.verdict.text}**",
        "",
        f"**{headline(trials, rows, sweep=sweep)}** ({label} in percent, selected on dev)",
        "",
        *markdown_table([column.heading for column in columns], cells, left_aligned=text_columns),
    ]
    notes = cost_notes([row.trial for row in rows], teachers)
    lines += ["", *(f"- {finding}" for finding in (*judged.findings, *notes))]
    return "\n".join(lines)


def _student_cell(column: Column, row: FrontRow) -> str | Text:
    cell = _cell(column, Line(row.trial, row))
    if column.heading == GAIN and cell != NONE:
        return Text(cell, style="red" if cell.startswith("-") else "green")
    return cell


def _baseline_cell(column: Column, baseline: Trial) -> str:
    if column is STUDENT:
        return "└ same, gold only"
    return "" if column.front_only else _cell(column, Line(baseline))


def _cell(column: Column, line: Line) -> str:
    return NONE if column.value(line) is None else column.text(line)


def _kept(teacher_share: float) -> str:
    """A share, with decimals if a whole number would hide that it is below `GOOD_ENOUGH`."""
    return tell_apart(teacher_share, GOOD_ENOUGH)[0] if teacher_share < GOOD_ENOUGH else share(teacher_share)
