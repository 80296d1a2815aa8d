"""The forward-backward kernel: log Z, marginals and moments of a range of blocks in scaled probability space.

With w = exp(e − max e), P = exp(a − max a), and each forward row divided by its sum c (Rabiner 1989, section V.A):

    a_t = w_t ∘ (a_{t-1} P) / c_t          b_{t-1} = P (w_t ∘ b_t) / c_t          p_t = a_t ∘ b_t,  Σ p_t = 1
    expected transitions = P ∘ Σ_t a_{t-1} (w_t ∘ b_t / c_t)ᵀ

After the shifts the largest weight of every row is one, so nothing overflows. Underflow can lose at most
T·Y·(Y+1)·tiny·max(b · max(1, 1/c)) of the mass of all labellings; `ok` is True if that is negligible.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from raykd.structures.compiled.blocks import (
    bring_in,
    bring_out,
    exponentiate,
    exponentiate_shared,
    kernel,
    lay_out,
    weigh,
)
from raykd.structures.compiled.lanes import everywhere, larger, load, store, where_above, width
from raykd.structures.compiled.products import entry, multiply, outer

LOST_MASS = 1e-6  # as in `scaled`; not imported, as the kernels' cache notices changes in this folder only


class SumArrays(NamedTuple):
    """Flat outputs of the kernel; token, pair, left (a) and right (w ∘ b / c) are filled only if they are not empty."""

    log_z: np.ndarray
    ok: np.ndarray
    token: np.ndarray
    pair: np.ndarray
    left: np.ndarray
    right: np.ndarray


class Block(NamedTuple):
    """One block's rows of lanes, reused from block to block.

    Attributes:
        tags: Y.
        per_sentence: True if each lane has separate transitions.
        shift: Maximum that was subtracted from shared transition scores.
        sentences: Number of each lane's sentence in the batch.
        sizes: Words of each lane's sentence, 0 in an empty lane.
        limits: Sizes as floats.
        weights: w; the backward recursion replaces it, see `run_backward`.
        forward: a.
        backward: b or p, see `run_backward`.
        peaks: Maxima of the emissions at each step.
        scales: c at each step.
        matrix: P; with `per_sentence` followed by a row of each lane's maximum.
        start: Start weights, then a row of their maxima.
        end: End weights, then a row of their maxima.
        state: b at the current step of the backward recursion.
        turn: w ∘ b / c at this step.
        mass: Σ a · end at the last word.
        worst: Maximum of b · max(1, 1/c) over the steps.
    """

    tags: int
    per_sentence: bool
    shift: float
    sentences: np.ndarray
    sizes: np.ndarray
    limits: np.ndarray
    weights: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    peaks: np.ndarray
    scales: np.ndarray
    matrix: np.ndarray
    start: np.ndarray
    end: np.ndarray
    state: np.ndarray
    turn: np.ndarray
    mass: np.ndarray
    worst: np.ndarray


@kernel
def new_block(problem, first_block):
    """Return buffers for the longest block of a range (blocks are ordered by length), and the shared transitions."""
    emissions, tags = problem.emissions, problem.tags
    lanes, dtype = width(emissions), emissions.dtype
    longest = problem.lengths[problem.order[first_block * lanes]]
    per_sentence = problem.transitions_step > 0
    matrix = np.empty(
        (tags * tags + 1) * lanes if per_sentence else (tags * tags + lanes) // lanes * lanes, dtype
    )
    return Block(
        tags,
        per_sentence,
        0.0 if per_sentence else exponentiate_shared(problem.transitions, matrix),
        np.empty(lanes, np.int64),
        np.empty(lanes, np.int64),
        np.empty(lanes, dtype),
        np.empty((longest * tags + lanes) * lanes, dtype),  # bring_in may write up to `lanes` rows too many
        np.empty(longest * tags * lanes, dtype),
        np.empty(longest * tags * lanes, dtype),
        np.empty(longest * lanes, dtype),
        np.empty(longest * lanes, dtype),
        matrix,
        np.empty((tags + 1) * lanes, dtype),
        np.empty((tags + 1) * lanes, dtype),
        np.empty(tags * lanes, dtype),
        np.empty(tags * lanes, dtype),
        np.empty(lanes, dtype),
        np.empty(lanes, dtype),
    )


@kernel
def sum_product(problem, sums, first_block, last_block):
    """Fill `sums` for the sentences of some blocks."""
    block = new_block(problem, first_block)
    tags = problem.tags
    stride = problem.time * tags
    pairs = np.empty(tags * tags * width(block.state) if len(sums.pair) else 0, block.state.dtype)
    for number in range(first_block, last_block):
        count = run_block(problem, number, block, True, sums)
        steps = block.sizes[0]
        if len(sums.token):
            bring_out(block.backward, block.sentences, stride, steps * tags, count, sums.token)
        if len(sums.left):
            bring_out(block.forward, block.sentences, stride, steps * tags, count, sums.left)
            bring_out(block.weights, block.sentences, stride, steps * tags, count, sums.right)
        if len(pairs):
            pairs[:] = 0
            outer(block.forward, block.weights, steps - 1, tags, pairs)
            bring_out_pairs(block, pairs, count, sums.pair)


@kernel
def run_block(problem, number, block, marginals, sums):
    """Load a block's scores, run both recursions and fill log Z and `ok` of `sums`; return the number of lanes in use.

    `marginals` is that of `run_backward`.
    """
    tags = problem.tags
    count = lay_out(problem, number, block.sentences, block.sizes, block.limits)
    steps = block.sizes[0]
    bring_in(problem.emissions, block.sentences, problem.time * tags, steps * tags, block.weights)
    weigh(block.weights, block.limits, steps, tags, block.peaks)
    if block.per_sentence:
        bring_in(problem.transitions, block.sentences, tags * tags, tags * tags, block.matrix)
        exponentiate(block.matrix, tags * tags)
    bring_in_ends(problem.start, problem.start_step, block.sentences, tags, block.start)
    bring_in_ends(problem.end, problem.end_step, block.sentences, tags, block.end)
    run_forward(block)
    run_backward(block, marginals)
    conclude(block, count, sums)
    return count


@kernel
def bring_in_ends(scores, step, sentences, tags, target):
    """Copy start or end scores into lanes, as weights."""
    lanes = len(sentences)
    for y in range(tags):
        for lane in range(lanes):
            target[y * lanes + lane] = scores[sentences[lane] * step + y]
    exponentiate(target, tags)


@kernel
def run_forward(block):
    """Compute a_t into `forward` and c_t into `scales`, for all t."""
    weights, forward, tags = block.weights, block.forward, block.tags
    lanes = width(weights)
    zero, ones = everywhere(weights, 0.0), everywhere(weights, 1.0)
    tiny = everywhere(weights, np.finfo(weights.dtype).tiny)
    for t in range(block.sizes[0]):
        row = t * tags * lanes
        if t:
            multiply(block, np.int64(1), tags, forward, row - tags * lanes, forward, row)
        scale = zero
        for y in range(tags):
            before = load(forward, row + y * lanes) if t else load(block.start, y * lanes)
            value = before * load(weights, row + y * lanes)
            scale = scale + value
            store(forward, row + y * lanes, value)
        store(block.scales, t * lanes, scale)
        # a lane stays at zero after its sentence's end, or where everything underflowed
        inverse = where_above(scale, tiny, ones / scale, zero)
        for y in range(tags):
            store(forward, row + y * lanes, load(forward, row + y * lanes) * inverse)


@kernel
def run_backward(block, marginals):
    """Compute b into `backward` and w / c into `weights`; with `marginals` p = a ∘ b and w ∘ b / c instead.

    The bound max b · max(1, 1/c) goes into `worst`.
    """
    weights, forward, state, tags = block.weights, block.forward, block.state, block.tags
    lanes = width(weights)
    zero, ones = everywhere(weights, 0.0), everywhere(weights, 1.0)
    tiny = everywhere(weights, np.finfo(weights.dtype).tiny)
    worst = zero
    state[:] = 0
    ended = np.int64(0)
    for t in range(block.sizes[0] - 1, -1, -1):
        row = t * tags * lanes
        while ended < lanes and (block.sizes[ended] == t + 1 or block.sizes[ended] == 0):
            enter_lane(block, ended, t, tags)
            ended += 1
        scale = load(block.scales, t * lanes)
        inverse = where_above(scale, tiny, ones / scale, zero)
        mass, top = zero, zero
        for y in range(tags):
            after = load(state, y * lanes)
            mass = mass + after * load(forward, row + y * lanes)
            top = larger(after, top)
        worst = larger(top * larger(ones, inverse), worst)
        # Σ a·b is 1 up to rounding; dividing by it removes the rounding error at every step
        level = where_above(mass, tiny, ones / mass, zero)
        for y in range(tags):
            at = row + y * lanes
            after = load(state, y * lanes) * level
            weight = load(weights, at) * inverse
            store(block.turn, y * lanes, weight * after)
            store(block.backward, at, after * load(forward, at) if marginals else after)
            store(weights, at, weight * after if marginals else weight)
        if t:
            multiply(block, tags, np.int64(1), block.turn, np.int64(0), state, np.int64(0))
    store(block.worst, 0, worst)


@kernel
def enter_lane(block, lane, t, tags):
    """Begin a lane's backward recursion at the last token: b = end / Σ a · end."""
    lanes = len(block.sizes)
    mass = block.state[0] * 0
    if block.sizes[lane]:
        for y in range(tags):
            mass += block.forward[(t * tags + y) * lanes + lane] * block.end[y * lanes + lane]
    block.mass[lane] = mass
    for y in range(tags):
        block.state[y * lanes + lane] = block.end[y * lanes + lane] / mass if mass > 0 else mass


@kernel
def conclude(block, count, sums):
    """Compute log Z from the shifts and scales, and the bound on the mass lost to underflow."""
    lanes, tags = len(block.sizes), block.tags
    kind = np.finfo(block.state.dtype)
    # scales can be as small as tiny: the float64 product of seven float32 scales, or of one float64 scale, is normal
    together = 7 if kind.eps > 1e-10 else 1
    for lane in range(count):
        size, sentence = block.sizes[lane], block.sentences[lane]
        peak = block.matrix[tags * tags * lanes + lane] if block.per_sentence else block.shift
        value = float(block.start[tags * lanes + lane]) + float(block.end[tags * lanes + lane])
        value += float(peak) * (size - 1)
        product = float(block.mass[lane])
        for t in range(size):
            value += float(block.peaks[t * lanes + lane])
            product *= float(block.scales[t * lanes + lane])
            if t % together == 0:
                value += log(product)
                product = 1.0
        value += log(product)
        lost = float(block.worst[lane]) * kind.tiny * size * tags * (tags + 1)
        sums.log_z[sentence] = value
        sums.ok[sentence] = lost < LOST_MASS and abs(value) < np.inf


@kernel
def bring_out_pairs(block, pairs, count, target):
    """Write expected transitions: the outer products times the transition weights."""
    lanes, rows = width(pairs), block.tags * block.tags
    for k in range(rows):
        store(pairs, k * lanes, load(pairs, k * lanes) * entry(block.matrix, k, block.per_sentence))
    bring_out(pairs, block.sentences, rows, rows, count, target)
