"""The front as a picture: F1 against latency, marker area for size, the teacher as the line to reach.

What is loud matters: the front is large and coloured by objective, the gold baselines of the same shapes
are hollow and tied to their students, dominated students are small and grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Literal

import plotly.graph_objects as go

from raykd.front import OBJECTIVES, Directions
from raykd.report.form import count, gain, milliseconds, percent, spread, times
from raykd.report.front_rows import FrontRow, competes, front_rows
from raykd.trial import Teacher, Trial, metric_of, teacher_f1

Part = Literal["dev", "test"]

INK, QUIET, GRID, GREY = "#1d2733", "#66727f", "#edf0f3", "#b9c2cb"
GOLD, TIE = "#c58a00", "#e3c47d"
PALETTE = ("#0b6fb8", "#d1495b", "#2a9d6f", "#7b4fb5", "#c2571a", "#1595a3", "#8a6d3b", "#5a6b7b")
FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
SMALLEST, LARGEST = 11.0, 31.0
"""Marker diameters in pixels; area is in proportion to the number of parameters between them."""
FAR = 0.5
"""How far right of the slowest student, in widths of the students' range, a teacher is still drawn: one
farther would leave the picture empty."""
HOVER_WIDTH = 76
LOG_FROM = 6.0
"""Slowest over fastest from which the latency axis is logarithmic."""


def front_figure(
    trials: Iterable[Trial],
    teachers: Sequence[Teacher] = (),
    *,
    part: Part = "dev",
    objectives: Directions = OBJECTIVES,
) -> go.Figure:
    """F1 of dev or test (percent) against latency (ms, p50 at batch 1).

    The front is chosen on dev whichever part is shown, so on test its line may bend.
    """
    trials = list(trials)
    rows = [
        row for row in front_rows(trials, teachers, objectives=objectives) if _f1(row.trial, part) is not None
    ]
    standing = {row.trial.number for row in rows}
    others = [t for t in trials if competes(t) and t.number not in standing and _f1(t, part) is not None]
    size = Sizes([row.trial for row in rows] + others)
    latencies = [t.latency_ms for t in (*(row.trial for row in rows), *others) if t.latency_ms]
    reach = _reach(latencies)
    near = [t.latency_ms for t in teachers if t.latency_ms and t.latency_ms <= reach]
    loud = [
        _percent(t, part) for row in rows for t in (row.trial, row.baseline) if t and _f1(t, part) is not None
    ]
    figure = go.Figure()
    _dominated(figure, others, part, size)
    _front_line(figure, rows, part)
    _baselines(figure, rows, part, size)
    _front(figure, rows, part, size)
    _teacher(figure, teachers, part, reach)
    _layout(figure, f"{part} {metric_of([*teachers, *trials])}")
    figure.update_xaxes(_latency_axis(latencies + near))
    quiet = [_percent(t, part) for t in others]
    figure.update_yaxes(range=_f1_range(loud, quiet, teacher_f1(teachers, part)))
    if not rows:
        told = {"size": 18, "color": QUIET}
        figure.add_annotation(text="no complete student yet", showarrow=False, font=told)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    return figure


class Sizes:
    """Marker diameters in pixels, their areas in proportion to parameters."""

    def __init__(self, trials: Sequence[Trial]):
        self._largest = max((t.parameters or 0 for t in trials), default=0) or 1

    def of(self, trial: Trial) -> float:
        """Never below SMALLEST: a tiny student must stay easy to hit."""
        return max(SMALLEST, LARGEST * math.sqrt((trial.parameters or 0) / self._largest))


def colours(trials: Iterable[Trial]) -> Mapping[str, str]:
    """A colour for each objective, the same in every picture of a sweep."""
    kinds = sorted({trial.objective for trial in trials if trial.role == "search"})
    return MappingProxyType({kind: PALETTE[i % len(PALETTE)] for i, kind in enumerate(kinds)})


def _dominated(figure: go.Figure, others: Sequence[Trial], part: Part, size: Sizes) -> None:
    if others:
        figure.add_scatter(
            x=[t.latency_ms for t in others],
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
    """Steps along the best F1 for any latency; students that stand for their size alone lie below it."""
    steps: list[Trial] = []
    for row in rows:
        if not steps or _percent(row.trial, part) > _percent(steps[-1], part):
            steps.append(row.trial)
    if len(steps) < 2:
        return
    figure.add_scatter(
        x=[trial.latency_ms for trial in steps],
        y=[_percent(trial, part) for trial in steps],
        mode="lines",
        line={"shape": "hv", "color": INK, "width": 2},
        opacity=0.75,
        hoverinfo="skip",
        showlegend=False,
    )


def _baselines(figure: go.Figure, rows: Sequence[FrontRow], part: Part, size: Sizes) -> None:
    twins = [
        (row.trial, row.baseline) for row in rows if row.baseline and _f1(row.baseline, part) is not None
    ]
    if not twins:
        return
    ties_x = [x for student, _ in twins for x in (student.latency_ms, student.latency_ms, None)]
    ties_y = [y for student, twin in twins for y in (_percent(twin, part), _percent(student, part), None)]
    tie = {"color": TIE, "width": 1.2, "dash": "dot"}
    figure.add_scatter(x=ties_x, y=ties_y, mode="lines", line=tie, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        # At the student's latency: it is the same shape, so a difference would be noise of the probe.
        x=[student.latency_ms for student, _ in twins],
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
        own = [row for row in rows if row.trial.objective == kind]
        figure.add_scatter(
            x=[row.trial.latency_ms for row in own],
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


def _teacher(figure: go.Figure, teachers: Sequence[Teacher], part: Part, reach: float) -> None:
    """A line to reach, and a star where the teacher stands.

    One far slower than `reach` stands beyond the edge.
    """
    reference = teacher_f1(teachers, part)
    if reference is None:
        return
    y = 100 * reference
    latency = max((t.latency_ms or 0.0 for t in teachers), default=0.0)
    figure.add_hline(y=y, line={"color": GOLD, "width": 1.5, "dash": "dash"}, layer="below")
    far = latency > reach
    cost = f" · at {milliseconds(latency)} ms{' →' if far else ''}" if latency else ""
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
            hovertext=["<br>".join(_teacher_line(t, part) for t in teachers)],
            hoverinfo="text",
        )


def _teacher_line(teacher: Teacher, part: Part) -> str:
    f1 = percent(getattr(teacher, f"{part}_f1"))
    there = _target(teacher) if part == "test" else ""
    cost = f"{count(teacher.parameters)} parameters · {milliseconds(teacher.latency_ms)} ms"
    return f"<b>{escape(teacher.name)}</b><br>{part} {escape(teacher.metric)} {f1}{there} · {cost}"


def _target(scored: Trial | Teacher) -> str:
    """The mean over target languages, to stand behind the test's score; nothing where there are none."""
    if scored.test_f1_target is None:
        return ""
    return f", target {percent(scored.test_f1_target)}{spread(getattr(scored, 'test_f1_target_sd', None))}"


def _reach(latencies: Sequence[float]) -> float:
    """The latency up to which a teacher is drawn where it stands."""
    if not latencies:
        return 0.0
    return max(latencies) + FAR * max(max(latencies) - min(latencies), 0.6 * max(latencies))


def _layout(figure: go.Figure, score: str) -> None:
    words = {"family": FONT, "size": 13, "color": INK}
    figure.update_layout(
        template="plotly_white",
        font=words,
        margin={"l": 60, "r": 16, "t": 44, "b": 56},
        hoverlabel={"bgcolor": "white", "bordercolor": GREY, "font": words, "align": "left"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "itemsizing": "constant"},
        hovermode="closest",
        height=560,
    )
    plain = {"gridcolor": GRID, "zeroline": False, "title_font": {"color": QUIET, "size": 13}}
    figure.update_xaxes(**plain, title_text="latency, ms per sentence (p50, batch 1, one thread)")
    figure.update_yaxes(**plain, title_text=f"{score}, %")


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


def _f1_range(loud: Sequence[float], quiet: Sequence[float], reference: float | None) -> list[float] | None:
    """From below the front and its baselines to above the teacher: a collapsed student must not squeeze the
    rest.
    """
    if not loud:
        return None
    shown = [*loud, *quiet]
    high = max(shown) if reference is None else max(*shown, 100 * reference)
    span = max(high - min(loud), 1.0)
    low = max(min(shown), min(loud) - 0.4 * span)
    return [low - 0.07 * span, high + 0.09 * span]


def hover(trial: Trial, row: FrontRow | None = None) -> str:
    """All that is known of a trial, for the box beside its marker: figures first, then every setting."""
    own = ", ".join(map(percent, trial.dev_f1_by_seed))
    seeds = f" over {len(trial.run_ids)} seeds" + f" ({own})" * bool(own) if len(trial.run_ids) > 1 else ""
    metric = escape(trial.metric)
    lines = [
        f"<b>{escape(trial.name)}</b>",
        f"dev {metric} <b>{percent(trial.dev_f1)}</b>{spread(trial.dev_f1_sd)}{seeds}"
        f" · test {metric} {percent(trial.test_f1)}{spread(trial.test_f1_sd)}{_target(trial)}",
        " ".join(f"{language} {percent(f1)}" for language, f1 in trial.dev_f1_by_language.items()),
        f"{milliseconds(trial.latency_ms)} ms (p90 {milliseconds(trial.latency_ms_p90)})"
        f" · {count(trial.parameters)} parameters",
        f"{times(trial.speedup)} faster and {times(trial.compression)} smaller than the teacher",
    ]
    if row is not None and row.dev_gain is not None:
        lines.append(f"<b>{gain(row.dev_gain)}</b> dev {metric} over the same shape on gold labels alone")
    return "<br>".join([line for line in lines if line] + ["", *_settings(trial)])


def _settings(trial: Trial) -> list[str]:
    """Every setting, a paragraph for each section, so that a long configuration stays inside the picture."""
    sections: dict[str, list[str]] = {}
    for path, value in trial.settings.items():
        section, _, name = path.partition(".")
        sections.setdefault(section, []).append(f"{name} {value}".strip())
    told = (f"{section}: {', '.join(values)}" for section, values in sections.items())
    return [
        escape(line) for paragraph in told for line in wrap(paragraph, HOVER_WIDTH, subsequent_indent="    ")
    ]


def _f1(trial: Trial, part: Part) -> float | None:
    return getattr(trial, f"{part}_f1")


def _percent(trial: Trial, part: Part) -> float:
    return 100 * (_f1(trial, part) or 0.0)
