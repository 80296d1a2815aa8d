"""The front for the terminal and, in Markdown, for the tracking server's pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from raykd.figures.results import Group
from raykd.figures.table import (
    DEV,
    OBJECTIVES,
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
from raykd.report.cost_notes import cost_notes
from raykd.report.findings import GOOD_ENOUGH, infeasible, judge, most_missed, without_front
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.readable_numbers import (
    LANGUAGES_SD,
    NONE,
    apart,
    change,
    gain,
    percent,
    share,
    shown,
    spread,
)

LANGUAGES = 5
"""The number of the columns of languages, which are left out first."""
MARKDOWN_LEFT_OUT = 3
"""Columns from this number on are left out in Markdown: MLflow gives a description half of its page."""


@dataclass(frozen=True)
class Column:
    """One column: how the cells of a student (or its baseline) and a teacher read, and when it is left out."""

    heading: str
    student: Callable[[Trial], str]
    teacher: Callable[[Teacher], str] = lambda teacher: ""
    row: Callable[[FrontRow], str] | None = None
    """For what depends on both the student and its baseline or teacher."""
    left_out: int = 0
    """Columns with higher numbers are left out first when the terminal is narrow; 0 always stays."""
    justify: str = "right"


def columns(
    languages: Sequence[str],
    *,
    name: str,
    label: str,
    targets: bool,
    several: bool,
    alike: bool = False,
    dev_targets: bool = False,
    among: Sequence[Scored] = (),
    objectives: Directions = OBJECTIVES,
) -> list[Column]:
    """The columns from left to right, one for each of `languages` among them.

    `name` is the score's, `label` what people call it; with `targets` the test's two means, over source and target
    languages, are side by side; `several`: whether means are over several languages, which have a spread;
    `dev_targets`: whether dev of target languages was read; `alike`: whether several students have one shape, so that
    only "learnt by" and "#" distinguish them; `among`: what the rows are of; `objectives`: of which each has a column.
    """
    dev, test, target = (figure.heading.format(label=label) for figure in (DEV, TEST, TARGET))
    tests = {f"{test}, source": TEST, target: TARGET} if targets else {test: TEST}
    more = [figure for figure in scores_of(name, targets=targets, among=among) if figure.beside]
    return [
        Column("#", lambda t: f"{t.number:02d}", left_out=0 if alike else 1),
        Column("student", lambda t: t.shape, lambda t: t.name, justify="left"),
        Column(
            "learnt by", lambda t: t.method, lambda t: "teacher", left_out=1 if alike else 2, justify="left"
        ),
        Column(dev, _dev, _dev),
        *([Column(LANGUAGES_SD, _languages_sd, _languages_sd, left_out=2)] if several else []),
        *([_column(TARGET_DEV, TARGET_DEV.heading, left_out=1)] if dev_targets else []),
        *(
            _language(figure, language)
            for figure in (DEV, *more)
            for language in languages
            if figure.part == "dev"
        ),
        Column("of teacher", lambda t: "", row=_kept, left_out=4),
        Column("vs gold", lambda t: "", row=lambda row: gain(row.gain("dev")), left_out=1),
        *(_column(figure, heading, left_out=0) for heading, figure in tests.items()),
        *([_changed("source"), _changed("target")] if targets else []),
        *(_column(figure, figure.heading, left_out=2) for figure in more),
        *(
            _column(figure, figure.short or figure.heading or figure.name, left_out=figure.column or 0)
            for figure in cost_columns(objectives)
        ),
    ]


def _changed(group: Group) -> Column:
    return Column(f"{group} vs teacher", lambda t: "", row=lambda row: change(row.change(group)), left_out=3)


def _column(figure: Figure, heading: str, *, left_out: int) -> Column:
    def of_teacher(teacher: Teacher) -> str:
        return "" if figure.read(teacher) is None else shown(figure, teacher)

    return Column(heading, lambda trial: shown(figure, trial), of_teacher, left_out=left_out)


@dataclass(frozen=True)
class FrontTable:
    """Renders with rich: teachers first, then the front, the fastest first, each above its gold baseline.

    On a narrow terminal the least important columns are left out, so that no cell is cut; before one goes that says
    what a student is or is worth, headings are stacked.
    """

    title: str
    rows: Sequence[FrontRow]
    teachers: Sequence[Teacher]
    best: int | None = None
    """The number of the trial to point out, as the one chosen."""
    none: str = ""
    """Why there are no rows."""
    objectives: Directions = field(default_factory=lambda: OBJECTIVES)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scored = [*self.teachers, *(row.trial for row in self.rows)]
        languages, targets = languages_of(scored), bool(targets_of(scored))
        alike = len({row.trial.shape for row in self.rows}) < len(self.rows)
        some = columns(
            languages, name=score_name_of(scored), label=score_label_of(scored), targets=targets,
            several=len(languages) > 1, alike=alike, dev_targets=read_of_any(TARGET_DEV, scored), among=scored,
            objectives=self.objectives,
        )  # fmt: skip
        table, stacked = self._table(some), False
        while Measurement.get(console, options.update(max_width=1000), table).maximum > options.max_width:
            least = max(some, key=lambda column: column.left_out)
            if least.left_out <= 1 and not stacked:
                table, stacked = self._table(some, stacked=True), True
                continue
            if least.left_out == 0:
                break
            # Of equally important ones the rightmost goes first; languages go together: one alone says little.
            last = [column for column in some if column.left_out == least.left_out]
            gone = last if least.left_out == LANGUAGES else last[-1:]
            some = [column for column in some if column not in gone]
            table = self._table(some, stacked=stacked)
        yield table

    def _table(self, some: Sequence[Column], *, stacked: bool = False) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, title=self.title, title_justify="left", title_style="bold"
        )
        for column in some:
            heading = column.heading.replace(" ", "\n") if stacked else column.heading
            table.add_column(heading, justify=column.justify, no_wrap=True)  # type: ignore[arg-type]
        for teacher in self.teachers:
            table.add_row(*(column.teacher(teacher) for column in some), style="yellow")
            for member in teacher.members:
                table.add_row(*(column.teacher(member) for column in some), style="dim yellow")
        table.add_section()
        for row in self.rows:
            mark = "bold green" if row.trial.number == self.best else "bold"
            table.add_row(*(_student_cell(column, row) for column in some), style=mark)
            if row.baseline is not None:
                table.add_row(*(_baseline_cell(column, row.baseline) for column in some), style="dim")
        if not self.rows:
            table.add_row(*(self.none if c.heading == "student" else "" for c in some), style="dim")
        return table


def front_table(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    sweep: str = "",
    best: int | None = None,
    objectives: Directions = OBJECTIVES,
) -> FrontTable:
    """The front of `trials` as a rich renderable. `best`: the number of a trial to point out."""
    trials = list(trials)
    rows = front_rows(trials, teachers, objectives=objectives)
    return FrontTable(
        headline(trials, rows, sweep=sweep), rows, teachers, best, without_front(trials), objectives
    )


def headline(trials: Sequence[Trial], rows: Sequence[FrontRow], *, sweep: str = "") -> str:
    """One sentence of numbers: `wikiann: 11 of 26 students on the front`, and what was stopped, failed or
    misses a constraint."""
    searched = [trial for trial in trials if trial.role == "search"]
    complete = sum(trial.state == "COMPLETE" for trial in searched)
    parts = [f"{len(rows)} of {complete} student{'s' * (complete != 1)} on the front"]
    for state, word in (("PRUNED", "stopped early"), ("FAILED", "failed"), ("RUNNING", "running")):
        number = sum(trial.state == state for trial in searched)
        if number:
            parts.append(f"{number} {word}")
    if missing := infeasible(searched):
        source, number = most_missed(missing)
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
    """The verdict and the front as a narrow Markdown table under its headline, with what to know of its figures; of
    baselines it shows only the gain over them."""
    trials = list(trials)
    judged = judge(trials, teachers, objectives=objectives, dev_labels=dev_labels)
    rows = judged.rows
    scored = [*teachers, *trials]
    label = score_label_of(scored)
    several = len(languages_of(scored)) > 1
    all_columns = columns(
        [],
        name=score_name_of(scored),
        label=label,
        targets=bool(targets_of(scored)),
        several=several,
        dev_targets=read_of_any(TARGET_DEV, scored),
        objectives=objectives,
    )
    some = [column for column in all_columns if column.left_out < MARKDOWN_LEFT_OUT]
    lines = [
        f"**{judged.verdict.text}**",
        "",
        f"**{headline(trials, rows, sweep=sweep)}** ({label} in percent, selected on dev)",
        "",
        _line(column.heading for column in some),
        _line("---" if column.justify == "left" else "---:" for column in some),
        *(_line(column.teacher(teacher) for column in some) for teacher in teachers),
    ]
    lines += [_line(_student_cell(column, row) for column in some) for row in rows]
    notes = cost_notes([row.trial for row in rows], teachers)
    lines += ["", *(f"- {finding}" for finding in (*judged.findings, *notes))]
    return "\n".join(lines)


def languages_of(scored: Iterable[Scored]) -> list[str]:
    """The source languages, in the order in which they occur."""
    scores = (each.scores.get("dev", "source") for each in scored)
    return list(dict.fromkeys(language for score in scores if score for language in score.by_language))


def _line(cells: Iterable[str | Text]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _student_cell(column: Column, row: FrontRow) -> str | Text:
    cell = column.row(row) if column.row else column.student(row.trial)
    if column.heading == "vs gold" and cell != NONE:
        return Text(cell, style="red" if cell.startswith("-") else "green")
    return cell


def _baseline_cell(column: Column, baseline: Trial) -> str:
    return "└ same, gold only" if column.heading == "student" else column.student(baseline)


def _dev(scored: Scored) -> str:
    score = scored.scores.get("dev")
    return shown(DEV, scored) + spread(score and score.sd)


def _languages_sd(scored: Scored) -> str:
    score = scored.scores.get("dev")
    return percent(score and score.languages_sd)


def _language(figure: Figure, language: str) -> Column:
    def cell(scored: Scored) -> str:
        return percent(language_values(figure, scored).get(language))

    return Column(f"{language} {figure.short}".rstrip(), cell, cell, left_out=LANGUAGES)


def _kept(row: FrontRow) -> str:
    """With decimals where a whole number would hide that it is below `GOOD_ENOUGH`."""
    return apart(row.kept, GOOD_ENOUGH)[0] if row.kept and row.kept < GOOD_ENOUGH else share(row.kept)
