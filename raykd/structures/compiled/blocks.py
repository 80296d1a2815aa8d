"""What every kernel shares: sentences in and out of lanes, weights, and the products of the recursions.

A block is `width` sentences of similar length, one per lane. Arrays of a block are flat rows of lanes:
token arrays [n·Y][lane] (row t·Y + y), transition arrays [Y·Y][lane] (row from·Y + to), n the block's longest length.
Lanes beyond a sentence's length hold zeros throughout, so nothing has to be masked a second time.
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
    spread,
    store,
    where_above,
    width,
)

OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}


def kernel(function: Callable) -> Callable:
    """Compile a function when first called, and keep the result on disk.

    np.int64(1) among a kernel's arguments: numba compiles a function anew for every literal it is called with.
    """
    return njit(**OPTIONS)(inspect.unwrap(function))  # unwrapped: tests wrap every function to check its shapes


def reassociating_kernel(function: Callable) -> Callable:
    """A kernel whose sums may be taken in any order."""
    return njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})(inspect.unwrap(function))


class Problem(NamedTuple):
    """A batch of chains as flat arrays; `*_step` is Y·Y or Y where each sentence has its own scores, 0 where shared.

    `order` lists the sentences, longest first.
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
    """Fill the block's sentences, sizes (lengths, 0 in an empty lane) and limits (the same as floats); count of lanes."""
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
    """target[k][lane] = source[sentences[lane]·stride + k] for k < rows."""
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
    """target[sentences[lane]·stride + k] = source[k][lane] for k < rows, zero up to the stride; `count` lanes."""
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
def exponentiate(values, rows):
    """Each lane's values become exp(value − their largest); the largest is left in the row after the last."""
    lanes = width(values)
    peak = everywhere(values, -np.inf)
    for k in range(rows):
        peak = larger(load(values, k * lanes), peak)
    # a row of −∞ has no largest value: shift by nothing, its weights are all zero
    peak = where_above(peak, everywhere(values, -np.inf), peak, everywhere(values, 0.0))
    for k in range(rows):
        store(values, k * lanes, exp(load(values, k * lanes) - peak))
    store(values, rows * lanes, peak)


@kernel
def exponentiate_shared(scores, target):
    """target[k] = exp(scores[k] − the largest) for scores that all sentences share; returns the largest."""
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
    """Emissions [t][y][lane] become exp(e − max_y e), zero beyond each lane's limit; peaks[t][lane] are the maxima."""
    lanes = width(values)
    zero, nothing = everywhere(values, 0.0), everywhere(values, -np.inf)
    limit = load(limits, 0)
    for t in range(steps):
        row = t * tags * lanes
        peak = nothing
        for y in range(tags):
            peak = larger(load(values, row + y * lanes), peak)
        peak = where_above(peak, nothing, peak, zero)
        store(peaks, t * lanes, peak)
        now = everywhere(values, t)
        for y in range(tags):
            at = row + y * lanes
            store(values, at, where_above(limit, now, exp(load(values, at) - peak), zero))


@kernel
def multiply(matrix, row_step, column_step, own, x, x_at, out, out_at, tags):
    """out_r = Σ_c matrix[r·row_step + c·column_step] · x_c; the entries are numbers or, if own, rows of lanes.

    Steps (1, tags) move forwards through the matrix [from, to], (tags, 1) backwards.
    """
    if own:
        _multiply_own(matrix, row_step, column_step, x, x_at, out, out_at, tags)
    else:
        _multiply_shared(matrix, row_step, column_step, x, x_at, out, out_at, tags)


@kernel
def _multiply_shared(matrix, row_step, column_step, x, x_at, out, out_at, tags):
    lanes = width(x)
    zero = everywhere(x, 0.0)
    row = 0
    while row + 4 <= tags:
        # four sums at once: as many as the latency of a multiply-add can hide
        s0, s1, s2, s3 = zero, zero, zero, zero
        at = row * row_step
        for column in range(tags):
            value = load(x, x_at + column * lanes)
            s0 = s0 + spread(matrix, at) * value
            s1 = s1 + spread(matrix, at + row_step) * value
            s2 = s2 + spread(matrix, at + 2 * row_step) * value
            s3 = s3 + spread(matrix, at + 3 * row_step) * value
            at += column_step
        store(out, out_at + row * lanes, s0)
        store(out, out_at + (row + 1) * lanes, s1)
        store(out, out_at + (row + 2) * lanes, s2)
        store(out, out_at + (row + 3) * lanes, s3)
        row += 4
    while row < tags:
        s0, s1, s2, s3 = zero, zero, zero, zero
        at, column = row * row_step, 0
        while column + 4 <= tags:
            source = x_at + column * lanes
            s0 = s0 + spread(matrix, at) * load(x, source)
            s1 = s1 + spread(matrix, at + column_step) * load(x, source + lanes)
            s2 = s2 + spread(matrix, at + 2 * column_step) * load(x, source + 2 * lanes)
            s3 = s3 + spread(matrix, at + 3 * column_step) * load(x, source + 3 * lanes)
            at += 4 * column_step
            column += 4
        while column < tags:
            s0 = s0 + spread(matrix, at) * load(x, x_at + column * lanes)
            at += column_step
            column += 1
        store(out, out_at + row * lanes, (s0 + s1) + (s2 + s3))
        row += 1


@kernel
def _multiply_own(matrix, row_step, column_step, x, x_at, out, out_at, tags):
    lanes = width(x)
    zero = everywhere(x, 0.0)
    rows, columns = row_step * lanes, column_step * lanes
    row = 0
    while row + 4 <= tags:
        s0, s1, s2, s3 = zero, zero, zero, zero
        at = row * rows
        for column in range(tags):
            value = load(x, x_at + column * lanes)
            s0 = s0 + load(matrix, at) * value
            s1 = s1 + load(matrix, at + rows) * value
            s2 = s2 + load(matrix, at + 2 * rows) * value
            s3 = s3 + load(matrix, at + 3 * rows) * value
            at += columns
        store(out, out_at + row * lanes, s0)
        store(out, out_at + (row + 1) * lanes, s1)
        store(out, out_at + (row + 2) * lanes, s2)
        store(out, out_at + (row + 3) * lanes, s3)
        row += 4
    while row < tags:
        s0, s1 = zero, zero
        at, column = row * rows, 0
        while column + 2 <= tags:
            s0 = s0 + load(matrix, at) * load(x, x_at + column * lanes)
            s1 = s1 + load(matrix, at + columns) * load(x, x_at + (column + 1) * lanes)
            at += 2 * columns
            column += 2
        if column < tags:
            s0 = s0 + load(matrix, at) * load(x, x_at + column * lanes)
        store(out, out_at + row * lanes, s0 + s1)
        row += 1


@kernel
def outer(left, right, steps, tags, out):
    """out[i][j] += Σ_{t<steps} left[t][i] · right[t + 1][j], lane by lane."""
    whole = tags // 4 * 4
    for i in range(0, whole, 4):
        for j in range(0, whole, 4):
            _outer_square(left, right, steps, tags, i, j, out)
        for j in range(whole, tags):
            _outer_strip(right, tags + j, left, i, steps, tags, out, tags, i * tags + j)
    for i in range(whole, tags):
        for j in range(0, whole, 4):
            _outer_strip(left, i, right, tags + j, steps, tags, out, np.int64(1), i * tags + j)
        for j in range(whole, tags):
            _outer_single(left, right, steps, tags, i, j, out)


@kernel
def _outer_square(left, right, steps, tags, i, j, out):
    lanes = width(left)
    zero = everywhere(left, 0.0)
    s00, s01, s02, s03, s10, s11, s12, s13 = zero, zero, zero, zero, zero, zero, zero, zero
    s20, s21, s22, s23, s30, s31, s32, s33 = zero, zero, zero, zero, zero, zero, zero, zero
    a, b, row = i * lanes, (tags + j) * lanes, tags * lanes
    for _ in range(steps):
        l0, l1, l2, l3 = (
            load(left, a),
            load(left, a + lanes),
            load(left, a + 2 * lanes),
            load(left, a + 3 * lanes),
        )
        r = load(right, b)
        s00, s10, s20, s30 = s00 + l0 * r, s10 + l1 * r, s20 + l2 * r, s30 + l3 * r
        r = load(right, b + lanes)
        s01, s11, s21, s31 = s01 + l0 * r, s11 + l1 * r, s21 + l2 * r, s31 + l3 * r
        r = load(right, b + 2 * lanes)
        s02, s12, s22, s32 = s02 + l0 * r, s12 + l1 * r, s22 + l2 * r, s32 + l3 * r
        r = load(right, b + 3 * lanes)
        s03, s13, s23, s33 = s03 + l0 * r, s13 + l1 * r, s23 + l2 * r, s33 + l3 * r
        a += row
        b += row
    o = (i * tags + j) * lanes
    _add_four(out, o, lanes, s00, s01, s02, s03)
    _add_four(out, o + row, lanes, s10, s11, s12, s13)
    _add_four(out, o + 2 * row, lanes, s20, s21, s22, s23)
    _add_four(out, o + 3 * row, lanes, s30, s31, s32, s33)


@kernel
def _outer_strip(one, one_row, four, four_row, steps, tags, out, step, place):
    lanes = width(one)
    zero = everywhere(one, 0.0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    a, b, row = one_row * lanes, four_row * lanes, tags * lanes
    for _ in range(steps):
        value = load(one, a)
        s0 = s0 + value * load(four, b)
        s1 = s1 + value * load(four, b + lanes)
        s2 = s2 + value * load(four, b + 2 * lanes)
        s3 = s3 + value * load(four, b + 3 * lanes)
        a += row
        b += row
    _add_four(out, place * lanes, step * lanes, s0, s1, s2, s3)


@kernel
def _outer_single(left, right, steps, tags, i, j, out):
    lanes = width(left)
    total = everywhere(left, 0.0)
    a, b, row = i * lanes, (tags + j) * lanes, tags * lanes
    for _ in range(steps):
        total = total + load(left, a) * load(right, b)
        a += row
        b += row
    o = (i * tags + j) * lanes
    store(out, o, load(out, o) + total)


@kernel
def _add_four(out, place, step, s0, s1, s2, s3):
    store(out, place, load(out, place) + s0)
    store(out, place + step, load(out, place + step) + s1)
    store(out, place + 2 * step, load(out, place + 2 * step) + s2)
    store(out, place + 3 * step, load(out, place + 3 * step) + s3)
