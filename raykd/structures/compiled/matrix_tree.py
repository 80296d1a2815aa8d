"""Sums over non-projective trees: words are removed one after the other, as in `arc_reference.py`, and put back.

Shapes: n words of a sentence. `a[t, h]` is the weight of the arc of t under h, both words; `root[t]`, under the root.
Going back, the factor p_k = Σ_h a[k, h] and the arcs that went through word k share out the marginals:

    ā[t, k] = Σ_h ā[t, h] a[k, h] / p_k       ā[k, h] = Σ_t ā[t, h] a[t, k] / p_k + p̄_k
    p̄_k = (1 − Σ_t a[t, k] ā[t, k]) / p_k     μ[t, h] = a[t, h] ā[t, h]

Errors of the marginals are absolute, of the size of float64's rounding. Weights are relative to each word's best arc;
an arc that scores some 300 nats less than that may count as impossible.
"""

from __future__ import annotations

import math

import numpy as np

from raykd.structures.compiled.blocks import kernel


@kernel
def matrix_tree(scores, lengths, order, single_root, log_z, marginals, first, last):
    """Fill log Z [B] and, unless they are empty, marginals [B, T, H] of the sentences order[first:last]."""
    time = scores.shape[1]
    others, bars = np.empty((time, time)), np.empty((time, time))
    root, root_bars, pivots, turn = np.empty(time), np.empty(time), np.empty(time), np.empty(time, np.int64)
    for number in range(first, last):
        b = order[number]
        n = lengths[b]
        base = weigh(scores[b], n, others, root)
        log_z[b] = base + remove(others, root, pivots, turn, n, single_root)
        if marginals.shape[0] == 0:
            continue
        marginals[b] = np.nan if np.isnan(log_z[b]) else 0.0
        if log_z[b] > -np.inf:
            put_back(others, root, pivots, bars, root_bars, n, single_root)
            weigh(scores[b], n, others, root)
            for i in range(n):
                t = turn[i]
                marginals[b, t, 0] = max(0.0, root[t] * root_bars[i])
                for j in range(n):
                    if j != i:
                        marginals[b, t, turn[j] + 1] = max(0.0, others[t, turn[j]] * bars[i, j])


@kernel
def weigh(scores, n, others, root):
    """Weights of arcs, each word's best one; the sum of the best arcs' scores is returned."""
    base = 0.0
    for t in range(n):
        peak = -np.inf
        for h in range(n + 1):
            if h != t + 1 and (scores[t, h] > peak or np.isnan(scores[t, h])):  # NaN stays: it is not hidden
                peak = scores[t, h]
        if peak == -np.inf:
            peak = 0.0
        base += peak
        root[t] = math.exp(scores[t, 0] - peak)
        for h in range(n):
            others[t, h] = 0.0 if h == t else math.exp(scores[t, h + 1] - peak)
    return base


@kernel
def remove(others, root, pivots, turn, n, single_root):
    """Σ log p_k. The word with the most heads left is next; words change places, so that `turn` is the order.

    What was multiplied stays in place, as in LU.
    """
    for t in range(n):
        turn[t] = t
    log_z = 0.0
    for k in range(n):
        found, pivot = k, -1.0
        for t in range(k, n):
            total = 0.0 if single_root and k < n - 1 else root[t]
            for h in range(k, n):
                total += others[t, h]
            if total > pivot:
                found, pivot = t, total
        if not pivot > 0:
            return np.nan if pivot < 0 else -np.inf
        change_places(others, root, turn, k, found, n)
        pivots[k] = pivot
        log_z += math.log(pivot)
        for t in range(k + 1, n):
            share = others[t, k] / pivot
            root[t] += share * root[k]
            for h in range(k + 1, n):
                others[t, h] += share * others[k, h]
            others[t, t] = 0.0
    return log_z


@kernel
def change_places(others, root, turn, k, t, n):
    if k != t:
        turn[k], turn[t] = turn[t], turn[k]
        root[k], root[t] = root[t], root[k]
        for i in range(n):
            others[k, i], others[t, i] = others[t, i], others[k, i]
        for i in range(n):
            others[i, k], others[i, t] = others[i, t], others[i, k]


@kernel
def put_back(others, root, pivots, bars, root_bars, n, single_root):
    """Fill ā, the derivatives of log Z by the weights that words had before any was removed, words in that order."""
    for k in range(n - 1, -1, -1):
        pivot, through = pivots[k], 0.0
        root_bars[k] = 0.0
        for h in range(k, n):
            bars[k, h] = 0.0
        for t in range(k + 1, n):
            share = others[t, k] / pivot
            bar = root_bars[t] * root[k]
            root_bars[k] += root_bars[t] * share
            for h in range(k + 1, n):  # bars[t, t] is zero
                bar += bars[t, h] * others[k, h]
                bars[k, h] += bars[t, h] * share
            bars[t, k] = bar / pivot
            through += share * bar
        own = (1.0 - through) / pivot
        for h in range(k + 1, n):
            bars[k, h] += own
        if k == n - 1 or not single_root:
            root_bars[k] += own
