"""The search as pictures: how the front grew from trial to trial, which settings matter to each objective, and what the
score of the source languages costs that of the targets where both are searched for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from raykd.figures.front import candidates, front_of, hypervolumes
from raykd.figures.table import DEV, TARGET_DEV, Directions, selecting
from raykd.figures.trial import Teacher, Trial, score_label_of, score_name_of
from raykd.report.look import FONT, GOLD, GREY, INK, LOOKS, PAPER, dress

MOST_SETTINGS = 15
"""Settings that are shown, the most important ones."""
TEXTURES = ("", "/", ".", "x", "-", "+")
"""Of the bars of each objective, for whoever cannot tell colours."""

Importances = Mapping[str, Mapping[str, float]]
"""Objective → setting → the share of its variance that the setting explains."""


def volume_picture(
    trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> go.Figure | None:
    """The share of the teacher's box that all trials up to each one dominate; None where it has no two points."""
    grown = hypervolumes(trials, teachers, objectives)
    if len(grown) < 2:
        return None
    figure = go.Figure()
    figure.add_scatter(
        x=[number for number, _ in grown], y=[round(100 * volume, 3) for _, volume in grown],
        mode="lines+markers" if len(grown) <= 60 else "lines",
        line={"shape": "hv", "color": INK, "width": 2}, marker={"size": 5},
        hovertemplate="trial #%{x}: %{y:.2f} %<extra></extra>", showlegend=False,
    )  # fmt: skip
    dress(figure, height=300)
    figure.update_layout(margin={"t": 26})
    volumes = [100 * volume for _, volume in grown]
    room = max(0.06 * (max(volumes) - min(volumes)), 0.5)
    figure.update_xaxes(title_text="trial", tickformat="d", dtick=math.ceil(grown[-1][0] / 10) or 1)
    figure.update_yaxes(title_text="hypervolume, %", range=[min(volumes) - room, max(volumes) + room])
    return figure


def scores_picture(
    trials: Sequence[Trial], teachers: Sequence[Teacher], objectives: Directions
) -> go.Figure | None:
    """Dev of the target languages over dev of the source languages: the students that are on the front of these two,
    whatever else was searched for, the other students, and the teachers; None where the search was not for both."""
    score_name = score_name_of([*teachers, *trials])
    if any(objectives.keys().isdisjoint(figure.answers_to(score_name)) for figure in (DEV, TARGET_DEV)):
        return None
    both: Directions = {figure.called(score_name): "max" for figure in (DEV, TARGET_DEV)}
    front = sorted(front_of(trials, both), key=lambda trial: DEV.read(trial) or 0.0)
    numbers = {trial.number for trial in front}
    others = [trial for trial in candidates(trials, both) if trial.number not in numbers]
    label = score_label_of([*teachers, *trials])
    figure = go.Figure()
    for name, own, more in (
        ("dominated", others, {"mode": "markers", "marker": {"size": 9, "color": GREY, "opacity": 0.7}}),
        ("front", front, {
            "mode": "lines+markers+text", "line": {"shape": "vh", "color": INK, "width": 2},
            "marker": {"size": 22, "color": LOOKS[0].colour, "line": {"color": PAPER, "width": 1.2}},
            "textfont": {"size": 10, "color": PAPER, "family": FONT}, "textposition": "middle center",
        }),
        ("teacher", teachers, {"mode": "markers", "marker": {"size": 16, "symbol": "star", "color": GOLD}}),
    ):  # fmt: skip
        known = [
            (each, source, target)
            for each in own
            if (source := DEV.read(each)) is not None and (target := TARGET_DEV.read(each)) is not None
        ]
        if known:
            figure.add_scatter(
                x=[round(100 * source, 2) for _, source, _ in known],
                y=[round(100 * target, 2) for _, _, target in known],
                text=[f"{each.number:02d}" if isinstance(each, Trial) else each.name for each, _, _ in known],
                name=name, hovertemplate="%{text}: source %{x:.1f}, targets %{y:.1f}<extra></extra>", **more,
            )  # fmt: skip
    dress(figure, height=420)
    figure.update_xaxes(title_text=f"dev {label} of source languages, %")
    figure.update_yaxes(title_text=f"dev {label} of target languages, %")
    return figure


def importance_picture(shares: Importances, scored: Sequence[Trial | Teacher]) -> go.Figure | None:
    """A bar for each setting and objective, the setting that matters most at the top; None without any."""
    if not shares:
        return None
    known = selecting(score_name_of(scored))
    total: dict[str, float] = {}
    for own in shares.values():
        for name, share in own.items():
            total[name] = total.get(name, 0.0) + share
    names = sorted(total, key=lambda name: total[name])[-MOST_SETTINGS:]
    figure = go.Figure()
    for place, (objective, own) in reversed(list(enumerate(shares.items()))):
        figure_of = known.get(objective)
        label = figure_of.heading if figure_of and figure_of.score else objective
        figure.add_bar(
            y=names, x=[round(100 * own.get(name, 0.0), 1) for name in names], orientation="h",
            name=label.format(label=score_label_of(scored)),
            marker={
                "color": LOOKS[place % len(LOOKS)].colour,
                "pattern": {"shape": TEXTURES[place % len(TEXTURES)], "size": 6},
            },
            hovertemplate="%{y}: %{x:.0f} %<extra>%{fullData.name}</extra>",
        )  # fmt: skip
    dress(figure, height=86 + len(names) * (10 + 13 * len(shares)))
    figure.update_layout(barmode="group", bargap=0.25, legend={"traceorder": "reversed"}, hovermode="closest")
    figure.update_xaxes(title_text="share of the variance, %", range=[0, 102])
    figure.update_yaxes(automargin=True, showgrid=False, ticklabelstandoff=6)
    return figure
