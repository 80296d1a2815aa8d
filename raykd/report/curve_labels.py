"""The labels above a run's curves: where its stages begin, and below them the steps in which layers are unfrozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raykd.report.curves import Curve

WIDE, NARROW, CHARACTER = 620, 270, 6.4
"""Pixels: the plot in a window of a screen and in that of a phone, and a character. Labels that would touch there get
rows of their own."""


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
    """Gives each label the lowest row in which it touches no other one. `epochs`: how many there are; `width`: of the
    plot, in pixels."""

    epochs: int
    width: int = WIDE
    taken: list[list[tuple[float, float]]] = field(default_factory=list)

    def label(self, epoch: int, text: str) -> Label:
        """The label of what begins with `epoch`."""
        at, width = epoch * self.width / self.epochs, CHARACTER * len(text) + 8
        leftwards = at + width > self.width and at > width
        left, right = (at - width, at) if leftwards else (at, at + width)
        free = (row for row, own in enumerate(self.taken) if all(b <= left or right <= a for a, b in own))
        row = next(free, len(self.taken))
        self.taken += [[]] if row == len(self.taken) else []
        self.taken[row].append((left, right))
        return Label(epoch, text, row, leftwards)


def labels_of(curve: Curve, *, width: int) -> list[list[Any]]:
    """What begins where, for a plot of `width` pixels: [epoch from 0, text, row, leftwards, whether it is a stage]."""
    steps, stages = Rows(len(curve.dev), width), Rows(len(curve.dev), width)
    of_steps = [steps.label(step.first, step.layers) for step in curve.steps if step.layers]
    firsts = {step.stage: step.first for step in reversed(curve.steps)} if len(curve.stages) > 1 else {}
    of_stages = [
        stages.label(first, f"stage {stage + 1} {curve.stages[stage]}")
        for stage, first in sorted(firsts.items())
    ]
    above = len(steps.taken)
    return [
        *([each.epoch, each.text, each.row, each.leftwards, False] for each in of_steps),
        *([each.epoch, each.text, above + each.row, each.leftwards, True] for each in of_stages),
    ]
