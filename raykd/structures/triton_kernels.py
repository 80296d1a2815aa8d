"""Triton kernels of chains on CUDA: forward-backward, Hessian products and the K best labellings.

Each operation is one fused kernel: a program per sentence, the loops over time inside. The transition weights stay in
registers during all sweeps, so a call is one kernel, a few small ones around it, and batched products for the
transition parts. The recursions and their bound on underflow are those of `scaled`. Samples have no kernel here and run
as plain PyTorch.
"""

# A kernel's body and its launch are Triton's, not Python's: type checkers misread calls and results.
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from raykd.structures.scaled import (
    LOST_MASS,
    Sums,
    assemble_covariance,
    shifted_exp,
    summed_pairs,
    transition_weights,
)

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.structures.chain import Chain

KIND = "triton_kernels"
MAX_TAGS = 128  # a larger matrix of weights does not fit into the registers of a program
WARPS = {
    "sum_product": {16: 1, 32: 1, 64: 4, 128: 16},
    "product": {16: 1, 32: 1, 64: 8, 128: 16},
    "k_best": {16: 1, 32: 2, 64: 4, 128: 16},
}
"""Warps of a program by its block of tags: as few as keep the weights in registers, compiled for an H100. In float32 a
thread spills at most 44 bytes up to 64 tags; at 128 tags 140, 2,500 and 136 bytes, in the order of the operations."""


@triton.jit
def _ahead(
    emissions, lengths, matrix, matrix_step, start, start_step, end, end_step, log_z, left, scaled, time, tags, tiny,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Run the forward sweep of one sentence: a into `left`, w / c into `scaled`, and the shifted log Z.

    Returns the number of the sentence, its words, a mask of the block's tags, the offset of its first row, the
    transition and end weights, and Σ a · end at its last word.
    """
    sentence = tl.program_id(0).to(tl.int64)
    size = tl.load(lengths + sentence)
    tag = tl.arange(0, BLOCK)
    inside = tag < tags
    square = inside[:, None] & inside[None, :]
    place = tag[:, None] * tags + tag[None, :]
    weights = tl.load(matrix + sentence * matrix_step + place, mask=square, other=0.0)
    row = sentence * time * tags + tag
    forward = tl.load(start + sentence * start_step + tag, mask=inside, other=0.0)
    total = tl.zeros((), tl.float64)
    for t in range(size):
        scores = tl.load(emissions + row + t * tags, mask=inside, other=float("-inf"))
        peak = tl.max(scores, 0)
        peak = tl.where(peak == float("-inf"), 0.0, peak)
        weight = tl.exp(scores - peak)
        if t > 0:
            forward = tl.sum(forward[:, None] * weights, 0)
        forward = forward * weight
        scale = tl.sum(forward, 0)
        forward = tl.where(scale > tiny, forward / scale, 0.0)
        tl.store(left + row + t * tags, forward, mask=inside)
        tl.store(scaled + row + t * tags, weight / scale, mask=inside)
        total += peak.to(tl.float64) + tl.log(scale.to(tl.float64))
    final = tl.load(end + sentence * end_step + tag, mask=inside, other=0.0)
    mass = tl.sum(forward * final, 0)
    tl.store(log_z + sentence, total + tl.log(mass.to(tl.float64)))
    return sentence, size, inside, row, weights, final, mass


@triton.jit
def _sweep(
    emissions, lengths, matrix, matrix_step, start, start_step, end, end_step,
    log_z, worst, token, left, right, time, tags, tiny, BLOCK: tl.constexpr,
):  # fmt: skip
    """Run one sentence: a into `left`, w ∘ b / c into `right`, marginals into `token`; log Z, underflow bound."""
    sentence, size, inside, row, weights, final, mass = _ahead(
        emissions, lengths, matrix, matrix_step, start, start_step, end, end_step, log_z, left, right, time, tags, tiny,
        BLOCK,
    )  # fmt: skip
    backward = final / mass
    largest = mass * 0.0
    tl.debug_barrier()  # the rows read below were written by other threads of this program
    for backstep in range(size):
        t = size - 1 - backstep
        forward = tl.load(left + row + t * tags, mask=inside, other=0.0)
        weight = tl.load(right + row + t * tags, mask=inside, other=0.0)
        marginal = forward * backward
        level = 1.0 / tl.sum(marginal, 0)
        tl.store(token + row + t * tags, marginal * level, mask=inside)
        # the largest weight of a row is 1/c, as the largest of exp(e − max e) is one
        largest = tl.maximum(largest, tl.max(backward, 0) * tl.maximum(tl.max(weight, 0), 1.0))
        through = weight * backward * level
        tl.store(right + row + t * tags, through, mask=inside)
        backward = tl.sum(weights * through[None, :], 1)
    tl.store(worst + sentence, largest.to(tl.float64))


@triton.jit
def _product(
    emissions, lengths, matrix, matrix_step, start, start_step, end, end_step, direction,
    log_z, worst, value, lost, left, step, right, tangent, below, through, time, tags, tiny, unseen,
    POSTERIOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute, for one sentence, the factors of the Hessian of log Z times a direction.

    With POSTERIOR it is the gradient of Σ_t KL(direction_t ‖ p_t) in the marginals; the value of the divergence goes
    into `value`. a goes into `left`, w / c into `step`, b into `right`, their tangents into `tangent` and `below`, and
    the product that carries the tangent of b into `through`; names as in `scaled.covariance`.
    """
    sentence, size, inside, row, weights, final, mass = _ahead(
        emissions, lengths, matrix, matrix_step, start, start_step, end, end_step, log_z, left, step, time, tags, tiny,
        BLOCK,
    )  # fmt: skip
    backward = final / mass
    behind = backward * 0.0
    largest = mass * 0.0
    unknown = mass * 0.0
    cost = tl.zeros((), tl.float64)
    tl.debug_barrier()  # the rows read below were written by other threads of this program
    for backstep in range(size):
        t = size - 1 - backstep
        forward = tl.load(left + row + t * tags, mask=inside, other=0.0)
        weight = tl.load(step + row + t * tags, mask=inside, other=0.0)
        along = tl.load(direction + row + t * tags, mask=inside, other=0.0)
        largest = tl.maximum(largest, tl.max(backward, 0) * tl.maximum(tl.max(weight, 0), 1.0))
        backward = backward / tl.sum(forward * backward, 0)
        marginal = forward * backward
        if POSTERIOR:
            clamped = tl.maximum(marginal, tiny)
            nats = tl.log(tl.maximum(along, tiny)) - tl.log(clamped)
            cost += tl.sum(tl.where(along > 0, along * nats, 0.0).to(tl.float64), 0)
            # the teacher allows it, and its marginal underflowed: its log-probability is unknown in this precision
            unknown = tl.maximum(
                unknown, tl.max(tl.where((marginal < clamped) & (along > unseen), 1.0, 0.0), 0)
            )
            along = tl.where(marginal == clamped, -along / clamped, 0.0)
        along = along - tl.sum(marginal * along, 0)  # a constant per token changes nothing
        carried = weight * (backward * along + behind)
        tl.store(right + row + t * tags, backward, mask=inside)
        tl.store(tangent + row + t * tags, along, mask=inside)
        tl.store(below + row + t * tags, behind, mask=inside)
        tl.store(through + row + t * tags, carried, mask=inside)
        behind = tl.sum(weights * carried[None, :], 1)
        backward = tl.sum(weights * (weight * backward)[None, :], 1)
    tl.store(worst + sentence, largest.to(tl.float64))
    tl.store(value + sentence, cost)
    tl.store(lost + sentence, unknown.to(tl.float64))
    tl.debug_barrier()
    ahead = behind * 0.0
    for t in range(size):
        forward = tl.load(left + row + t * tags, mask=inside, other=0.0)
        weight = tl.load(step + row + t * tags, mask=inside, other=0.0)
        along = tl.load(tangent + row + t * tags, mask=inside, other=0.0)
        ahead = forward * along + tl.sum(ahead[:, None] * weights, 0) * weight
        tl.store(tangent + row + t * tags, ahead, mask=inside)


@triton.jit
def _highest(values, rows, axis: tl.constexpr):
    """Return the maximum along an axis and the first row with this value."""
    best = tl.max(values, axis)
    return best, tl.min(tl.where(values == tl.expand_dims(best, axis), rows, 1 << 30), axis)


@triton.jit
def _best(
    emissions, lengths, scores, scores_step, start, start_step, end, end_step, reached, origins, paths, totals,
    time, tags, K: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Find the K best labellings of one sentence, and their scores.

    `reached` [2, K, Y] has the K best scores of prefixes that end in a tag, at this word and at the one before;
    `origins` [T, K, Y] the prefix that each extends, as rank · Y + tag. For each tag, `offers` holds the best prefix of
    each tag before that is not used yet: K times the best offer is used, and replaced by the next prefix of its tag.
    """
    sentence = tl.program_id(0).to(tl.int64)
    size = tl.load(lengths + sentence)
    tag = tl.arange(0, BLOCK)
    inside = tag < tags
    before = tag[:, None]
    square = inside[:, None] & inside[None, :]
    none = float("-inf")
    scores += sentence * scores_step
    row = emissions + sentence * time * tags
    reached += sentence * 2 * K * tags
    origins += sentence * time * K * tags
    into = tl.load(scores + before * tags + tag[None, :], mask=square, other=none)
    first = tl.load(start + sentence * start_step + tag, mask=inside, other=none)
    tl.store(reached + tag, first + tl.load(row + tag, mask=inside, other=none), mask=inside)
    for rank in range(1, K):
        tl.store(reached + rank * tags + tag, tl.full((BLOCK,), none, first.dtype), mask=inside)
    for t in range(1, size):
        tl.debug_barrier()  # the scores read below were written by other threads of this program
        old = reached + ((t - 1) % 2) * K * tags
        new = reached + (t % 2) * K * tags
        emission = tl.load(row + t * tags + tag, mask=inside, other=none)
        offers = into + tl.load(old + before, mask=before < tags, other=none)
        ranks = tl.zeros((BLOCK, BLOCK), tl.int32)
        for rank in range(K):
            best, best_tag = _highest(offers, before, 0)
            is_best = before == best_tag[None, :]
            best_rank = tl.minimum(tl.max(tl.where(is_best, ranks, 0), 0), K - 1)
            tl.store(new + rank * tags + tag, best + emission, mask=inside)
            tl.store(origins + (t * K + rank) * tags + tag, best_rank * tags + best_tag, mask=inside)
            has_next = inside & (best_rank + 1 < K)
            further = tl.load(old + (best_rank + 1) * tags + best_tag, mask=has_next, other=none)
            further += tl.load(scores + best_tag * tags + tag, mask=inside, other=none)
            offers = tl.where(is_best, further[None, :], offers)
            ranks = tl.where(is_best, ranks + 1, ranks)
    tl.debug_barrier()
    last = reached + ((size - 1) % 2) * K * tags
    final = tl.load(end + sentence * end_step + tag, mask=inside, other=none)
    offers = final + tl.load(last + tag, mask=inside, other=none)
    ranks = tl.zeros((BLOCK,), tl.int32)
    number = tl.arange(0, BLOCK_K)
    place = tl.zeros((BLOCK_K,), tl.int32)
    total = tl.zeros((BLOCK_K,), offers.dtype) + none
    for rank in range(K):
        best, best_tag = _highest(offers, tag, 0)
        is_best = tag == best_tag
        best_rank = tl.minimum(tl.max(tl.where(is_best, ranks, 0), 0), K - 1)
        place = tl.where(number == rank, best_rank * tags + best_tag, place)
        total = tl.where(number == rank, best, total)
        further = tl.load(last + (best_rank + 1) * tags + tag, mask=inside & (best_rank + 1 < K), other=none)
        offers = tl.where(is_best, further + final, offers)
        ranks = tl.where(is_best, ranks + 1, ranks)
    in_k = number < K
    exists = in_k & (total > none)
    tl.store(totals + sentence * K + number, total, mask=in_k)
    paths += sentence * K * time
    for backstep in range(size):
        t = size - 1 - backstep
        tl.store(paths + number * time + t, (place % tags).to(tl.int64), mask=exists)
        place = tl.load(origins + t * K * tags + place, mask=exists & (t > 0), other=0)


class _Scores(NamedTuple):
    """A chain in the form of the kernels. They leave `shift_B` out of log Z."""

    chain: Chain
    weights_BYY: Tensor
    start_BY: Tensor
    end_BY: Tensor
    emissions_BTY: Tensor
    shift_B: Tensor

    @classmethod
    def from_chain(cls, chain: Chain) -> _Scores:
        _, start_BY, end_BY = chain.filled()
        weights_BYY, shift_B = transition_weights(chain)
        (start_BY, first_B1), (end_BY, final_B1) = shifted_exp(start_BY), shifted_exp(end_BY)
        shift_B = (chain.lengths_B - 1) * shift_B.double() + first_B1[:, 0] + final_B1[:, 0]
        return cls(chain, weights_BYY, start_BY, end_BY, chain.emissions_BTY.contiguous(), shift_B)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """First arguments of the kernels; scores that sentences may share come with the step to the next sentence's."""
        parts = _with_steps(self.weights_BYY, self.start_BY, self.end_BY)
        return (self.emissions_BTY, self.chain.lengths_B.long(), *parts)

    def ok(self, log_z_B: Tensor, worst_B: Tensor) -> Tensor:
        """Check that underflow lost nothing of importance, per sentence; as in `scaled.forward_backward`."""
        _, T, Y = self.emissions_BTY.shape
        tiny = torch.finfo(self.chain.dtype).tiny
        return (worst_B * (tiny * T * Y * (Y + 1)) < LOST_MASS) & log_z_B.isfinite()


def _with_steps(*parts: Tensor) -> tuple[Any, ...]:
    """Return all parts [1|B, …] with the steps from one sentence to the next: 0 for shared parts."""
    return tuple(value for part in parts for value in (part.contiguous(), part[0].numel() * (len(part) > 1)))


def _options(operation: str, tags: int) -> dict[str, int]:
    """Return the options of a launch; NotImplementedError for more tags than a program holds."""
    if tags > MAX_TAGS:
        raise NotImplementedError(f"the kernels hold up to {MAX_TAGS} tags; got {tags}")
    block = max(16, 1 << (tags - 1).bit_length())
    return {"BLOCK": block, "num_warps": WARPS[operation][block]}


def sum_product(chain: Chain, *, token: bool, pair: bool, sides: bool = False) -> Sums:
    """Compute log Z, marginals and expected transitions by the fused kernel; as `scaled.sum_product`."""
    options = _options("sum_product", chain.tags)
    scores = _Scores.from_chain(chain.detach())
    B, T, Y = scores.emissions_BTY.shape
    token_BTY, left_BTY, right_BTY = (torch.zeros_like(scores.emissions_BTY) for _ in range(3))
    log_z_B, worst_B = token_BTY.new_empty(2, B, dtype=torch.float64)
    tiny = torch.finfo(chain.dtype).tiny
    _sweep[(B,)](
        *scores.arguments,
        log_z_B,
        worst_B,
        token_BTY,
        left_BTY,
        right_BTY,
        T,
        Y,
        tiny,
        **options,
    )
    log_z_B = log_z_B + scores.shift_B
    empty = token_BTY.new_empty(0)
    pair_BYY = summed_pairs(left_BTY, right_BTY) * scores.weights_BYY if pair else empty
    factors = (left_BTY, right_BTY) if sides else (empty, empty)
    return Sums(log_z_B, scores.ok(log_z_B, worst_B), token_BTY, pair_BYY, *factors)


def covariance(chain: Chain, along_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Hessian of log Z times a direction of the emissions; as `scaled.covariance`."""
    _, token_BTY, pair_BYY, ok_B = _run_product(chain, along_BTY, posterior=False)
    return token_BTY, pair_BYY, ok_B


def posterior(
    chain: Chain, teacher_BTY: Tensor, *, token: bool, pair: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return Σ_t KL(q_t ‖ p_t) [B] in float64, its gradient (token and transition parts), and `ok`."""
    return _run_product(chain, teacher_BTY.to(chain.dtype), posterior=True)


def _run_product(
    chain: Chain, direction_BTY: Tensor, *, posterior: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    options = _options("product", chain.tags)
    scores = _Scores.from_chain(chain.detach())
    B, T, Y = scores.emissions_BTY.shape
    a_BTY, step_BTY, b_BTY, da_BTY, db_BTY, through_BTY = scores.emissions_BTY.new_zeros(6, B, T, Y)
    log_z_B, worst_B, value_B, lost_B = a_BTY.new_empty(4, B, dtype=torch.float64)
    limits = torch.finfo(chain.dtype)
    _product[(B,)](
        *scores.arguments, direction_BTY.detach().contiguous(), log_z_B, worst_B, value_B, lost_B,
        a_BTY, step_BTY, b_BTY, da_BTY, db_BTY, through_BTY, T, Y, limits.tiny, limits.eps * 1e-2,
        POSTERIOR=posterior, **options,
    )  # fmt: skip
    u_BTY = step_BTY * b_BTY
    token_BTY, pair_BYY = assemble_covariance(
        chain.lengths_B, a_BTY, b_BTY, da_BTY, db_BTY, u_BTY, through_BTY
    )
    ok_B = scores.ok(log_z_B + scores.shift_B, worst_B) & (lost_B == 0)
    return value_B, token_BTY, pair_BYY * scores.weights_BYY, ok_B


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best labellings [B, K, T] (zero on padding and if none is left) and their scores [B, K]."""
    options = _options("k_best", chain.tags)
    chain = chain.detach()
    B, T, Y = chain.emissions_BTY.shape
    reached_B2KY = chain.emissions_BTY.new_empty(B, 2, k, Y)
    origins_BTKY = torch.empty(B, T, k, Y, dtype=torch.int32, device=chain.device)
    paths_BKT = torch.zeros(B, k, T, dtype=torch.long, device=chain.device)
    scores_BK = reached_B2KY.new_empty(B, k)
    _best[(B,)](
        chain.emissions_BTY.contiguous(), chain.lengths_B.long(), *_with_steps(*chain.filled()),
        reached_B2KY, origins_BTKY, paths_BKT, scores_BK, T, Y,
        K=k, BLOCK_K=triton.next_power_of_2(k), **options,
    )  # fmt: skip
    return paths_BKT, scores_BK
