"""The table of the HTML page: teachers, the front, and all other trials, which the page hides until asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from raykd.figures.results import GROUPS, Group, Part
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
    scores_of,
)
from raykd.figures.trial import Scored, Teacher, Trial
from raykd.report.front_rows import FrontRow
from raykd.report.look import LOOKS, Look
from raykd.report.readable_numbers import FORMS, LANGUAGES_SD, change, gain, percent, shown, spread

Cell = tuple[str, float | str | None]
"""What is shown, and what the column sorts by."""
EMPTY: Cell = ("", None)


@dataclass(frozen=True)
class Line:
    """One row of the table, and how it looks."""

    of: Scored
    css: str
    row: FrontRow | None = None
    look: Look | None = None
    """Of its marker in the picture."""
    measured: bool = True
    """Whether all that the front is chosen by is known of it."""

    @property
    def trial(self) -> Trial | None:
        """The trial; None for a teacher."""
        return self.of if isinstance(self.of, Trial) else None


@dataclass(frozen=True)
class Column:
    """One column; `css` "text" aligns left, "on-dev" and "on-test" show it for that part only."""

    heading: str
    cell: Callable[[Line], Cell]
    css: str = ""


@dataclass(frozen=True)
class Heads:
    """What the headings of score columns are made of: source languages, target languages, the score's label and
    name, the targets that are outside of their mean, and what the lines are of."""

    sources: Sequence[str]
    targets: Sequence[str]
    label: str
    name: str
    outside: Sequence[str] = ()
    dev_targets: bool = False
    """Whether dev of target languages was read."""
    among: Sequence[Scored] = ()
    objectives: Directions = field(default_factory=lambda: OBJECTIVES)
    """Of which each has a column."""

    @property
    def beside(self) -> list[Figure]:
        """The scores beside the task's own."""
        found = scores_of(self.name, targets=bool(self.targets), among=self.among)
        return [figure for figure in found if figure.beside]


def head(heads: Heads) -> str:
    """The heading cells."""
    return "".join(f"<th class='{c.css}'>{escape(c.heading)}</th>" for c in _columns(heads))


def body(
    trials: Sequence[Trial],
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    heads: Heads,
    kinds: Mapping[str, Look],
    measured: Collection[int],
) -> str:
    """All rows. `kinds`: how they look in the picture; `measured`: the numbers of the trials that compete."""
    columns = _columns(heads)
    return "\n".join(_html(columns, line) for line in _lines(trials, rows, teachers, kinds, measured))


def _lines(
    trials: Sequence[Trial],
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    kinds: Mapping[str, Look],
    measured: Collection[int],
) -> Iterator[Line]:
    yield from (Line(teacher, "teacher") for teacher in teachers)
    yield from (Line(member, "quiet") for teacher in teachers for member in teacher.members)
    yield from (Line(row.trial, "front", row, kinds[row.trial.kind]) for row in rows)
    standing = {row.trial.number for row in rows}
    others = sorted(
        (trial for trial in trials if trial.number not in standing), key=lambda trial: trial.number
    )
    yield from (Line(trial, "quiet", measured=trial.number in measured) for trial in others)


def _html(columns: Sequence[Column], line: Line) -> str:
    cells = []
    for column in columns:
        text, value = column.cell(line)
        css = f"{column.css} {_sign(text)}".strip() if column.heading == "vs gold" else column.css
        mark = _mark(line.look) if column.heading == "learnt by" else ""
        # What sorts as it is shown needs no key of its own.
        key = (
            ""
            if text == value and not mark
            else f' data-value="{escape("" if value is None else str(value), quote=True)}"'
        )
        cells.append(f"<td class='{css}'{key}>{mark}{escape(text)}</td>")
    why = line.trial.message if line.trial else ""
    hint = f' title="{escape(why, quote=True)}"' if why else ""
    chosen = f" data-number={line.trial.number}" if line.trial and line.trial.state == "COMPLETE" else ""
    return f"<tr class={line.css}{chosen}{hint}>{''.join(cells)}</tr>"


def _mark(look: Look | None) -> str:
    """The marker's shape in its colour."""
    if look is None:
        return ""
    return (
        f"<span class=dot style='color:var(--kind-{LOOKS.index(look)})' aria-hidden=true>{look.glyph}</span>"
    )


def _sign(text: str) -> str:
    return {"+": "up", "-": "down"}.get(text[:1], "")


def _columns(heads: Heads) -> list[Column]:
    return [
        Column("#", lambda line: (f"{line.trial.number:02d}", line.trial.number) if line.trial else EMPTY),
        Column(
            "student",
            lambda line: _text(line.of.shape if isinstance(line.of, Trial) else line.of.name),
            "text",
        ),
        Column("learnt by", lambda line: _text(line.trial.method if line.trial else "teacher"), "text"),
        *_score_columns("dev", heads),
        *_score_columns("test", heads),
        *(Column(figure.heading or figure.name, _cost(figure)) for figure in cost_columns(heads.objectives)),
        # Last: there may be dozens.
        # Those of test are of source and target languages alike.
        *(
            column
            for figure in scores_of(heads.name, targets=False, among=heads.among)
            for column in _language_columns(figure, heads)
        ),
        Column("", lambda line: _text(_state(line)), "text"),
    ]


def _score_columns(part: Part, heads: Heads) -> list[Column]:
    """Means with their spreads over languages; the gain."""

    def gained(line: Line) -> Cell:
        difference = line.row and line.row.gain(part)
        return (gain(difference), difference) if difference is not None else EMPTY

    css, figure = f"on-{part}", DEV if part == "dev" else TEST
    # Dev has no target languages where nothing else is asked for: choosing on them would not be zero-shot.
    targets = heads.targets if part == "test" else ()
    heading = figure.heading.format(label=heads.label)
    columns = [Column(f"{heading}, source" if targets else heading, _mean(figure), css)]
    if len(heads.sources) > 1:
        columns.append(Column(LANGUAGES_SD, _languages_sd(figure), css))
    if part == "dev" and heads.dev_targets:
        columns.append(Column(TARGET_DEV.heading, _mean(TARGET_DEV), css))
    if targets:
        columns.append(Column(TARGET.heading, _mean(TARGET), css))
    if len(targets) > 1:
        columns.append(Column(f"{TARGET.heading} sd", _languages_sd(TARGET), css))
    if targets:
        columns += [Column(f"{group} vs teacher", _changed(group), css) for group in GROUPS]
    more = (Column(own.heading, _mean(own), css) for own in heads.beside if own.part == part)
    return [*columns, *more, Column("vs gold", gained, css)]


def _changed(group: Group) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        own = line.row and line.row.change(group)
        return EMPTY if own is None else (change(own), own)

    return cell


def _language_columns(figure: Figure, heads: Heads) -> Iterator[Column]:
    def of(language: str) -> Callable[[Line], Cell]:
        def cell(line: Line) -> Cell:
            value = language_values(figure, line.of).get(language)
            return FORMS[figure.form](value), value

        return cell

    languages = heads.sources if figure.part == "dev" else [*heads.sources, *heads.targets]
    return (
        Column(f"{language} {figure.short}".rstrip(), of(language), f"on-{figure.part}")
        for language in languages
    )


def _languages_sd(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        score = line.of.scores.get(*figure.score) if figure.score else None
        return (percent(score.languages_sd), score.languages_sd) if score else EMPTY

    return cell


def _mean(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        score = line.of.scores.get(*figure.score) if figure.score else None
        # A spread of seeds is written in points.
        over = spread(score and score.sd) if figure.form == DEV.form else ""
        return FORMS[figure.form](score and score.mean) + over, score and score.mean

    return cell


def _cost(figure: Figure) -> Callable[[Line], Cell]:
    def cell(line: Line) -> Cell:
        value = figure.read(line.of)
        return EMPTY if value is None else (shown(figure, line.of), value)

    return cell


def _text(text: str) -> Cell:
    return text, text


def _state(line: Line) -> str:
    if line.trial is None or line.row is not None:
        return ""
    known = {"PRUNED": "stopped early", "FAILED": "failed", "RUNNING": "running"}
    if line.trial.state in known:
        return known[line.trial.state]
    if line.trial.role == "baseline":
        return "gold baseline"
    return "" if line.measured else "not measured"
