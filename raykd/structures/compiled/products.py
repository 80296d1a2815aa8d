"""The products of the recursions: vector times matrix, and sums of outer products over time, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from numpy import int64

from raykd.structures.compiled.blocks import kernel
from raykd.structures.compiled.lanes import everywhere, load, spread, store, width


@kernel
def entry(matrix, at, per_sentence):
    """Load a matrix entry: one number for all lanes, or if `per_sentence` the numbers of all lanes in row `at`."""
    return load(matrix, at * width(matrix)) if per_sentence else spread(matrix, at)


@kernel
def multiply(block, row_step, column_step, x, x_at, out, out_at):
    """Compute out_r = Σ_c matrix[r·row_step + c·column_step] · x_c.

    Steps (1, tags) move forwards through the matrix [from, to], (tags, 1) backwards.
    """
    if block.per_sentence:
        _multiply_per_sentence(block.matrix, row_step, column_step, x, x_at, out, out_at, block.tags)
    else:
        _multiply_shared(block.matrix, row_step, column_step, x, x_at, out, out_at, block.tags)


def _multiply(per_sentence: bool) -> Callable:
    """Make the product for one kind of matrix; as a constant, `per_sentence` costs nothing in the loops."""

    @kernel
    def product(matrix, row_step, column_step, x, x_at, out, out_at, tags):
        lanes = width(x)
        zero = everywhere(x, 0.0)
        row = 0
        while row + 4 <= tags:
            # four sums at once: as many as the latency of a multiply-add can hide
            s0, s1, s2, s3 = zero, zero, zero, zero
            at = row * row_step
            for column in range(tags):
                value = load(x, x_at + column * lanes)
                s0 = s0 + entry(matrix, at, per_sentence) * value
                s1 = s1 + entry(matrix, at + row_step, per_sentence) * value
                s2 = s2 + entry(matrix, at + 2 * row_step, per_sentence) * value
                s3 = s3 + entry(matrix, at + 3 * row_step, per_sentence) * value
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
                s0 = s0 + entry(matrix, at, per_sentence) * load(x, source)
                s1 = s1 + entry(matrix, at + column_step, per_sentence) * load(x, source + lanes)
                s2 = s2 + entry(matrix, at + 2 * column_step, per_sentence) * load(x, source + 2 * lanes)
                s3 = s3 + entry(matrix, at + 3 * column_step, per_sentence) * load(x, source + 3 * lanes)
                at += 4 * column_step
                column += 4
            while column < tags:
                s0 = s0 + entry(matrix, at, per_sentence) * load(x, x_at + column * lanes)
                at += column_step
                column += 1
            store(out, out_at + row * lanes, (s0 + s1) + (s2 + s3))
            row += 1

    return product


_multiply_shared, _multiply_per_sentence = _multiply(per_sentence=False), _multiply(per_sentence=True)


@kernel
def outer(left, right, steps, tags, out):
    """Add Σ_{t<steps} left[t][i] · right[t + 1][j] to out[i][j], lane by lane."""
    whole = tags // 4 * 4
    for i in range(0, whole, 4):
        for j in range(0, whole, 4):
            _outer_square(left, right, steps, tags, i, j, out)
        for j in range(whole, tags):
            _outer_strip(right, tags + j, left, i, steps, tags, out, tags, i * tags + j)
    for i in range(whole, tags):
        for j in range(0, whole, 4):
            _outer_strip(left, i, right, tags + j, steps, tags, out, int64(1), i * tags + j)
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
def _outer_strip(single, single_row, four, four_row, steps, tags, out, step, place):
    lanes = width(single)
    zero = everywhere(single, 0.0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    a, b, row = single_row * lanes, four_row * lanes, tags * lanes
    for _ in range(steps):
        value = load(single, a)
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
