"""Common parts of all kernels: copying sentences into and out of lanes, and turning scores into weights.

A block is `width` sentences of similar length, one per lane. Arrays of a block are flat rows of lanes:
token arrays [n·Y][lane] (row t·Y + y), transition arrays [Y·Y][lane] (row from·Y + to), n the block's longest length.
Weights beyond a sentence's length are zero, so nothing is masked a second time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from raykd.structures.compiled.lanes import (
    everywhere,
    exp,
    gather_block,
    larger,
    load,
    scatter_block,
    store,
    where_above,
    width,
)

OPTIONS = {"nogil": True, "error_model": "numpy"}


def kernel(function: Callable) -> Callable:
    """Compile a function when first called, and keep the result on disk.

    Kernels pass np.int64(1) instead of 1 to each other: numba compiles a function again for every literal.
    """
    function = inspect.unwrap(function)  # tests wrap every function to check its shapes
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder for compiled code: every process compiles for itself
        return njit(**OPTIONS)(function)


class Problem(NamedTuple):
    """A batch of chains as flat arrays.

    Scores of −∞ forbid. Emissions have Y numbers for each of T words of each sentence; transitions are [from, to].
    `*_step` is the distance between the scores of two sentences: Y·Y or Y, 0 if all sentences share them. `order` lists
    the sentences, longest first.
    """

    emissions: np.ndarray
    lengths: np.ndarray
    order: np.ndarray
    transitions: np.ndarray
    transitions_step: int
    start: np.ndarray
    start_step: int
    end: np.ndarray
    end_step: int
    time: int
    tags: int


@kernel
def lay_out(problem, block, sentences, sizes, limits):
    """Fill the block's sentences, sizes (lengths, 0 in empty lanes) and limits (sizes as floats).

    Empty lanes hold the block's last sentence. Returns the number of lanes in use.
    """
    lanes = len(sentences)
    first = block * lanes
    count = min(lanes, len(problem.order) - first)
    for lane in range(lanes):
        sentences[lane] = problem.order[first + min(lane, count - 1)]
        sizes[lane] = problem.lengths[sentences[lane]] if lane < count else 0
        limits[lane] = sizes[lane]
    return count


@kernel
def bring_in(source, sentences, stride, rows, target):
    """Set target[k][lane] = source[sentences[lane]·stride + k] for k < rows."""
    lanes = width(source)
    starts = sentences * stride
    if stride >= lanes:
        for k in range(0, rows, lanes):
            # the last block overlaps the one before it instead of reading beyond the sentence's row
            offset = min(k, stride - lanes)
            gather_block(source, starts, offset, target, offset * lanes)
        return
    for k in range(rows):
        for lane in range(lanes):
            target[k * lanes + lane] = source[starts[lane] + k]


@kernel
def bring_out(source, sentences, stride, rows, count, target):
    """Set target[sentences[lane]·stride + k] = source[k][lane] for k < rows, zero up to the stride; lane < count."""
    lanes = width(source)
    starts = sentences * stride
    if rows >= lanes:
        for k in range(0, rows, lanes):
            offset = min(k, rows - lanes)
            scatter_block(source, offset * lanes, target, starts, offset, count)
    else:
        for k in range(rows):
            for lane in range(count):
                target[starts[lane] + k] = source[k * lanes + lane]
    for lane in range(count):
        for k in range(starts[lane] + rows, starts[lane] + stride):
            target[k] = 0


@kernel
def largest(values, at, rows):
    """Return each lane's maximum of the rows from offset `at` on; 0 if all are −∞: subtracting it leaves −∞."""
    lanes = width(values)
    nothing = everywhere(values, -np.inf)
    peak = nothing
    for k in range(rows):
        peak = larger(load(values, at + k * lanes), peak)
    return where_above(peak, nothing, peak, everywhere(values, 0.0))


@kernel
def exponentiate(values, rows):
    """Replace each lane's values by exp(value − their maximum), and store the maximum in the row after the last."""
    lanes = width(values)
    peak = largest(values, np.int64(0), rows)
    for k in range(rows):
        store(values, k * lanes, exp(load(values, k * lanes) - peak))
    store(values, rows * lanes, peak)


@kernel
def exponentiate_shared(scores, target):
    """Set target[k] = exp(scores[k] − their maximum), 0 beyond the scores, for shared scores; return the maximum."""
    lanes = width(scores)
    peak = -np.inf
    for score in scores:
        peak = max(peak, score)
    if peak == -np.inf:
        peak = 0.0
    for k in range(len(target)):
        target[k] = scores[k] - peak if k < len(scores) else -np.inf
    for k in range(0, len(target), lanes):
        store(target, k, exp(load(target, k)))
    return peak


@kernel
def weigh(values, limits, steps, tags, peaks):
    """Replace emissions [t][y][lane] by exp(e − max_y e), zero beyond a lane's limit; peaks[t][lane] are the maxima."""
    lanes = width(values)
    zero, limit = everywhere(values, 0.0), load(limits, 0)
    for t in range(steps):
        row = t * tags * lanes
        peak = largest(values, row, tags)
        store(peaks, t * lanes, peak)
        step = everywhere(values, t)
        for y in range(tags):
            at = row + y * lanes
            store(values, at, where_above(limit, step, exp(load(values, at) - peak), zero))
