"""Reliability: whether what has probability p is right in a share p of the cases.

Shapes: N predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 10


@dataclass(frozen=True)
class Bin:
    """Predictions with a probability in one interval.

    Attributes:
        above: Lower end of the interval; the upper end is 1 / `BINS` higher, and belongs to it.
        count: Predictions.
        confidence: Mean probability.
        accuracy: Share of right predictions.
    """

    above: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """Predictions by their probability, and the expected calibration error.

    Attributes:
        bins: The intervals with predictions, in ascending order.
        error: Mean over predictions of the difference between confidence and accuracy of their bin, from 0 to 1.
    """

    bins: tuple[Bin, ...]
    error: float

    @property
    def count(self) -> int:
        """Number of predictions."""
        return sum(part.count for part in self.bins)


def reliability(probabilities_N: Sequence[float], right_N: Sequence[bool]) -> Reliability:
    """Return the reliability of predictions, in bins of equal width (Guo et al. 2017, Eq. 3).

    Args:
        probabilities_N: Probability of each prediction.
        right_N: True for a right prediction.

    Raises:
        ValueError: The two differ in length.
    """
    confidences, right = np.asarray(probabilities_N, np.float64), np.asarray(right_N, np.float64)
    if confidences.shape != right.shape:
        raise ValueError(f"{len(confidences)} probabilities, and {len(right)} predictions; give one for each")
    numbers = np.clip(np.ceil(confidences * BINS).astype(int) - 1, 0, BINS - 1)
    bins = [
        Bin(number / BINS, int(inside.sum()), float(confidences[inside].mean()), float(right[inside].mean()))
        for number in range(BINS)
        if (inside := numbers == number).any()
    ]
    gaps = sum(part.count * abs(part.confidence - part.accuracy) for part in bins)
    return Reliability(tuple(bins), gaps / len(right) if len(right) else 0.0)
