"""One HTML page that needs nothing else: the picture, a switch from dev to test, a table that sorts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import median

from plotly.offline import get_plotlyjs

from raykd.front import OBJECTIVES, Directions
from raykd.report.figure import Part, colours, front_figure
from raykd.report.form import count, gain, milliseconds, percent, times
from raykd.report.front import FrontRow, front_rows
from raykd.report.page_table import body, head
from raykd.report.page_template import PAGE
from raykd.report.table import headline, languages_of
from raykd.trial import Teacher, Trial, teacher_f1

PARTS: tuple[Part, ...] = ("dev", "test")
GOOD_ENOUGH = 0.95
"""The share of the teacher's F1 for which the page names the fastest student."""


def front_html(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    sweep: str = "",
    objectives: Directions = OBJECTIVES,
) -> str:
    """The whole page as text; it opens from a file, without a network."""
    trials = list(trials)
    rows = front_rows(trials, teachers, objectives=objectives)
    languages = languages_of(trials, teachers)
    pictures = {
        part: front_figure(trials, teachers, part=part, objectives=objectives).to_json() for part in PARTS
    }
    heading = escape(headline(trials, rows, sweep=sweep))
    tiles = (
        f"<div class='tile on-{part}'><b>{value}</b><span>{told}</span></div>"
        for part in PARTS
        for value, told in _tiles(rows, teachers, part)
    )
    return PAGE.substitute(
        title=heading,
        heading=heading,
        tiles="".join(tiles),
        languages=escape(f"F1 in percent, mean over {', '.join(languages)}" if languages else ""),
        all=len(trials),
        head=head(languages),
        body=body(trials, rows, teachers, languages, colours(row.trial for row in rows)),
        plotly=get_plotlyjs(),
        # A setting may hold "</script>".
        figures=f'{{"dev": {pictures["dev"]}, "test": {pictures["test"]}}}'.replace("<", "\\u003c"),
    )


def _tiles(rows: Sequence[FrontRow], teachers: Sequence[Teacher], part: Part) -> list[tuple[str, str]]:
    """What one wants to know first: (figure, what it says), as HTML.

    Students are chosen on dev in both parts.
    """
    tiles = []
    reference = teacher_f1(teachers, part)
    if reference is not None:
        latency = max((t.latency_ms or 0 for t in teachers), default=0) or None
        size = sum(t.parameters or 0 for t in teachers) or None
        cost = f"{milliseconds(latency)} ms · {count(size)} parameters"
        tiles.append((percent(reference), f"teacher, {part} F1<br>{cost}"))
    if rows:
        best = max(rows, key=lambda row: row.trial.dev_f1 or 0).trial
        tiles.append((percent(getattr(best, f"{part}_f1")), f"best student, {part} F1<br>{_cost(best)}"))
    good = [row.trial for row in rows if row.kept is not None and row.kept >= GOOD_ENOUGH]
    if good:
        what = (
            f"{times(good[0].speedup)} faster"
            if good[0].speedup
            else f"{milliseconds(good[0].latency_ms)} ms"
        )
        tiles.append((what, f"with {GOOD_ENOUGH:.0%} of the teacher’s dev F1<br>{_cost(good[0])}"))
    gains = [g for row in rows if (g := getattr(row, f"{part}_gain")) is not None]
    if gains:
        shapes = f"{len(gains)} student{'s' * (len(gains) != 1)}"
        tiles.append(
            (f"{gain(median(gains))} {part} F1", f"over gold labels alone<br>median of {shapes} on the front")
        )
    return tiles


def _cost(trial: Trial) -> str:
    cost = f"{milliseconds(trial.latency_ms)} ms · {count(trial.parameters)} parameters"
    return f"#{trial.number:02d} · {cost}"
