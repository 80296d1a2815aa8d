"""What a loss takes away from log Z and its gradient: the scores and counts of labellings, or of given moments.

Plain loops over each sentence's own rows, after `sums.sum_product` has filled token and pair with the chain's moments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raykd.structures.compiled.blocks import kernel, reassociating_kernel


class Target(NamedTuple):
    """Given moments, flat; pair, start and end are empty where the chain has no such scores."""

    token: np.ndarray
    pair: np.ndarray
    start: np.ndarray
    end: np.ndarray


@kernel
def subtract_paths(problem, paths, weights, value, token, pair, first, last):
    """value ← Σ_k w_k (value − score(path_k)), token and pair ← Σ_k w_k (moments − counts of path_k)."""
    time, tags, best = problem.time, problem.tags, weights.shape[1]
    transitions, start, end = problem.transitions, problem.start, problem.end
    for sentence in range(first, last):
        size, row, cell = problem.lengths[sentence], sentence * time * tags, sentence * tags * tags
        scores, total = sentence * problem.transitions_step, 0.0
        for k in range(best):
            total += weights[sentence, k]
        if total != 1.0 and len(token):
            scale_by(token, row, time * tags, total)
            scale_by(pair, cell, tags * tags if len(pair) else 0, total)
        score = 0.0
        for k in range(best):
            weight = weights[sentence, k]
            if weight == 0:
                continue
            path = paths[sentence, k]
            here = float(start[sentence * problem.start_step + path[0]])
            for t in range(size):
                here += problem.emissions[row + t * tags + path[t]]
                if t:
                    here += transitions[scores + path[t - 1] * tags + path[t]]
            here += end[sentence * problem.end_step + path[size - 1]]
            score += weight * here
            if len(token):
                for t in range(size):
                    token[row + t * tags + path[t]] -= weight
            if len(pair):
                for t in range(1, size):
                    pair[cell + path[t - 1] * tags + path[t]] -= weight
        value[sentence] = total * value[sentence] - score


@kernel
def scale_by(values, first, count, factor):
    for k in range(first, first + count):
        values[k] *= factor


@kernel
def subtract_moments(problem, target, value, token, pair, first, last):
    """value ← value − ⟨target, scores⟩, token and pair ← moments − target."""
    time, tags = problem.time, problem.tags
    for sentence in range(first, last):
        size, row, cell = problem.lengths[sentence] * tags, sentence * time * tags, sentence * tags * tags
        score = expected(problem.emissions, row, target.token, row, size)
        if len(target.pair):
            at = sentence * problem.transitions_step
            score += expected(problem.transitions, at, target.pair, cell, tags * tags)
        if len(target.start):
            at = sentence * problem.start_step
            score += expected(problem.start, at, target.start, sentence * tags, tags)
        if len(target.end):
            at = sentence * problem.end_step
            score += expected(problem.end, at, target.end, sentence * tags, tags)
        value[sentence] -= score
        if len(token):
            take_away(token, target.token, row, size)
        if len(pair):
            take_away(pair, target.pair, cell, tags * tags)


@reassociating_kernel
def expected(scores, at, counts, first, count):
    """Σ scores · counts, where a count of zero outweighs a score of −∞."""
    total = 0.0
    for k in range(count):
        weight = counts[first + k]
        total += scores[at + k] * weight if weight != 0 else 0.0
    return total


@kernel
def take_away(values, counts, first, count):
    for k in range(first, first + count):
        values[k] -= counts[k]
