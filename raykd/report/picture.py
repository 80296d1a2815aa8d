"""The front as a picture: score against latency, marker area for parameters, the teacher as the line to reach.

The front is large and coloured by strategy or objective, the gold baselines of its students are hollow and tied to them
by a line, dominated students are small and grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

from raykd.figures import LATENCY, OBJECTIVES, PARAMETERS, Directions
from raykd.front import candidates
from raykd.report.form import in_words, percent
from raykd.report.front_rows import FrontRow, front_rows
from raykd.report.hover import hover, teacher_hover
from raykd.report.look import FONT, GOLD, GREY, INK, PALETTE, QUIET, SHIP, TIE, dress
from raykd.results import Part
from raykd.trial import Teacher, Trial, score_label_of, teacher_score

SMALLEST, LARGEST = 11.0, 31.0
"""Marker diameters in pixels; area is in proportion to the number of parameters between them."""
FAR = 0.5
"""How far right of the slowest student, in widths of the students' range, a teacher is still drawn: one
farther would leave the picture empty."""
LOG_FROM = 6.0
"""Slowest over fastest from which the latency axis is logarithmic."""


def front_picture(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    part: Part = "dev",
    objectives: Directions = OBJECTIVES,
    ship: Trial | None = None,
) -> go.Figure:
    """Score on dev or test (percent) against latency (ms, p50 at batch 1).

    The front is chosen on dev whichever part is shown, so on test its line may bend. `ship`: the student to mark.
    """
    trials = list(trials)
    rows = [row for row in front_rows(trials, teachers, objectives=objectives) if _has(row.trial, part)]
    standing = {row.trial.number for row in rows}
    others = [
        trial
        for trial in candidates(trials, objectives)
        if trial.number not in standing and _has(trial, part)
    ]
    students = [*(row.trial for row in rows), *others]
    size = Sizes(students)
    latencies = [latency for trial in students if (latency := LATENCY.read(trial))]
    reach = _reach(latencies)
    near = [latency for t in teachers if (latency := LATENCY.read(t)) and latency <= reach]
    figure = go.Figure()
    _dominated(figure, others, part, size)
    _front_line(figure, rows, part)
    _baselines(figure, rows, part, size)
    _front(figure, rows, part, size)
    _ship(figure, ship, part)
    _teacher(figure, teachers, part, reach)
    _layout(figure, f"{part} {score_label_of([*teachers, *trials])}")
    figure.update_xaxes(_latency_axis(latencies + near))
    figure.update_yaxes(range=_score_range(rows, others, part, teacher_score(teachers, part)))
    if not rows:
        font = {"size": 18, "color": QUIET}
        figure.add_annotation(text="no complete student yet", showarrow=False, font=font)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    return figure


class Sizes:
    """Marker diameters in pixels, their areas in proportion to parameters."""

    def __init__(self, trials: Sequence[Trial]):
        self._largest = max((PARAMETERS.read(trial) or 0 for trial in trials), default=0) or 1

    def of(self, trial: Trial) -> float:
        """Never below SMALLEST: a tiny student must stay easy to hit."""
        return max(SMALLEST, LARGEST * math.sqrt((PARAMETERS.read(trial) or 0) / self._largest))


def colours(trials: Iterable[Trial]) -> Mapping[str, str]:
    """A colour for each strategy or objective, the same in every picture of a sweep."""
    kinds = sorted({trial.kind for trial in trials if trial.role == "search"})
    return MappingProxyType({kind: PALETTE[i % len(PALETTE)] for i, kind in enumerate(kinds)})


def _dominated(figure: go.Figure, others: Sequence[Trial], part: Part, size: Sizes) -> None:
    if others:
        figure.add_scatter(
            x=[LATENCY.read(t) for t in others],
            y=[_percent(t, part) for t in others],
            mode="markers",
            name="dominated",
            marker={
                "size": [0.6 * size.of(t) for t in others],
                "color": GREY,
                "opacity": 0.55,
                "line": {"width": 0},
            },
            hovertext=[hover(t) for t in others],
            hoverinfo="text",
        )


def _front_line(figure: go.Figure, rows: Sequence[FrontRow], part: Part) -> None:
    """Steps along the best score for any latency; students that are on the front only for their size are below it."""
    steps: list[Trial] = []
    for row in rows:
        if not steps or _percent(row.trial, part) > _percent(steps[-1], part):
            steps.append(row.trial)
    if len(steps) < 2:
        return
    figure.add_scatter(
        x=[LATENCY.read(trial) for trial in steps],
        y=[_percent(trial, part) for trial in steps],
        mode="lines",
        line={"shape": "hv", "color": INK, "width": 2},
        opacity=0.75,
        hoverinfo="skip",
        showlegend=False,
    )


def _baselines(figure: go.Figure, rows: Sequence[FrontRow], part: Part, size: Sizes) -> None:
    twins = [(row.trial, row.baseline) for row in rows if row.baseline and _has(row.baseline, part)]
    if not twins:
        return
    ties_x = [x for student, _ in twins for x in (*[LATENCY.read(student)] * 2, None)]
    ties_y = [y for student, twin in twins for y in (_percent(twin, part), _percent(student, part), None)]
    tie = {"color": TIE, "width": 1.2, "dash": "dot"}
    figure.add_scatter(x=ties_x, y=ties_y, mode="lines", line=tie, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        # At the student's latency: it is the same shape, so a difference would be noise of the probe.
        x=[LATENCY.read(student) for student, _ in twins],
        y=[_percent(twin, part) for _, twin in twins],
        mode="markers",
        name="same shape, gold labels only",
        marker={
            "symbol": "circle",
            "size": [0.8 * size.of(student) for student, _ in twins],
            "color": "white",
            "line": {"color": GOLD, "width": 1.6},
        },
        hovertext=[hover(twin) for _, twin in twins],
        hoverinfo="text",
    )


def _front(figure: go.Figure, rows: Sequence[FrontRow], part: Part, size: Sizes) -> None:
    for kind, colour in colours(row.trial for row in rows).items():
        own = [row for row in rows if row.trial.kind == kind]
        figure.add_scatter(
            x=[LATENCY.read(row.trial) for row in own],
            y=[_percent(row.trial, part) for row in own],
            mode="markers+text",
            name=kind,
            text=[f"{row.trial.number:02d}" for row in own],
            textposition="middle center",
            textfont={"size": 10, "color": "white", "family": FONT},
            marker={
                "size": [max(19.0, size.of(row.trial)) for row in own],
                "color": colour,
                "opacity": 1,
                "line": {"color": "white", "width": 1.2},
            },
            hovertext=[hover(row.trial, row) for row in own],
            hoverinfo="text",
        )


def _ship(figure: go.Figure, trial: Trial | None, part: Part) -> None:
    """A ring around the student to ship."""
    if trial is None or not _has(trial, part):
        return
    figure.add_scatter(
        x=[LATENCY.read(trial)],
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


def _teacher(figure: go.Figure, teachers: Sequence[Teacher], part: Part, reach: float) -> None:
    """A line to reach, and a star at the teacher's latency.

    A teacher far slower than `reach` is beyond the edge and has no star.
    """
    reference = teacher_score(teachers, part)
    if reference is None:
        return
    y = 100 * reference
    latency = max((LATENCY.read(t) or 0.0 for t in teachers), default=0.0)
    figure.add_hline(y=y, line={"color": GOLD, "width": 1.5, "dash": "dash"}, layer="below")
    far = latency > reach
    cost = f" · at {in_words(LATENCY, latency)}{' →' if far else ''}" if latency else ""
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", xshift=4, y=y, yanchor="bottom", showarrow=False,
        text=f"<b>teacher {percent(reference)}</b>{cost}", font={"color": GOLD, "size": 13},
    )  # fmt: skip
    if latency and not far:
        figure.add_scatter(
            x=[latency],
            y=[y],
            mode="markers",
            showlegend=False,
            marker={"symbol": "star", "size": 20, "color": GOLD, "line": {"color": "white", "width": 1}},
            hovertext=["<br>".join(teacher_hover(t, part) for t in teachers)],
            hoverinfo="text",
        )


def _reach(latencies: Sequence[float]) -> float:
    """The latency up to which a teacher has its star."""
    if not latencies:
        return 0.0
    return max(latencies) + FAR * max(max(latencies) - min(latencies), 0.6 * max(latencies))


def _layout(figure: go.Figure, score: str) -> None:
    dress(figure, height=560)
    figure.update_xaxes(title_text="latency, ms per sentence (p50, batch 1, one thread)")
    figure.update_yaxes(title_text=f"{score}, %")


def _latency_axis(latencies: Sequence[float]) -> dict[str, Any]:
    """From the fastest to the slowest with a little room; logarithmic with plain numbers where they lie far
    apart.
    """
    if not latencies:
        return {}
    low, high = min(latencies), max(latencies)
    if high / low < LOG_FROM:
        room = 0.07 * max(high - low, 0.2 * high)
        return {"range": [max(0.0, low - room), high + room]}
    low, high = math.log10(low), math.log10(high)
    ticks = [m * 10.0**e for e in range(math.floor(low) - 1, math.ceil(high) + 2) for m in (1, 2, 5)]
    room = 0.06 * (high - low)
    text = [f"{tick:g}" for tick in ticks]
    return {"type": "log", "range": [low - room, high + room], "tickvals": ticks, "ticktext": text}


def _score_range(
    rows: Sequence[FrontRow], others: Sequence[Trial], part: Part, reference: float | None
) -> list[float] | None:
    """From below the front and its baselines to above the teacher; a student that collapsed must not squeeze the
    rest.
    """
    front = [_percent(t, part) for row in rows for t in (row.trial, row.baseline) if t and _has(t, part)]
    if not front:
        return None
    shown = [*front, *(_percent(trial, part) for trial in others)]
    high = max(shown) if reference is None else max(*shown, 100 * reference)
    span = max(high - min(front), 1.0)
    low = max(min(shown), min(front) - 0.4 * span)
    return [low - 0.07 * span, high + 0.09 * span]


def _has(trial: Trial, part: Part) -> bool:
    return trial.scores.get(part) is not None


def _percent(trial: Trial, part: Part) -> float:
    return 100 * (trial.scores.mean(part) or 0.0)
