"""Pareto fronts: the candidates that no other candidate beats, and the volume that a front dominates.

Shapes: N candidates, M objectives. An objective is better when larger ("max") or smaller ("min").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float, Int

Direction = Literal["max", "min"]
"""The better direction of an objective."""
SIGNS = {"max": 1.0, "min": -1.0}


def non_dominated(
    values: Float[np.ndarray, "candidate objective"], directions: Sequence[Direction]
) -> Bool[np.ndarray, " candidate"]:
    """True for the non-dominated candidates [N].

    One dominates another if it is at least as good in every objective and better in one. So candidates that tie in
    everything stay together.

    Args:
        values: [N, M].
        directions: "max" or "min" for each of the M objectives.

    Raises:
        ValueError: A value is NaN, a direction is unknown, or directions and columns differ in number.
    """
    gains = _gains(values, directions)
    beaten = [np.any(np.all(gains >= gain, axis=1) & np.any(gains > gain, axis=1)) for gain in gains]
    return ~np.array(beaten, dtype=bool)


def front_ranks(
    values: Float[np.ndarray, "candidate objective"], directions: Sequence[Direction]
) -> Int[np.ndarray, " candidate"]:
    """Return the number of the front [N] of every candidate (non-dominated sorting, Deb et al. 2002).

    Front 0 has the candidates that no other dominates, front 1 those that only front 0 dominates, and so on.

    Args:
        values: [N, M].
        directions: "max" or "min" for each of the M objectives.

    Raises:
        ValueError: As `non_dominated`.
    """
    gains = _gains(values, directions)
    ranks = np.full(len(gains), -1)
    rest, front = np.arange(len(gains)), 0
    while len(rest):
        best = non_dominated(gains[rest], ("max",) * gains.shape[1])
        ranks[rest[best]] = front
        rest, front = rest[~best], front + 1
    return ranks


def epsilon_net(
    values: Float[np.ndarray, "candidate objective"], directions: Sequence[Direction]
) -> Int[np.ndarray, " candidate"]:
    """Return the candidates [N] in an order whose beginnings all cover the candidates evenly.

    First comes the best in the first objective, then always the candidate farthest from those before it. Distances are
    Euclidean, each objective in units of its range; of equally far candidates the first comes first. So the first k
    cover the others within at most twice the least possible radius (Gonzalez 1985).

    Args:
        values: [N, M].
        directions: "max" or "min" for each of the M objectives.

    Raises:
        ValueError: As `non_dominated`.
    """
    gains = _gains(values, directions)
    if not len(gains):
        return np.zeros(0, dtype=np.int64)
    width = np.ptp(gains, axis=0)
    points = gains / np.where(width > 0, width, 1.0)
    order = [int(points[:, 0].argmax())]
    distances = np.linalg.norm(points - points[order[0]], axis=1)
    while len(order) < len(points):
        distances[order] = -1.0
        order.append(int(distances.argmax()))
        distances = np.minimum(distances, np.linalg.norm(points - points[order[-1]], axis=1))
    return np.array(order)


def hypervolume(
    values: Float[np.ndarray, "candidate objective"],
    reference: Sequence[float],
    directions: Sequence[Direction],
) -> float:
    """Return the exact volume between the candidates and `reference`: all points dominated by a candidate.

    A candidate that is not better than the reference in every objective adds nothing. Computed by slicing (While et al.
    2006, "A faster algorithm for calculating hypervolume"): quick for two or three objectives and some thousands of
    candidates.

    Args:
        values: [N, M].
        reference: The worst corner, one value per objective.
        directions: "max" or "min" for each of the M objectives.

    Returns:
        The volume, in the product of the objectives' units.

    Raises:
        ValueError: As `non_dominated`.
    """
    gains = _gains(values, directions)
    floor = _gains(np.asarray([reference], dtype=np.float64), directions)
    heights = gains - floor
    return _volume(heights[np.all(heights > 0, axis=1)])


def _gains(values: np.ndarray, directions: Sequence[Direction]) -> np.ndarray:
    """Turn every objective so that larger is better."""
    values = np.asarray(values, dtype=np.float64)
    values = values if values.size else values.reshape(0, len(directions))
    unknown = [direction for direction in directions if direction not in SIGNS]
    if unknown:
        raise ValueError(f"a direction is 'max' or 'min', got {unknown[0]!r}")
    if values.ndim != 2 or values.shape[1] != len(directions):
        raise ValueError(
            f"{len(directions)} directions need values [N, {len(directions)}], got {values.shape}"
        )
    if np.isnan(values).any():
        row = int(np.isnan(values).any(axis=1).argmax())
        raise ValueError(f"candidate {row} (counted from 0) has a NaN; leave out what was not measured")
    return values * np.array([SIGNS[direction] for direction in directions])


def _volume(heights: np.ndarray) -> float:
    """Return the volume of the union of boxes [0, height], by slices between heights of the last objective."""
    if not len(heights):
        return 0.0
    if heights.shape[1] == 1:
        return float(heights.max())
    heights = heights[np.argsort(-heights[:, -1], kind="stable")]
    if heights.shape[1] == 2:
        widths = np.maximum.accumulate(heights[:, 0])
        return float(np.sum(widths * (heights[:, 1] - np.append(heights[1:, 1], 0.0))))
    thickness = heights[:, -1] - np.append(heights[1:, -1], 0.0)
    slices = (_volume(heights[: i + 1, :-1]) * thickness[i] for i in range(len(heights)) if thickness[i] > 0)
    return float(sum(slices))
