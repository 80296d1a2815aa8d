"""How a student was trained, as a picture: its dev score above, the losses of its stages below, over epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from raykd.report.curve_labels import CHARACTER, NARROW, ROW, add_labels
from raykd.report.curves import Curve, Step
from raykd.report.look import AXIS, GREY, PALETTE, QUIET, SHIP, dress

PLOT, BELOW, LEGEND = 380, 46, 40
"""Pixels: the height of the plot, what is under it, and the legend above it."""
SCORES, LOSSES = (0.42, 1.0), (0.0, 0.35)
"""The shares of the plot that scores and losses take."""


def curve_picture(curves: Sequence[Curve], *, label: str) -> go.Figure:
    """The first of `curves`, with the dev scores of the others faint behind it. `label`: what the score is called.

    Losses of different stages are of different sizes: where there are several, each stage has its own logarithmic
    scale, from its lowest to its highest loss. Epochs are shown from 1.
    """
    curve, *others = curves
    figure = go.Figure()
    for place, other in enumerate(others):
        _scores(figure, other, label, "others" if place == 0 else "", {"color": GREY, "width": 1})
    _scores(figure, curve, label, _named(curve, label), {"color": PALETTE[0], "width": 2})
    scales = _scales(curve)
    _losses(figure, curve, scales)
    _best(figure, curve, scales)
    rows = add_labels(figure, curve, height=PLOT)
    dress(figure, height=PLOT + BELOW + LEGEND + ROW * rows, template="none")
    figure.update_layout(
        margin={"l": 60, "r": 16, "t": LEGEND + ROW * rows, "b": BELOW},
        legend={"y": 1, "yref": "container", "yanchor": "top"},
        yaxis={"title_text": f"dev {label}, %", "domain": SCORES},
        yaxis2={**AXIS, "domain": LOSSES, "anchor": "x", **_loss_axis(scales)},
    )
    figure.update_xaxes(title_text="epoch", range=[0.5, len(curve.dev) + 0.5], anchor="y2", tickformat="d")
    if len(scales) > 1:
        _ranges(figure, curve, scales)
    return figure


@dataclass(frozen=True)
class Scale:
    """The lowest and the highest loss of a stage."""

    epochs: range
    low: float
    high: float

    def height(self, loss: float) -> float:
        """0 for the lowest loss, 1 for the highest; logarithmic where no loss is 0."""
        if self.low == self.high:
            return 0.5
        if self.low <= 0:
            return (loss - self.low) / (self.high - self.low)
        return math.log(loss / self.low) / math.log(self.high / self.low)


def _scales(curve: Curve) -> list[Scale]:
    """Of each stage that has epochs."""
    firsts = sorted({step.stage: step.first for step in reversed(curve.steps)}.values())
    scales = []
    for first, end in zip(firsts, [*firsts[1:], len(curve.dev)], strict=True):
        losses = [loss for loss in (*curve.loss[first:end], *curve.held_out[first:end]) if loss is not None]
        scales.append(Scale(range(first, end), min(losses), max(losses)))
    return scales


def _scores(figure: go.Figure, curve: Curve, label: str, legend: str, line: dict) -> None:
    figure.add_scatter(
        x0=1, dx=1, y=[_short(100 * score) for score in curve.dev], mode=_mode(curve), line=line,
        marker={"size": 4}, name=legend, showlegend=bool(legend),
        hovertemplate=f"{_named(curve, label)} %{{y:.1f}}<br>epoch %{{x}}<extra></extra>",
    )  # fmt: skip


def _named(curve: Curve, label: str) -> str:
    return escape(f"dev {label}, {curve.name}" if curve.name else f"dev {label}")


def _losses(figure: go.Figure, curve: Curve, scales: Sequence[Scale]) -> None:
    named = (("training loss", curve.loss, QUIET), ("held-out loss", curve.held_out, PALETTE[1]))
    for name, losses, colour in named:
        x, y, exact = [], [], []
        for scale in scales:
            # After each stage there is a gap: the loss of the next one is another.
            own = [(epoch, loss) for epoch in scale.epochs if (loss := losses[epoch]) is not None]
            x += [*(epoch + 1 for epoch, _ in own), None]
            y += [*(_height(scale, loss, scales) for _, loss in own), None]
            exact += [*(_short(loss) for _, loss in own), None]
        if any(value is not None for value in y):
            figure.add_scatter(
                x=x, y=y, customdata=exact, yaxis="y2", name=name, mode=_mode(curve), marker={"size": 4},
                line={"color": colour, "width": 1.5},
                hovertemplate=f"{name} %{{customdata}}<br>epoch %{{x}}<extra></extra>",
            )  # fmt: skip


def _height(scale: Scale, loss: float, scales: Sequence[Scale]) -> float:
    """On the axis of losses: one stage has its own numbers there."""
    return _short(loss if len(scales) == 1 else scale.height(loss))


def _best(figure: go.Figure, curve: Curve, scales: Sequence[Scale]) -> None:
    """A mark at the best epoch of each step, from whose weights the next one starts; also on the loss that chose it."""
    by_loss = [step for step in curve.steps if step.by_loss]
    _marks(figure, curve, curve.steps, [_short(100 * curve.dev[step.best]) for step in curve.steps], "y")
    if by_loss:
        scale = {epoch: each for each in scales for epoch in each.epochs}
        losses = [_height(scale[step.best], curve.held_out[step.best] or 0.0, scales) for step in by_loss]
        _marks(figure, curve, by_loss, losses, "y2")


def _marks(figure: go.Figure, curve: Curve, steps: Sequence[Step], y: Sequence[float], axis: str) -> None:
    figure.add_scatter(
        x=[step.best + 1 for step in steps], y=y, yaxis=axis, mode="markers", showlegend=axis == "y", cliponaxis=False,
        name="best epochs" if len(curve.steps) > 1 else "best epoch",
        marker={"size": 9, "color": SHIP, "line": {"color": "white", "width": 1.5}},
        hovertext=[f"best epoch{_place(curve, step)}: {step.best + 1}" for step in steps], hoverinfo="text",
    )  # fmt: skip


def _place(curve: Curve, step: Step) -> str:
    """Of which stage and step, in words."""
    stage = f" of stage {step.stage + 1} {curve.stages[step.stage]}" if len(curve.stages) > 1 else ""
    return f"{stage}, {step.layers}" if step.layers else stage


def _loss_axis(scales: Sequence[Scale]) -> dict[str, object]:
    if len(scales) > 1:
        # Numbers are beside each stage.
        return {
            "title_text": "loss, by stage",
            "range": [-0.1, 1.1],
            "tickvals": [0, 1],
            "showticklabels": False,
        }
    kind = "log" if scales[0].low > 0 else "linear"
    return {"title_text": "loss", "type": kind, "nticks": 5}


def _ranges(figure: go.Figure, curve: Curve, scales: Sequence[Scale]) -> None:
    """The lowest and the highest loss of each stage above its curves, where there is room."""
    for scale in scales:
        text = f"{scale.low:.3g} – {scale.high:.3g}"
        if NARROW * len(scale.epochs) / len(curve.dev) > CHARACTER * len(text):
            figure.add_annotation(
                x=scale.epochs[0] + 0.5, y=LOSSES[1], yref="paper", yanchor="bottom", xanchor="left",
                xshift=3, text=text, showarrow=False, font={"size": 11, "color": QUIET},
            )  # fmt: skip


def _mode(curve: Curve) -> str:
    """Lines; with points where these are few."""
    return "lines+markers" if len(curve.dev) <= 40 else "lines"


def _short(value: float) -> float:
    """Four digits: more would only make the page larger."""
    return float(f"{value:.4g}")
