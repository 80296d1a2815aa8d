"""The score of each language beside how many labels it has to train on (Mukherjee & Awadallah 2020, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from raykd.report.front_rows import FrontRow
from raykd.report.look import AXIS, GOLD, GREY, dress
from raykd.results import Part
from raykd.trial import Teacher

BAR = "#e3e8ed"
MANY = 20
"""Languages whose names, side by side, would touch in a narrow window."""
Labels = Mapping[int, Mapping[str, int]]
"""Trial → language → how many labels its training text has; languages without any are left out."""


def language_picture(
    rows: Sequence[FrontRow],
    teachers: Sequence[Teacher],
    labels: Labels,
    colours: Mapping[str, str],
    *,
    part: Part,
    label: str,
) -> go.Figure | None:
    """The scores of the teacher, of one student of the front with its gold baseline, and faintly of all others; bars
    for labels. None where there are fewer than two languages.

    Languages with the most labels are first. The traces of one student have its trial's number in `meta`: the page
    shows those of the student that is chosen there. `colours`: of the kinds of trials; `label`: what the score is
    called.
    """
    # Sweeps that were recorded before labels were counted have none.
    labels = {number: own for number, own in labels.items() if own}
    scores = {row.trial.number: row.trial.scores.by_language(part) for row in rows}
    languages = _sorted(dict.fromkeys(name for own in scores.values() for name in own), labels)
    if len(languages) < 2:
        return None
    figure = go.Figure()
    _bars(figure, languages, labels)
    _others(figure, scores)
    teacher: dict[str, float] = {}
    for each in teachers:
        own = each.scores.by_language(part)
        teacher |= {name: max(value, teacher.get(name, 0.0)) for name, value in own.items()}
    if teacher:
        _points(
            figure, teacher, languages, name="teacher", mode="lines", line={"color": GOLD, "dash": "dash"}
        )
    for row in rows:
        _student(figure, row, languages, part, colours[row.trial.kind])
    _frame(figure, languages, score=f"{part} {label}", labels=bool(labels))
    return figure


def _sorted(languages: Sequence[str] | dict[str, None], labels: Labels) -> list[str]:
    """The most labels first; where settings train on different text, its largest counts."""
    most = {name: max((own.get(name, 0) for own in labels.values()), default=0) for name in languages}
    return sorted(most, key=lambda name: -most[name])


def _bars(figure: go.Figure, languages: Sequence[str], labels: Labels) -> None:
    for number, own in labels.items():
        figure.add_bar(
            x=languages, y=[own.get(name, 0) for name in languages], meta=number, name="labels",
            marker={"color": BAR, "line": {"width": 0}}, hovertemplate="%{y:,} training labels<extra></extra>",
        )  # fmt: skip


def _others(figure: go.Figure, scores: Mapping[int, Mapping[str, float]]) -> None:
    """Every student of the front, small and grey."""
    points = [(name, value) for own in scores.values() for name, value in own.items()]
    figure.add_scatter(
        x=[name for name, _ in points], y=[_percent(value) for _, value in points], yaxis="y2", mode="markers",
        name="other students", marker={"size": 5, "color": GREY, "opacity": 0.8}, hoverinfo="skip",
    )  # fmt: skip


def _student(figure: go.Figure, row: FrontRow, languages: Sequence[str], part: Part, colour: str) -> None:
    own = {"meta": row.trial.number, "mode": "lines+markers"}
    if row.baseline is not None:
        hollow = {"size": 8, "color": "white", "line": {"color": GOLD, "width": 1.6}}
        _points(
            figure, row.baseline.scores.by_language(part), languages, name="gold labels only",
            marker=hollow, **{**own, "mode": "markers"},
        )  # fmt: skip
    name = escape(f"#{row.trial.number:02d} {row.trial.method}")
    line, marker = {"color": colour, "width": 1.2}, {"size": 8, "color": colour}
    _points(figure, row.trial.scores.by_language(part), languages, name=name, line=line, marker=marker, **own)


def _points(
    figure: go.Figure, scores: Mapping[str, float], languages: Sequence[str], *, name: str, **look: Any
) -> None:
    known = [language for language in languages if language in scores]
    figure.add_scatter(
        x=known, y=[_percent(scores[language]) for language in known], yaxis="y2", name=name,
        hovertemplate=f"{name} %{{y:.1f}}<extra></extra>", **look,
    )  # fmt: skip


def _frame(figure: go.Figure, languages: Sequence[str], *, score: str, labels: bool) -> None:
    dress(figure, height=380, template="none")
    order = {"categoryorder": "array", "categoryarray": languages}
    figure.update_layout(
        hovermode="x unified",
        margin={"l": 60, "r": 64 if labels else 16, "t": 44, "b": 30},
        xaxis={
            **order,
            "showgrid": False,
            "dtick": 1,
            "ticklabelstandoff": 4,
            "tickangle": -90 if len(languages) > MANY else 0,
        },
        # Bars are on the axis below the other one, so that points are never behind them.
        yaxis={"side": "right", "title_text": "training labels", "showgrid": False, "visible": labels},
        yaxis2={**AXIS, "side": "left", "overlaying": "y", "tickmode": "auto", "title_text": f"{score}, %"},
    )


def _percent(score: float) -> float:
    return round(100 * score, 2)
