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

from raykd.structures.compiled.blocks import bring_in, bring_out, kernel
from raykd.structures.compiled.lanes import everywhere, larger, ln, load, store, where_above, width
from raykd.structures.compiled.products import multiply, outer
from raykd.structures.compiled.sums import bring_out_pairs, new_block, run_block


class Tangents(NamedTuple):
    """Outputs of the kernel: the product's parts (where not empty) and, for the posterior, the divergence."""

    value: np.ndarray
    token: np.ndarray
    pair: np.ndarray


@kernel
def tangent(problem, direction, posterior, sums, tangents, first_block, last_block):
    """Fill `tangents`, log Z and ok; `direction` is v, or with `posterior` the teacher's marginals q."""
    block = new_block(problem, first_block)
    tags, stride = problem.tags, problem.time * problem.tags
    lanes, dtype = width(block.weights), block.weights.dtype
    along, carried = np.empty_like(block.weights), np.empty_like(block.forward)
    pairs = np.empty(tags * tags * lanes if len(tangents.pair) else 0, dtype)
    value = np.empty(lanes, np.float64)
    for number in range(first_block, last_block):
        count = run_block(problem, number, block, False, sums)
        steps = block.sizes[0]
        bring_in(direction, block.sentences, stride, steps * tags, along)
        if posterior:
            diverge(block, along, value)
            for lane in range(count):
                tangents.value[block.sentences[lane]] = value[lane]
                if not value[lane] < np.inf:
                    sums.ok[block.sentences[lane]] = False
        else:
            centre(block, along)
        if len(tangents.token) == 0:
            continue
        carry_forward(block, along, carried)
        carry_backward(block, along, carried)
        bring_out(block.backward, block.sentences, stride, steps * tags, count, tangents.token)
        if len(pairs):
            pairs[:] = 0
            outer(carried, block.weights, steps - 1, tags, pairs)
            outer(block.forward, along, steps - 1, tags, pairs)
            bring_out_pairs(block, pairs, count, tangents.pair)


@kernel
def centre(block, along):
    """Subtract the mean of v_t under p_t from v_t, which changes no covariance; set v_t to 0 beyond a lane's end."""
    lanes, tags = width(along), block.tags
    limit = load(block.limits, 0)
    for t in range(block.sizes[0]):
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
def diverge(block, along, value):
    """Replace teacher marginals q by the direction Σq − q/p, and sum KL(q ‖ p) per lane into `value`.

    The sum is ∞ if p underflowed where q is not negligible.
    """
    lanes, tags = width(along), block.tags
    kind = np.finfo(along.dtype)
    zero, infinite, tiny = everywhere(along, 0.0), everywhere(along, np.inf), everywhere(along, kind.tiny)
    # smaller values of q do not change the divergence
    negligible = everywhere(along, kind.eps * 1e-2)
    limit = load(block.limits, 0)
    value[:] = 0
    for t in range(block.sizes[0]):
        row = t * tags * lanes
        divergence, teacher_mass = zero, zero
        for y in range(tags):
            at = row + y * lanes
            teacher = where_above(limit, everywhere(along, t), load(along, at), zero)
            student = load(block.forward, at) * load(block.backward, at)
            clamped = larger(student, tiny)
            term = where_above(teacher, tiny, teacher * (ln(larger(teacher, tiny)) - ln(clamped)), zero)
            lost = where_above(teacher, negligible, where_above(student, tiny, zero, infinite), zero)
            divergence = divergence + (term + lost)
            teacher_mass = teacher_mass + teacher
            store(along, at, where_above(student, tiny, teacher / clamped, zero))
        for y in range(tags):
            at = row + y * lanes
            store(along, at, teacher_mass - load(along, at))
        store(block.state, 0, divergence)
        for lane in range(lanes):
            value[lane] += block.state[lane]


@kernel
def carry_forward(block, along, carried):
    """Compute ȧ for all steps."""
    lanes, tags = width(along), block.tags
    for t in range(block.sizes[0]):
        row = t * tags * lanes
        if t:
            multiply(block, np.int64(1), tags, carried, row - tags * lanes, carried, row)
        for y in range(tags):
            at = row + y * lanes
            value = load(block.forward, at) * load(along, at)
            if t:
                value = value + load(block.weights, at) * load(carried, at)
            store(carried, at, value)


@kernel
def carry_backward(block, along, carried):
    """Compute covariances into `backward`, u into `weights`, r into `along`."""
    lanes, tags, state = width(along), block.tags, block.state
    state[:] = 0
    for t in range(block.sizes[0] - 1, -1, -1):
        row = t * tags * lanes
        for y in range(tags):
            at = row + y * lanes
            after, later, weight = load(block.backward, at), load(state, y * lanes), load(block.weights, at)
            covariance = load(carried, at) * after + load(block.forward, at) * later
            store(along, at, weight * (later + load(along, at) * after))
            store(block.weights, at, weight * after)
            store(block.backward, at, covariance)
        if t:
            multiply(block, tags, np.int64(1), along, row, state, np.int64(0))
