"""One HTML page that needs nothing else: the picture, a switch from dev to test, a table that sorts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from statistics import median

from plotly.offline import get_plotlyjs

from raykd.front import OBJECTIVES, Directions
from raykd.report.figure import Part, colours, front_figure
from raykd.report.form import count, gain, milliseconds, percent, times
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.page_table import Heads, body, head
from raykd.report.page_template import PAGE
from raykd.report.table import headline, languages_of
from raykd.trial import Teacher, Trial, metric_of, targets_of, teacher_f1

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
    shown = [*teachers, *trials]
    heads = Heads(languages_of(shown), targets_of(shown), metric_of(shown))
    pictures = {
        part: front_figure(trials, teachers, part=part, objectives=objectives).to_json() for part in PARTS
    }
    heading = escape(headline(trials, rows, sweep=sweep))
    tiles = (
        f"<div class='tile on-{part}'><b>{value}</b><span>{told}</span></div>"
        for part in PARTS
        for value, told in _tiles(rows, teachers, part, heads)
    )
    return PAGE.substitute(
        title=heading,
        heading=heading,
        tiles="".join(tiles),
        metric=escape(heads.metric),
        languages=escape(_means(heads)),
        all=len(trials),
        head=head(heads),
        body=body(trials, rows, teachers, heads, colours(row.trial for row in rows)),
        plotly=get_plotlyjs(),
        # A setting may hold "</script>".
        figures=f'{{"dev": {pictures["dev"]}, "test": {pictures["test"]}}}'.replace("<", "\\u003c"),
    )


def _means(heads: Heads) -> str:
    """Over which languages the means are."""
    if not heads.sources:
        return ""
    source = f"{heads.metric} in percent, mean over {', '.join(heads.sources)}"
    return f"{source}; target: mean over {', '.join(heads.targets)}" if heads.targets else source


def _tiles(
    rows: Sequence[FrontRow], teachers: Sequence[Teacher], part: Part, heads: Heads
) -> list[tuple[str, str]]:
    """What one wants to know first: (figure, what it says), as HTML.

    Students are chosen on dev in both parts.
    """
    tiles, score = [], f"{part} {heads.metric}"
    apart = part == "test" and bool(heads.targets)
    means = f"{score}, source · target" if apart else score
    reference = teacher_f1(teachers, part)
    if reference is not None:
        latency = max((t.latency_ms or 0 for t in teachers), default=0) or None
        size = sum(t.parameters or 0 for t in teachers) or None
        cost = f"{milliseconds(latency)} ms · {count(size)} parameters"
        there = max((t.test_f1_target for t in teachers if t.test_f1_target is not None), default=None)
        value = f"{percent(reference)} · {percent(there)}" if apart else percent(reference)
        tiles.append((value, f"teacher, {escape(means)}<br>{cost}"))
    if rows:
        best = max(rows, key=lambda row: row.trial.dev_f1 or 0).trial
        value = percent(getattr(best, f"{part}_f1")) + (f" · {percent(best.test_f1_target)}" if apart else "")
        tiles.append((value, f"best student, {escape(means)}<br>{_cost(best)}"))
    good = [row.trial for row in rows if row.kept is not None and row.kept >= GOOD_ENOUGH]
    if good:
        what = (
            f"{times(good[0].speedup)} faster"
            if good[0].speedup
            else f"{milliseconds(good[0].latency_ms)} ms"
        )
        tiles.append(
            (what, f"with {GOOD_ENOUGH:.0%} of the teacher’s dev {escape(heads.metric)}<br>{_cost(good[0])}")
        )
    gains = [g for row in rows if (g := getattr(row, f"{part}_gain")) is not None]
    if gains:
        shapes = f"{len(gains)} student{'s' * (len(gains) != 1)}"
        tiles.append(
            (
                f"{gain(median(gains))} {escape(score)}",
                f"over gold labels alone<br>median of {shapes} on the front",
            )
        )
    return tiles


def _cost(trial: Trial) -> str:
    cost = f"{milliseconds(trial.latency_ms)} ms · {count(trial.parameters)} parameters"
    return f"#{trial.number:02d} · {cost}"
