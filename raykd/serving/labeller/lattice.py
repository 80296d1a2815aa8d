"""Linear chains of labels: probabilities, and the best labelling.

Shapes: T words, Y labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Chain(NamedTuple):
    """Scores of neighbouring labels, and of labels that begin and end a sentence."""

    transitions_YY: np.ndarray
    """Score of a label followed by another, [from, to]."""
    start_Y: np.ndarray
    end_Y: np.ndarray


def legal_chain(stored: Mapping[str, Any], count: int) -> Chain:
    """Return scores of 0 for legal pairs, first and last labels, −∞ for illegal ones.

    Args:
        stored: Content of `legal` in `labels.json`.
        count: Number of labels.
    """

    def scores(allowed: Sequence[int]) -> np.ndarray:
        scores_Y = np.full(count, -np.inf)
        scores_Y[allowed] = 0.0
        return scores_Y

    transitions_YY = np.stack([scores(stored["next"][row]) for row in stored["after"]])
    return Chain(transitions_YY, scores(stored["first"]), scores(stored["last"]))


def sum_of_chains(first: Chain | None, second: Chain | None) -> Chain | None:
    """Return a chain with the scores of both added; None has no scores."""
    if first is None or second is None:
        return first or second
    return Chain(*(a + b for a, b in zip(first, second, strict=True)))


def divided(chain: Chain | None, temperature: float) -> Chain | None:
    """Return a chain with its scores divided by a temperature; None has no scores."""
    return chain and Chain(*(part / temperature for part in chain))


class Lattice:
    """Distribution over the labellings of one sentence, in float64.

    Args:
        scores_TY: Scores of the labels.
        chain: Scores of neighbouring labels, −∞ for illegal pairs; None: labels are independent.
    """

    def __init__(self, scores_TY: np.ndarray, chain: Chain | None):
        self.scores_TY = scores_TY.astype(np.float64)
        self.chain = chain
        if chain is None:
            self.scores_TY -= log_sum(self.scores_TY, 1)[:, None]
            return
        transitions_YY, start_Y, end_Y = chain
        forward, backward = np.empty_like(self.scores_TY), np.empty_like(self.scores_TY)
        forward[0], backward[-1] = start_Y + self.scores_TY[0], end_Y
        for t in range(1, len(forward)):
            forward[t] = log_sum(forward[t - 1][:, None] + transitions_YY, 0) + self.scores_TY[t]
        for t in reversed(range(len(backward) - 1)):
            backward[t] = log_sum(transitions_YY + (self.scores_TY[t + 1] + backward[t + 1])[None], 1)
        self._forward_TY, self._backward_TY = forward, backward
        self._log_z = log_sum(forward[-1] + end_Y, 0)

    def marginals(self) -> np.ndarray:
        """Return the probabilities of all labels by word [T, Y]."""
        if self.chain is None:
            return np.exp(self.scores_TY)
        return np.exp(self._forward_TY + self._backward_TY - self._log_z)

    def probability(self, first: int, path: np.ndarray) -> float:
        """Return the probability of the labels `path` for the words from `first` on.

        Args:
            first: Number of the first word.
            path: Labels.
        """
        last = first + len(path) - 1
        total = self.scores_TY[range(first + 1, last + 1), path[1:]].sum()
        if self.chain is None:
            return float(np.exp(total + self.scores_TY[first, path[0]]))
        total += self.chain[0][path[:-1], path[1:]].sum()
        total += self._forward_TY[first, path[0]] + self._backward_TY[last, path[-1]]
        return float(np.exp(total - self._log_z))


def best_path(scores_TY: np.ndarray, chain: Chain | None) -> np.ndarray:
    """Return the best labelling [T] of one sentence, as the model's graph finds it; among equals the first label wins.

    Args:
        scores_TY: Scores of the labels.
        chain: Scores of neighbouring labels, for Viterbi; None: the best label of each word.
    """
    if chain is None:
        return scores_TY.argmax(-1)
    transitions_YY, start_Y, end_Y = chain
    best_Y, from_TY = start_Y + scores_TY[0], []
    for row_Y in scores_TY[1:]:
        ways_YY = best_Y[:, None] + transitions_YY
        from_TY.append(ways_YY.argmax(0))
        best_Y = ways_YY.max(0) + row_Y
    path = [int((best_Y + end_Y).argmax())]
    for from_Y in reversed(from_TY):
        path.append(int(from_Y[path[-1]]))
    return np.array(path[::-1])


def log_sum(scores: np.ndarray, axis: int) -> np.ndarray:
    """Return the logarithm of the sum of exponentials along `axis`; −∞ if all are −∞."""
    peak = scores.max(axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(peak, axis) + np.log(np.exp(scores - peak).sum(axis))
