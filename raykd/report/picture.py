"""The front as a picture: score against latency, marker area for parameters, the teacher as the line to reach.

The front is large, with a colour and a shape for each strategy or objective; the gold baselines of its students are
hollow and tied to them by a line, dominated students are small and grey. What is far away is marked at the edge, with
its value. Markers have the number of their trial as `customdata`: the page adds their boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

from raykd.figures.front import candidates
from raykd.figures.results import Part
from raykd.figures.table import LATENCY, OBJECTIVES, PARAMETERS, Directions, Figure, latency_searched
from raykd.figures.trial import Teacher, Trial, score_label_of, teacher_score
from raykd.report.findings import without_front
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.hover import WIDTH, teacher_hover
from raykd.report.look import FONT, GOLD, GREY, INK, PAPER, QUIET, SHIP, TIE, Look, dress, looks
from raykd.report.readable_numbers import in_words, percent
from raykd.report.stopped import Stopped
from raykd.report.window import Window, window_of

SMALLEST, LARGEST = 11.0, 31.0
"""Marker diameters in pixels; area is in proportion to the number of parameters between them."""

EDGES = MappingProxyType(
    {
        "": "star",
        "→": "triangle-right",
        "↑": "triangle-up",
        "↓": "triangle-down",
        "↗": "triangle-ne",
        "↘": "triangle-se",
    }
)
"""The teacher's marker by where it is from the picture."""


def front_picture(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    part: Part = "dev",
    objectives: Directions = OBJECTIVES,
    ship: Trial | None = None,
    stopped: Sequence[Stopped] = (),
) -> go.Figure:
    """Score on dev or test (percent) against latency (ms, p50 at batch 1); bars are the standard deviation over seeds.

    The front is chosen on dev whichever part is shown, so on test its line may bend. `ship`: the student to mark.
    `stopped`: trials that were stopped early, faint on dev where they were then.
    """
    trials, latency_figure = list(trials), latency_searched(objectives)
    rows = [row for row in front_rows(trials, teachers, objectives=objectives) if _has(row.trial, part)]
    standing = {row.trial.number for row in rows}
    others = [
        trial
        for trial in candidates(trials, objectives)
        if trial.number not in standing and _has(trial, part)
    ]
    figure, size = go.Figure(), Sizes([*(row.trial for row in rows), *others])
    halted = [
        each for each in stopped if each.dev is not None and latency_figure.read(each.trial) is not None
    ]
    window = _window(rows, others, teachers, part, [each.trial for each in halted], latency_figure)
    if part == "dev":
        _stopped(figure, halted, window, latency_figure)
    _dominated(figure, others, part, size, window, latency_figure)
    _front_line(figure, rows, part, latency_figure)
    _baselines(figure, rows, part, size, window, latency_figure)
    _front(figure, rows, looks(trials), part, size, latency_figure)
    _ship(figure, ship, part, latency_figure)
    _teacher(figure, teachers, part, window, latency_figure)
    dress(figure, height=560)
    figure.update_xaxes(title_text=_axis(latency_figure), **window.axis())
    figure.update_yaxes(title_text=f"{part} {score_label_of([*teachers, *trials])}, %", range=list(window.y))
    if not rows:
        font = {"size": 18, "color": QUIET}
        figure.add_annotation(text=without_front(trials), showarrow=False, font=font)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    return figure


def _axis(latency: Figure) -> str:
    """The title of the axis of latencies."""
    if latency is LATENCY:
        return "latency, ms per sentence (p50 of the export, one thread)"
    return f"latency, {latency.words} (one thread)"


class Sizes:
    """Marker diameters in pixels, their areas in proportion to parameters."""

    def __init__(self, trials: Sequence[Trial]):
        self._largest = max((PARAMETERS.read(trial) or 0 for trial in trials), default=0) or 1

    def of(self, trial: Trial) -> float:
        """Never below SMALLEST: a tiny student must stay easy to hit."""
        return max(SMALLEST, LARGEST * math.sqrt((PARAMETERS.read(trial) or 0) / self._largest))


def _window(
    rows: Sequence[FrontRow],
    others: Sequence[Trial],
    teachers: Sequence[Teacher],
    part: Part,
    halted: Sequence[Trial],
    latency_figure: Figure,
) -> Window:
    students = [*(row.trial for row in rows), *others]
    twins = [
        _percent(row.baseline, part) for row in rows if row.baseline is not None and _has(row.baseline, part)
    ]
    reference = teacher_score(teachers, part)
    return window_of(
        [latency for trial in (*students, *halted) if (latency := latency_figure.read(trial))],
        _slowest(teachers, latency_figure),
        [end for row in rows for end in _ends(row.trial, part)],
        [_percent(trial, part) for trial in others],
        [*twins, *([] if reference is None else [100 * reference])],
    )


def _ends(trial: Trial, part: Part) -> tuple[float, float]:
    """Of the bar of its seeds."""
    score = trial.scores.get(part)
    sd = 100 * ((score and score.sd) or 0.0)
    return _percent(trial, part) - sd, _percent(trial, part) + sd


def _slowest(teachers: Sequence[Teacher], latency_figure: Figure) -> float | None:
    return max((latency for t in teachers if (latency := latency_figure.read(t))), default=None)


def _stopped(figure: go.Figure, halted: Sequence[Stopped], window: Window, latency_figure: Figure) -> None:
    """Where trials were when they were stopped: no student has that score in the end."""
    if not halted:
        return
    y = [100 * (each.dev or 0.0) for each in halted]
    figure.add_scatter(
        x=[latency_figure.read(each.trial) for each in halted],
        y=[window.clipped(0.0, score)[1] for score in y],
        mode="markers",
        name="stopped early, its score then",
        opacity=0.8,
        cliponaxis=False,
        marker={
            "symbol": ["x-thin" if window.inside(score) else "triangle-down-open" for score in y],
            "size": 8,
            "color": GREY,
            "line": {"color": GREY, "width": 1.4},
        },
        hovertext=[_why(each) for each in halted],
        hoverinfo="text",
    )


def _why(each: Stopped) -> str:
    label = escape(each.trial.score_label)
    lines = wrap(f"stopped after epoch {each.epoch}: {each.why}", WIDTH)
    return "<br>".join(
        [f"<b>{escape(each.trial.name)}</b>", f"dev {label} {percent(each.dev)} then", *map(escape, lines)]
    )


def _dominated(
    figure: go.Figure,
    others: Sequence[Trial],
    part: Part,
    size: Sizes,
    window: Window,
    latency_figure: Figure,
) -> None:
    if others:
        within = [window.inside(_percent(trial, part)) for trial in others]
        _students(
            figure, others, [latency_figure.read(trial) for trial in others], part, window,
            name="dominated",
            marker={
                "size": [0.6 * size.of(t) for t in others],
                "symbol": ["circle" if inside else "triangle-down" for inside in within],
                "color": GREY,
                "opacity": 0.7,
                "line": {"width": 0},
            },
        )  # fmt: skip


def _front_line(figure: go.Figure, rows: Sequence[FrontRow], part: Part, latency_figure: Figure) -> None:
    """Steps along the best score for any latency; students that are on the front only for their size are below it."""
    steps: list[Trial] = []
    # Rows are in the order of latencies on the grid, the line in that of those that are shown.
    for row in sorted(rows, key=lambda row: latency_figure.read(row.trial) or 0.0):
        if not steps or _percent(row.trial, part) > _percent(steps[-1], part):
            steps.append(row.trial)
    if len(steps) < 2:
        return
    figure.add_scatter(
        x=[latency_figure.read(trial) for trial in steps],
        y=[_percent(trial, part) for trial in steps],
        mode="lines",
        line={"shape": "hv", "color": INK, "width": 2},
        opacity=0.75,
        hoverinfo="skip",
        showlegend=False,
    )


def _baselines(
    figure: go.Figure,
    rows: Sequence[FrontRow],
    part: Part,
    size: Sizes,
    window: Window,
    latency_figure: Figure,
) -> None:
    # At the student's latency: it is the same shape, so a difference would be noise of the probe.
    twins = [
        (row.trial, row.baseline, latency_figure.read(row.trial) or 0.0)
        for row in rows
        if row.baseline and _has(row.baseline, part)
    ]
    if not twins:
        return
    ends = [window.clipped(x, _percent(twin, part))[1] for _, twin, x in twins]
    figure.add_scatter(
        x=[x for _, _, latency in twins for x in (latency, latency, None)],
        y=[y for (student, _, _), end in zip(twins, ends, strict=True) for y in (end, _percent(student, part), None)],
        mode="lines", line={"color": TIE, "width": 1.2, "dash": "dot"}, hoverinfo="skip", showlegend=False,
    )  # fmt: skip
    far = [not window.inside(_percent(twin, part)) for _, twin, _ in twins]
    _students(
        figure, [twin for _, twin, _ in twins], [latency for _, _, latency in twins], part, window,
        name="same shape, gold labels only",
        mode="markers+text",
        text=[percent(twin.scores.mean(part)) if out else "" for (_, twin, _), out in zip(twins, far, strict=True)],
        textposition="top right",
        textfont={"size": 11, "color": GOLD, "family": FONT},
        marker={
            "symbol": ["triangle-down" if out else "circle" for out in far],
            "size": [0.8 * size.of(student) for student, _, _ in twins],
            "color": PAPER,
            "line": {"color": GOLD, "width": 1.6},
        },
    )  # fmt: skip


def _front(
    figure: go.Figure,
    rows: Sequence[FrontRow],
    kinds: Mapping[str, Look],
    part: Part,
    size: Sizes,
    latency_figure: Figure,
) -> None:
    for kind, look in kinds.items():
        own = [row.trial for row in rows if row.trial.kind == kind]
        if own:
            _students(
                figure, own, [latency_figure.read(trial) for trial in own], part, None,
                name=kind,
                mode="markers+text",
                text=[f"{trial.number:02d}" for trial in own],
                textposition="middle center",
                textfont={"size": 10, "color": PAPER, "family": FONT},
                marker={
                    "symbol": look.symbol,
                    "size": [max(20.0, size.of(trial)) for trial in own],
                    "color": look.colour,
                    "opacity": 1,
                    "line": {"color": PAPER, "width": 1.2},
                },
            )  # fmt: skip


def _students(
    figure: go.Figure,
    trials: Sequence[Trial],
    latencies: Sequence[float | None],
    part: Part,
    window: Window | None,
    *,
    marker: dict[str, Any],
    mode: str = "markers",
    **more: Any,
) -> None:
    """Markers that can be chosen, at the edge of `window` where they are beyond it, with the spread of their seeds."""
    y = [_percent(trial, part) for trial in trials]
    if window is not None:
        y = [window.clipped(0.0, score)[1] for score in y]
    spreads = [score.sd if (score := trial.scores.get(part)) else None for trial in trials]
    colour = marker["color"] if marker["color"] != PAPER else GOLD
    bars = {"type": "data", "array": [100 * (sd or 0.0) for sd in spreads], "color": colour, "thickness": 1.4}
    figure.add_scatter(
        x=latencies, y=y, mode=mode, marker=marker, hoverinfo="text", cliponaxis=False,
        customdata=[trial.number for trial in trials], error_y=bars if any(spreads) else None, **more,
    )  # fmt: skip


def _ship(figure: go.Figure, trial: Trial | None, part: Part, latency_figure: Figure) -> None:
    """A ring around the student to ship."""
    if trial is None or not _has(trial, part):
        return
    figure.add_scatter(
        x=[latency_figure.read(trial)],
        y=[_percent(trial, part)],
        mode="markers+text",
        name="to ship",
        text=["<b>ship</b>"],
        textposition="bottom right",
        textfont={"size": 13, "color": SHIP, "family": FONT},
        marker={"symbol": "circle-open", "size": 40, "color": SHIP, "line": {"width": 3}},
        hoverinfo="skip",
        showlegend=False,
    )


def _teacher(
    figure: go.Figure, teachers: Sequence[Teacher], part: Part, window: Window, latency_figure: Figure
) -> None:
    """A line to reach, and a star at the teacher's latency; where either is far, a triangle at the edge points there,
    and its values are beside it.
    """
    reference = teacher_score(teachers, part)
    if reference is None:
        return
    y, latency = 100 * reference, _slowest(teachers, latency_figure)
    x, height = window.clipped(latency or 0.0, y)
    slower, above = latency is not None and latency > window.x[1], y > height
    arrow = {(True, True): "↗", (False, True): "↑"}.get((slower, above), "→" if slower else "")
    if window.inside(y):
        figure.add_hline(y=y, line={"color": GOLD, "width": 1.5, "dash": "dash"}, layer="below")
    elif y < height:
        arrow = "↘" if slower else "↓"
    cost = f" · at {in_words(latency_figure, latency)}" if latency else ""
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", xshift=4, y=height, yanchor="top" if above else "bottom", showarrow=False,
        text=f"<b>teacher {percent(reference)}</b>{cost} {arrow}".rstrip(), font={"color": GOLD, "size": 13},
    )  # fmt: skip
    if latency:
        figure.add_scatter(
            x=[x],
            y=[height],
            mode="markers",
            name="teacher",
            showlegend=False,
            cliponaxis=False,
            marker={
                "symbol": EDGES[arrow],
                "size": 20,
                "color": GOLD,
                "line": {"color": PAPER, "width": 1},
            },
            hovertext=["<br>".join(teacher_hover(t, part) for t in teachers)],
            hoverinfo="text",
        )


def _has(trial: Trial, part: Part) -> bool:
    return trial.scores.get(part) is not None


def _percent(trial: Trial, part: Part) -> float:
    return 100 * (trial.scores.mean(part) or 0.0)
