"""The grid for comparing timed figures; the width of its steps is the noise of the measurement.

Steps are relative: a grid with step r and origin o has the values o · (1 + r) ** n. One grid serves search, front and
hypervolume of a sweep, so that no student is on the front for a difference that the next measurement would reverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from raykd.figures.results import Cost

Grid = Mapping[str, Sequence[float]]
"""Figure → step and origin of its grid."""

STEP_IN_SPREADS = 4.0
"""Width of a step in spreads. Two measurements of one shape differ by 1.4 spreads in the root mean square, so they are
mostly on the same step."""
CLOSE = 0.5
"""Shapes nearer to each other than this share of a step are kept on one step where possible."""
PHASES = 200
"""Number of origins tried within a step."""
BEYOND_IN_SPREADS, BEYOND = 3.0, 0.05
"""Two measurements contradict each other if they differ by more than `BEYOND_IN_SPREADS` spreads of both together and
by more than the share `BEYOND`: another process, with its memory elsewhere, may differ by that share."""


def compute_cost_grid(costs: Iterable[Cost]) -> dict[str, list[float]]:
    """Return a grid for each figure with a spread.

    The spreads of one figure are pooled by their root mean square.

    Args:
        costs: The costs of all shapes of a sweep.

    Returns:
        Figure → [step, origin].
    """
    measured: dict[str, list[tuple[float, float]]] = {}
    for cost in costs:
        for name, spread in cost.spreads.items():
            measured.setdefault(name, []).append((cost.figures[name], spread))
    grid = {}
    for name, pairs in measured.items():
        step = STEP_IN_SPREADS * math.sqrt(sum(spread**2 for _, spread in pairs) / len(pairs))
        if step > 0:
            step = float(f"{step:.3g}")
            grid[name] = [step, _origin([value for value, _ in pairs], step)]
    return grid


def _origin(values: Sequence[float], step: float) -> float:
    """Return the origin of the grid with the fewest borders between shapes close to each other."""
    width = math.log1p(step)
    places = np.sort([math.log(value) / width for value in values if value > 0])
    gaps = np.diff(places)

    def borders(phase: float) -> tuple[float, float]:
        split = np.diff(np.round(places - phase)) > 0
        nearest = np.abs(np.abs((places - phase) % 1.0 - 0.5)).min(initial=0.5)
        return float((split * np.maximum(CLOSE - gaps, 0.0)).sum()), -float(nearest)

    phase = min((number / PHASES for number in range(PHASES)), key=borders)
    return float(f"{math.exp(phase * width):.6g}")


def round_to_grid(value: float, step: float, origin: float = 1.0) -> float:
    """Return the value of the grid nearest to a positive `value`, by ratio; 0 and negative values stay as they are.

    Args:
        value: The value to round.
        step: Width of a step, as a share.
        origin: One value of the grid.
    """
    if value <= 0:
        return value
    width = math.log1p(step)
    return origin * math.exp(round(math.log(value / origin) / width) * width)


def measurements_contradict(value: float, second_value: float, spread: float, second_spread: float) -> bool:
    """True if the noise of two positive measurements does not explain their difference.

    Args:
        value: First measurement.
        second_value: Second measurement, in the same unit.
        spread: Standard deviation of the first, as a share of it.
        second_spread: Standard deviation of the second, as a share of it.
    """
    return abs(math.log(value / second_value)) > max(
        BEYOND, BEYOND_IN_SPREADS * math.hypot(spread, second_spread)
    )
