"""The labels above a run's curves: where its stages begin, and below them the steps in which layers are unfrozen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import plotly.graph_objects as go

from raykd.report.curves import Curve
from raykd.report.look import GREY, INK, QUIET

ROW = 17
"""Pixels of one row of labels."""
NARROW, CHARACTER = 620, 6.4
"""Pixels: the plot in a narrow window, and a character. Labels that would touch there get rows of their own."""


@dataclass(frozen=True)
class Label:
    """A text where something begins."""

    epoch: int
    text: str
    row: int
    """Counted upwards."""
    leftwards: bool
    """Whether it ends where it stands: to the right there is no room."""


@dataclass
class Rows:
    """Gives each label the lowest row in which it touches no other one. `epochs`: how many there are."""

    epochs: int
    taken: list[list[tuple[float, float]]] = field(default_factory=list)

    def label(self, epoch: int, text: str) -> Label:
        """The label of what begins with `epoch`."""
        at, width = epoch * NARROW / self.epochs, CHARACTER * len(text) + 8
        leftwards = at + width > NARROW
        left, right = (at - width, at) if leftwards else (at, at + width)
        free = (row for row, own in enumerate(self.taken) if all(b <= left or right <= a for a, b in own))
        row = next(free, len(self.taken))
        self.taken += [[]] if row == len(self.taken) else []
        self.taken[row].append((left, right))
        return Label(epoch, text, row, leftwards)


def add_labels(figure: go.Figure, curve: Curve, *, height: int) -> int:
    """Lines and labels where stages and steps begin. `height`: of the plot, in pixels. Returns the rows of labels."""
    steps, stages = Rows(len(curve.dev)), Rows(len(curve.dev))
    of_steps = [steps.label(step.first, step.layers) for step in curve.steps if step.layers]
    firsts = {step.stage: step.first for step in reversed(curve.steps)} if len(curve.stages) > 1 else {}
    of_stages = [
        stages.label(first, f"stage {stage + 1} {curve.stages[stage]}")
        for stage, first in sorted(firsts.items())
    ]
    _add(figure, of_steps, 0, {"size": 11, "color": QUIET}, {"width": 1, "dash": "dot"}, height)
    _add(figure, of_stages, len(steps.taken), {"size": 13, "color": INK}, {"width": 1.3}, height)
    return len(steps.taken) + len(stages.taken)


def _add(
    figure: go.Figure, labels: Iterable[Label], lowest: int, font: dict, line: dict, height: int
) -> None:
    for label in labels:
        up = ROW * (lowest + label.row)
        figure.add_annotation(
            x=label.epoch + 0.5, y=1, yref="paper", yshift=up, yanchor="bottom", text=label.text, font=font,
            xanchor="right" if label.leftwards else "left", xshift=-3 if label.leftwards else 3, showarrow=False,
        )  # fmt: skip
        figure.add_shape(
            type="line", x0=label.epoch + 0.5, x1=label.epoch + 0.5, y0=0, y1=1 + (up + ROW) / height,
            yref="paper", layer="below", line={"color": GREY, **line},
        )  # fmt: skip
