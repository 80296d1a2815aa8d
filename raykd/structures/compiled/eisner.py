"""Projective trees: sums with marginals, and the best tree (Eisner 1996), in log space, O(n³) per sentence.

Shapes: n words of a sentence; T ≥ n. The recursion is that of `arc_reference.py`. Each table stands twice, by its first
and by its last word, so that every inner loop reads memory in order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from raykd.structures.compiled.blocks import kernel


class Tables(NamedTuple):
    """[i, j]: words i..j; `right` under i, `left` under j, `*_arc` with an arc between i and j, `closed` before it.

    `*_to` are the same with [j, i]. `before[0, j]`: the first j words under the root; `rooting[0, j]`: and those up
    to j under j; `rooted[0, j]`: with the root's arc to j.
    """

    right: np.ndarray
    right_to: np.ndarray
    left: np.ndarray
    left_to: np.ndarray
    right_arc: np.ndarray
    left_arc_to: np.ndarray
    closed: np.ndarray
    before: np.ndarray
    rooting: np.ndarray
    rooted: np.ndarray


@kernel
def tables(time):
    t = np.empty((10, time + 1, time + 1))
    return Tables(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9])


@kernel
def join(first, i, a, second, j, b, size, best):
    """log Σ_k exp(first[i, a + k] + second[j, b + k]) for k < size, or the largest of the sums."""
    peak = -np.inf
    for k in range(size):
        value = first[i, a + k] + second[j, b + k]
        if value > peak or value != value:  # NaN stays, so that it is not hidden
            peak = value
    if best or peak == -np.inf:
        return peak
    total = 0.0
    for k in range(size):
        total += math.exp(first[i, a + k] + second[j, b + k] - peak)
    return peak + math.log(total)


@kernel
def inside(scores, n, single_root, best, t):
    """Fill the tables of a sentence [T, H]; log Z is returned, or the best tree's score."""
    zero = np.int64(0)
    for i in range(n):
        t.right[i, i] = t.right_to[i, i] = t.left[i, i] = t.left_to[i, i] = 0.0
    for w in range(1, n):
        for i in range(n - w):
            j = i + w
            closed = join(t.right, i, i, t.left_to, j, i + 1, w, best)
            t.closed[i, j] = closed
            t.right_arc[i, j] = closed + scores[j, i + 1]
            t.left_arc_to[j, i] = closed + scores[i, j + 1]
            t.right[i, j] = join(t.right_arc, i, i + 1, t.right_to, j, i + 1, w, best)
            t.right_to[j, i] = t.right[i, j]
            t.left[i, j] = join(t.left, i, i, t.left_arc_to, j, i, w, best)
            t.left_to[j, i] = t.left[i, j]
    t.before[0, 0] = 0.0
    for j in range(n):
        starts = 1 if single_root else j + 1
        t.rooting[0, j] = join(t.before, zero, zero, t.left_to, j, zero, starts, best)
        t.rooted[0, j] = t.rooting[0, j] + scores[j, 0]
        t.before[0, j + 1] = join(t.rooted, zero, zero, t.right_to, j, zero, j + 1, best)
    return t.before[0, n]


@kernel
def eisner(scores, lengths, order, single_root, log_z, marginals, first, last):
    """Fill log Z [B] and, unless they are empty, marginals [B, T, H] of the sentences order[first:last]."""
    t, bar = tables(scores.shape[1]), tables(scores.shape[1])
    best = marginals.shape[0] < 0  # never; a literal would have `inside` compiled once more
    for number in range(first, last):
        b = order[number]
        log_z[b] = inside(scores[b], lengths[b], single_root, best, t)
        if marginals.shape[0] > 0:
            marginals[b] = np.nan if np.isnan(log_z[b]) else 0.0
            if log_z[b] > -np.inf:
                outside(lengths[b], single_root, t, bar, marginals[b])


@kernel
def share(total, bar, first, second, first_bar, second_bar, i, a, j, b, size):
    """Give each pair of a sum (see `join`) its part of the sum's probability `bar`."""
    if bar > 0:
        for k in range(size):
            part = bar * math.exp(first[i, a + k] + second[j, b + k] - total)
            first_bar[i, a + k] += part
            second_bar[j, b + k] += part


@kernel
def outside(n, single_root, t, bar, marginals):
    """Probabilities of all parts, from the root down to single words; those of arcs are the marginals."""
    zero = np.int64(0)
    for i in range(n):
        bar.before[0, i] = bar.rooted[0, i] = 0.0
        for j in range(n):
            bar.right[i, j] = bar.right_to[i, j] = bar.left[i, j] = bar.left_to[i, j] = 0.0
            bar.right_arc[i, j] = bar.left_arc_to[i, j] = 0.0
    bar.before[0, n] = 1.0
    for j in range(n - 1, -1, -1):
        total, part = t.before[0, j + 1], bar.before[0, j + 1]
        share(total, part, t.rooted, t.right_to, bar.rooted, bar.right_to, zero, zero, j, zero, j + 1)
        marginals[j, 0] = bar.rooted[0, j]
        starts = 1 if single_root else j + 1
        total, part = t.rooting[0, j], bar.rooted[0, j]
        share(total, part, t.before, t.left_to, bar.before, bar.left_to, zero, zero, j, zero, starts)
    for w in range(n - 1, 0, -1):
        for i in range(n - w):
            j = i + w
            total, part = t.right[i, j], bar.right[i, j] + bar.right_to[j, i]
            share(total, part, t.right_arc, t.right_to, bar.right_arc, bar.right_to, i, i + 1, j, i + 1, w)
            total, part = t.left[i, j], bar.left[i, j] + bar.left_to[j, i]
            share(total, part, t.left, t.left_arc_to, bar.left, bar.left_arc_to, i, i, j, i, w)
            marginals[j, i + 1] = bar.right_arc[i, j]
            marginals[i, j + 1] = bar.left_arc_to[j, i]
            total, part = t.closed[i, j], bar.right_arc[i, j] + bar.left_arc_to[j, i]
            share(total, part, t.right, t.left_to, bar.right, bar.left_to, i, i, j, i + 1, w)


@kernel
def best_projective(scores, lengths, order, single_root, heads, best, first, last):
    """Fill the best trees' heads [B, T] (zero on padding) and scores [B], −∞ where there is none."""
    time = scores.shape[1]
    t, todo = tables(time), np.empty((3 * time + 3, 3), np.int64)
    largest = time > 0  # always; see `eisner`
    for number in range(first, last):
        b = order[number]
        heads[b] = 0
        best[b] = inside(scores[b], lengths[b], single_root, largest, t)
        if best[b] > -np.inf:
            trace(lengths[b], single_root, t, todo, heads[b])


@kernel
def trace(n, single_root, t, todo, heads):
    """The heads of the best tree; `todo` holds spans (first, last, 0 under the first or 1 under the last)."""
    zero, one = np.int64(0), np.int64(1)
    end = n
    while end > 0:
        r = place(t.rooted, zero, zero, t.right_to, end - 1, zero, end)
        start = place(t.before, zero, zero, t.left_to, r, zero, 1 if single_root else r + 1)
        size = push(todo, push(todo, zero, r, end - 1, zero), start, r, one)
        end = start
        while size > 0:
            size -= 1
            i, j = todo[size, 0], todo[size, 1]
            if i == j:
                continue
            if todo[size, 2] == 0:
                k = i + 1 + place(t.right_arc, i, i + 1, t.right_to, j, i + 1, j - i)
                heads[k] = i + 1
                size = push(todo, size, k, j, zero)
                j = k
            else:
                k = i + place(t.left, i, i, t.left_arc_to, j, i, j - i)
                heads[k] = j + 1
                size = push(todo, size, i, k, one)
                i = k
            k = i + place(t.right, i, i, t.left_to, j, i + 1, j - i)
            size = push(todo, push(todo, size, i, k, zero), k + 1, j, one)


@kernel
def push(todo, size, first, last, under):
    todo[size, 0], todo[size, 1], todo[size, 2] = first, last, under
    return size + 1


@kernel
def place(first, i, a, second, j, b, size):
    """The k of the largest first[i, a + k] + second[j, b + k]."""
    found, top = 0, -np.inf
    for k in range(size):
        value = first[i, a + k] + second[j, b + k]
        if value > top:
            found, top = k, value
    return found
