"""The table of the HTML page: teachers, the front, and all other trials, which the page hides until asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

from raykd.report.form import count, gain, milliseconds, percent, spread, times
from raykd.report.front_rows import FrontRow, competes
from raykd.trial import Teacher, Trial

Cell = tuple[str, float | str | None]
"""What is shown, and what the column sorts by."""
EMPTY: Cell = ("", None)


@dataclass(frozen=True)
class Line:
    """One row of the table, and how it looks."""

    of: Trial | Teacher
    css: str
    row: FrontRow | None = None
    dot: str = ""
    """Colour of its marker in the picture."""

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
    """What the columns of scores are headed by: source languages, target languages, the score's name."""

    sources: Sequence[str]
    targets: Sequence[str] = ()
    metric: str = "F1"


def head(heads: Heads) -> str:
    """The heading cells."""
    return "".join(f"<th class='{c.css}'>{escape(c.heading)}</th>" for c in _columns(heads))


def body(
    trials: Sequence[Trial],
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    heads: Heads,
    colours: Mapping[str, str],
) -> str:
    """All rows. `colours`: of the objectives in the picture."""
    columns = _columns(heads)
    return "\n".join(_html(columns, line) for line in _lines(trials, rows, teachers, colours))


def _lines(
    trials: Sequence[Trial], rows: Sequence[FrontRow], teachers: Sequence[Teacher], colours: Mapping[str, str]
) -> Iterator[Line]:
    yield from (Line(teacher, "teacher") for teacher in teachers)
    yield from (Line(member, "quiet") for teacher in teachers for member in teacher.members)
    yield from (Line(row.trial, "front", row, colours[row.trial.objective]) for row in rows)
    standing = {row.trial.number for row in rows}
    others = sorted(
        (trial for trial in trials if trial.number not in standing), key=lambda trial: trial.number
    )
    yield from (Line(trial, "quiet") for trial in others)


def _html(columns: Sequence[Column], line: Line) -> str:
    cells = []
    for column in columns:
        told, value = column.cell(line)
        dot = (
            f"<span class=dot style='background:{line.dot}'></span>" if column.heading == "learnt by" else ""
        )
        key = escape("" if value is None else str(value), quote=True)
        css = f"{column.css} {_sign(told)}" if column.heading == "vs gold" else column.css
        cells.append(f"<td class='{css}' data-value=\"{key}\">{dot if line.dot else ''}{escape(told)}</td>")
    why = line.trial.message if line.trial else ""
    hint = f' title="{escape(why, quote=True)}"' if why else ""
    return f"<tr class={line.css}{hint}>{''.join(cells)}</tr>"


def _sign(told: str) -> str:
    return {"+": "up", "-": "down"}.get(told[:1], "")


def _columns(heads: Heads) -> list[Column]:
    return [
        Column("#", lambda line: (f"{line.trial.number:02d}", line.trial.number) if line.trial else EMPTY),
        Column(
            "student",
            lambda line: _text(line.of.shape if isinstance(line.of, Trial) else line.of.name),
            "text",
        ),
        Column("learnt by", lambda line: _text(line.trial.method if line.trial else "teacher"), "text"),
        *(column for part in ("dev", "test") for column in _f1_columns(part, heads)),
        Column("ms", lambda line: (milliseconds(line.of.latency_ms), line.of.latency_ms)),
        Column("parameters", lambda line: (count(line.of.parameters), line.of.parameters)),
        Column("faster", lambda line: _times(line.trial and line.trial.speedup)),
        Column("smaller", lambda line: _times(line.trial and line.trial.compression)),
        Column("", lambda line: _text(_state(line)), "text"),
    ]


def _f1_columns(part: str, heads: Heads) -> list[Column]:
    def mean(name: str) -> Callable[[Line], Cell]:
        def cell(line: Line) -> Cell:
            f1 = getattr(line.of, name)
            return percent(f1) + spread(getattr(line.of, f"{name}_sd", None)), f1

        return cell

    def gained(line: Line) -> Cell:
        bought = line.row and getattr(line.row, f"{part}_gain")
        return (gain(bought), bought) if bought is not None else EMPTY

    def own(language: str) -> Callable[[Line], Cell]:
        def cell(line: Line) -> Cell:
            f1 = getattr(line.of, f"{part}_f1_by_language").get(language)
            return percent(f1), f1

        return cell

    css = f"on-{part}"
    score = Column(f"{part} {heads.metric}", mean(f"{part}_f1"), css)
    apart, languages = [], [*heads.sources]
    if part == "test" and heads.targets:
        # Dev has no target languages: choosing on them would not be zero-shot.
        score = replace(score, heading=f"{score.heading}, source")
        apart, languages = [Column("target", mean("test_f1_target"), css)], [*heads.sources, *heads.targets]
    return [score, *apart, Column("vs gold", gained, css), *(Column(n, own(n), css) for n in languages)]


def _text(told: str) -> Cell:
    return told, told


def _times(factor: float | None) -> Cell:
    return (times(factor), factor) if factor is not None else EMPTY


def _state(line: Line) -> str:
    if line.trial is None or competes(line.trial):
        return ""
    known = {"PRUNED": "stopped early", "FAILED": "failed", "RUNNING": "running"}
    return known.get(line.trial.state, "gold baseline" if line.trial.role == "baseline" else "not measured")
