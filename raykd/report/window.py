"""The part of the plane that the picture of the front shows, and what lies beyond its edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FAR = 0.5
"""How far right of the slowest student, in widths of the students' range, a teacher is still inside: one farther
would leave the picture empty."""
FAR_SCORE = 2.0
"""How far from the front's scores, in heights of its range, a teacher or a gold baseline is still inside."""
LEAST = 8.0
"""Points of score that count as the height of a front at least, where it is asked what is far from it."""
LOWEST = 4.0
"""Points of score that the picture shows at least."""
LOG_FROM = 6.0
"""Slowest over fastest from which the latency axis is logarithmic."""


@dataclass(frozen=True)
class Window:
    """Latencies in ms, from the left edge to the right; scores in percent, from below to above."""

    x: tuple[float, float]
    y: tuple[float, float]
    log: bool = False
    """Whether the axis of latencies is logarithmic."""

    def inside(self, y: float) -> bool:
        """Whether a score is shown where it is."""
        return self.y[0] <= y <= self.y[1]

    def clipped(self, x: float, y: float) -> tuple[float, float]:
        """The point, or the nearest one on the edge."""
        return min(max(x, self.x[0]), self.x[1]), min(max(y, self.y[0]), self.y[1])

    def axis(self) -> dict[str, Any]:
        """Plotly's axis of latencies; logarithmic ones have plain numbers."""
        if not self.log:
            return {"range": list(self.x)}
        low, high = (math.log10(edge) for edge in self.x)
        ticks = [m * 10.0**e for e in range(math.floor(low) - 1, math.ceil(high) + 2) for m in (1, 2, 5)]
        text = [f"{tick:g}" for tick in ticks]
        return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": text}


def window_of(
    latencies: Sequence[float],
    teacher_latency: float | None,
    front: Sequence[float],
    others: Iterable[float],
    compared: Iterable[float],
) -> Window:
    """What shows all students of the front, and what is not far from them. Scores in percent.

    `others`: of dominated students, of which one that collapsed must not squeeze the rest; `compared`: of the teacher
    and of gold baselines, which belong to the picture unless they are very far.
    """
    reach = _reach(latencies)
    near = [teacher_latency] if teacher_latency and teacher_latency <= reach else []
    x, log = _latencies([*latencies, *near])
    return Window(x, _scores(front, list(others), list(compared)), log)


def _reach(latencies: Sequence[float]) -> float:
    """The latency up to which a teacher is inside."""
    if not latencies:
        return 0.0
    return max(latencies) + FAR * max(max(latencies) - min(latencies), 0.6 * max(latencies))


def _latencies(latencies: Sequence[float]) -> tuple[tuple[float, float], bool]:
    """From the fastest to the slowest with a little room; logarithmic where they lie far apart."""
    if not latencies:
        return (0.0, 1.0), False
    low, high = min(latencies), max(latencies)
    if low > 0 and high / low >= LOG_FROM:
        room = (high / low) ** 0.06
        return (low / room, high * room), True
    room = 0.07 * max(high - low, 0.6 * high)
    return (max(0.0, low - room), high + room), False


def _scores(
    front: Sequence[float], others: Sequence[float], compared: Sequence[float]
) -> tuple[float, float]:
    if not front:
        return 0.0, 100.0
    far = FAR_SCORE * max(max(front) - min(front), LEAST)
    shown = [*front, *(score for score in compared if min(front) - far <= score <= max(front) + far)]
    high = max([*shown, *others])
    span = max(high - min(shown), LOWEST)
    low = max(min([*shown, *others]), min(shown) - max(0.4 * span, LEAST))
    room = max(0.0, LOWEST - (high - low)) / 2
    span = high - low + 2 * room
    return low - room - 0.07 * span, high + room + 0.09 * span
