"""The Hessian of log Z times a direction, and the posterior divergence with its gradient, which is such a product.

Write V(y) = Σ_t v[t, y_t] for a direction v. The product is Cov(count, V) for every part's count. With the rows a, b
and w/c of `sums`, and v centred so that E[V] = 0, one more recursion carries V along, prefixes in ȧ, suffixes in ḃ:

    ȧ_t = w_t/c_t ∘ (ȧ_{t-1} P) + a_t ∘ v_t        ḃ_{t-1} = P r_t,   r_t = w_t/c_t ∘ (ḃ_t + v_t ∘ b_t)
    Cov(tag y at t, V) = ȧ_t ∘ b_t + a_t ∘ ḃ_t
    Cov(transitions, V) = P ∘ Σ_t (ȧ_{t-1} u_tᵀ + a_{t-1} r_tᵀ),   u_t = w_t/c_t ∘ b_t

Σ_t KL(q_t ‖ p_t) has the derivative −q/p in each p, hence the gradient of direction v = 1 − q/p.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raykd.structures.compiled.blocks import (
    bring_in,
    bring_out,
    exponentiate_shared,
    kernel,
)
from raykd.structures.compiled.lanes import everywhere, larger, ln, load, store, where_above, width
from raykd.structures.compiled.products import multiply, outer
from raykd.structures.compiled.sums import (
    conclude,
    enter_lane,
    new_block,
    open_block,
    run_forward,
    scale_pairs,
)


class Tangents(NamedTuple):
    """Outputs of the kernel: the product's parts (where not empty) and, for the posterior, the divergence."""

    value: np.ndarray
    token: np.ndarray
    pair: np.ndarray


@kernel
def tangent(problem, given, posterior, sums, tangents, first_block, last_block):
    """`given` is the direction v, or with `posterior` the teacher's marginals q; fills `tangents`, log Z and ok."""
    block = new_block(problem, first_block)
    time, tags, own = problem.time, problem.tags, problem.transitions_step > 0
    lanes, dtype = width(block.weights), block.weights.dtype
    along, carried = np.empty_like(block.weights), np.empty_like(block.forward)
    pairs = np.empty(tags * tags * lanes if len(tangents.pair) else 0, dtype)
    value = np.empty(lanes, np.float64)
    shift = 0.0
    if not own:
        shift = exponentiate_shared(problem.transitions, block.matrix)
    for number in range(first_block, last_block):
        count = open_block(problem, number, block, own)
        steps = block.sizes[0]
        run_forward(block, own, steps, tags)
        keep_backward(block, own, steps, tags)
        conclude(problem, block, own, shift, count, sums)
        bring_in(given, block.sentences, time * tags, steps * tags, along)
        if posterior:
            diverge(block, along, steps, tags, value)
            for lane in range(count):
                tangents.value[block.sentences[lane]] = value[lane]
                if not value[lane] < np.inf:
                    sums.ok[block.sentences[lane]] = False
        else:
            centre(block, along, steps, tags)
        if len(tangents.token) == 0:
            continue
        carry_forward(block, own, along, carried, steps, tags)
        carry_backward(block, own, along, carried, steps, tags)
        bring_out(block.backward, block.sentences, time * tags, steps * tags, count, tangents.token)
        if len(pairs):
            pairs[:] = 0
            outer(carried, block.weights, steps - 1, tags, pairs)
            outer(block.forward, along, steps - 1, tags, pairs)
            scale_pairs(pairs, block.matrix, own)
            bring_out(pairs, block.sentences, tags * tags, tags * tags, count, tangents.pair)


@kernel
def keep_backward(block, own, steps, tags):
    """b into `backward`, w/c into `weights`, max b · max(1, 1/c) into `worst`."""
    weights, forward, backward, state = block.weights, block.forward, block.backward, block.state
    lanes = width(weights)
    zero, one = everywhere(weights, 0.0), everywhere(weights, 1.0)
    tiny = everywhere(weights, np.finfo(weights.dtype).tiny)
    worst = zero
    state[:] = 0
    ended = np.int64(0)
    for t in range(steps - 1, -1, -1):
        row = t * tags * lanes
        while ended < lanes and (block.sizes[ended] == t + 1 or block.sizes[ended] == 0):
            enter_lane(block, ended, t, tags)
            ended += 1
        scale = load(block.scales, t * lanes)
        inverse = where_above(scale, tiny, one / scale, zero)
        mass, top = zero, zero
        for y in range(tags):
            after = load(state, y * lanes)
            mass = mass + after * load(forward, row + y * lanes)
            top = larger(after, top)
        worst = larger(top * larger(one, inverse), worst)
        level = where_above(mass, tiny, one / mass, zero)
        for y in range(tags):
            at = row + y * lanes
            after = load(state, y * lanes) * level
            weight = load(weights, at) * inverse
            store(backward, at, after)
            store(weights, at, weight)
            store(block.turn, y * lanes, weight * after)
        if t:
            multiply(block.matrix, tags, np.int64(1), own, block.turn, np.int64(0), state, np.int64(0), tags)
    store(block.worst, 0, worst)


@kernel
def centre(block, along, steps, tags):
    """Subtract from v_t its mean under p_t, which changes no covariance; zero beyond a lane's end."""
    lanes = width(along)
    limit = load(block.limits, 0)
    for t in range(steps):
        row = t * tags * lanes
        mean, zero = everywhere(along, 0.0), everywhere(along, 0.0)
        for y in range(tags):
            at = row + y * lanes
            value = where_above(limit, everywhere(along, t), load(along, at), zero)
            store(along, at, value)
            mean = mean + load(block.forward, at) * load(block.backward, at) * value
        for y in range(tags):
            at = row + y * lanes
            store(along, at, load(along, at) - mean)


@kernel
def diverge(block, along, steps, tags, value):
    """Teacher marginals q become the direction Σq − q/p; each lane's Σ KL(q ‖ p), ∞ where only p underflowed."""
    lanes = width(along)
    kind = np.finfo(along.dtype)
    zero, infinite, tiny = everywhere(along, 0.0), everywhere(along, np.inf), everywhere(along, kind.tiny)
    # smaller values of q do not change the divergence
    negligible = everywhere(along, kind.eps * 1e-2)
    limit = load(block.limits, 0)
    value[:] = 0
    for t in range(steps):
        row = t * tags * lanes
        divergence, teacher_mass = zero, zero
        for y in range(tags):
            at = row + y * lanes
            teacher = where_above(limit, everywhere(along, t), load(along, at), zero)
            student = load(block.forward, at) * load(block.backward, at)
            kept = larger(student, tiny)
            term = where_above(teacher, tiny, teacher * (ln(larger(teacher, tiny)) - ln(kept)), zero)
            lost = where_above(teacher, negligible, where_above(student, tiny, zero, infinite), zero)
            divergence = divergence + (term + lost)
            teacher_mass = teacher_mass + teacher
            store(along, at, where_above(student, tiny, teacher / kept, zero))
        for y in range(tags):
            at = row + y * lanes
            store(along, at, teacher_mass - load(along, at))
        store(block.state, 0, divergence)
        for lane in range(lanes):
            value[lane] += block.state[lane]


@kernel
def carry_forward(block, own, along, carried, steps, tags):
    """ȧ for every step."""
    lanes = width(along)
    for t in range(steps):
        row = t * tags * lanes
        if t:
            multiply(block.matrix, np.int64(1), tags, own, carried, row - tags * lanes, carried, row, tags)
        for y in range(tags):
            at = row + y * lanes
            here = load(block.forward, at) * load(along, at)
            if t:
                here = here + load(block.weights, at) * load(carried, at)
            store(carried, at, here)


@kernel
def carry_backward(block, own, along, carried, steps, tags):
    """Covariances into `backward`, u into `weights`, r into `along`."""
    lanes = width(along)
    state = block.state
    state[:] = 0
    for t in range(steps - 1, -1, -1):
        row = t * tags * lanes
        for y in range(tags):
            at = row + y * lanes
            after, later, weight = load(block.backward, at), load(state, y * lanes), load(block.weights, at)
            covariance = load(carried, at) * after + load(block.forward, at) * later
            store(along, at, weight * (later + load(along, at) * after))
            store(block.weights, at, weight * after)
            store(block.backward, at, covariance)
        if t:
            multiply(block.matrix, tags, np.int64(1), own, along, row, state, np.int64(0), tags)
