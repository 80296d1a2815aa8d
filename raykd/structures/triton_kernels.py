"""Forward-backward on CUDA as one fused Triton kernel: a program per sentence, the loop over time inside.

The transition weights stay in registers during the forward and the backward sweep, so a call is this kernel, a few
small ones around it, and one batched product for the transitions' moments. The recursion and its bound on underflow are
those of `scaled`. Operations without a kernel here (decoding, Hessian products) run as plain PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from raykd.structures.scaled import LOST_MASS, Sums, shifted_exp, transition_weights

if TYPE_CHECKING:
    from raykd.structures.chain import Chain

KIND = "triton_kernels"
MOST_TAGS = 128  # a larger matrix of weights does not fit into the registers of a program


@triton.jit
def _sweep(
    emissions, lengths, matrix, matrix_step, start, start_step, end, end_step,
    log_z, worst, token, left, right, time, tags, tiny, BLOCK: tl.constexpr,
):  # fmt: skip
    """One sentence: a into `left`, w ∘ b / c into `right`, marginals into `token`; shifted log Z, underflow bound."""
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
        tl.store(right + row + t * tags, weight / scale, mask=inside)
        total += peak.to(tl.float64) + tl.log(scale.to(tl.float64))
    final = tl.load(end + sentence * end_step + tag, mask=inside, other=0.0)
    mass = tl.sum(forward * final, 0)
    tl.store(log_z + sentence, total + tl.log(mass.to(tl.float64)))
    backward = final / mass
    largest = mass * 0.0
    tl.debug_barrier()  # the rows read below were written by other threads of this program
    for done in range(size):
        t = size - 1 - done
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


def sum_product(chain: Chain, *, token: bool, pair: bool, sides: bool = False) -> Sums:
    """log Z, marginals and expected transitions by the fused kernel; as `scaled.sum_product`."""
    chain = chain.detach()
    B, T, Y = chain.emissions_BTY.shape
    if Y > MOST_TAGS:
        raise NotImplementedError(f"the kernel holds up to {MOST_TAGS} tags; got {Y}")
    _, start_BY, end_BY = chain.filled()
    weights_BYY, shift_B = transition_weights(chain)
    (start_BY, first_B1), (end_BY, final_B1) = shifted_exp(start_BY), shifted_exp(end_BY)
    emissions_BTY = chain.emissions_BTY.contiguous()
    token_BTY, left_BTY, right_BTY = (torch.zeros_like(emissions_BTY) for _ in range(3))
    log_z_B, worst_B = emissions_BTY.new_empty(2, B, dtype=torch.float64)
    tiny = torch.finfo(chain.dtype).tiny
    _sweep[(B,)](  # type: ignore[index]
        emissions_BTY, chain.lengths_B.long(),
        weights_BYY.contiguous(), Y * Y * (len(weights_BYY) > 1),
        start_BY.contiguous(), Y * (len(start_BY) > 1), end_BY.contiguous(), Y * (len(end_BY) > 1),
        log_z_B, worst_B, token_BTY, left_BTY, right_BTY, T, Y, tiny,
        BLOCK=max(16, triton.next_power_of_2(Y)), num_warps=1 if Y <= 32 else 4,
    )  # fmt: skip
    log_z_B = log_z_B + (chain.lengths_B - 1) * shift_B.double() + first_B1[:, 0] + final_B1[:, 0]
    ok_B = (worst_B * (tiny * T * Y * (Y + 1)) < LOST_MASS) & log_z_B.isfinite()
    empty = token_BTY.new_empty(0)
    pair_BYY = empty
    if pair:
        pair_BYY = torch.bmm(left_BTY[:, :-1].transpose(1, 2), right_BTY[:, 1:]) * weights_BYY
    return Sums(
        log_z_B, ok_B, token_BTY, pair_BYY, left_BTY if sides else empty, right_BTY if sides else empty
    )
