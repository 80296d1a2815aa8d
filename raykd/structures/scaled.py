"""Forward-backward in plain PyTorch, in scaled probability space: for devices without compiled kernels.

Shapes: B batch, T time, Y tags, N tokens of the batch, packed time-major with the longest sentence first, so that step
t works on the first n rows only: the sentences that have a word t.

With w = exp(e − max e), P = exp(a − max a), and forward rows divided by their sums c (Rabiner 1989, section V.A):

    a_t = w_t ∘ (a_{t-1} P) / c_t          b_{t-1} = P (w_t ∘ b_t) / c_t          p_t = a_t ∘ b_t,  Σ p_t = 1

In float32 this is far more exact than log space. Underflow can lose at most T·Y·(Y+1)·tiny·max(b · max(1, 1/c)) of the
mass of all labellings; `ok` is True if that is negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from raykd.structures.padding import end_rows

if TYPE_CHECKING:
    from raykd.structures.chain import Chain

LOST_MASS = 1e-6


class Sums(NamedTuple):
    """Results of forward-backward; parts that are not requested are empty.

    Attributes:
        log_z_B: log Z in float64.
        ok_B: True if underflow lost nothing that counts.
        token_BTY: Token marginals.
        pair_BYY: Expected transitions.
        left_BTY: First factor of the pairs: p(y_{t-1}=i, y_t=j) = left[t-1, i] · P[i, j] · right[t, j].
        right_BTY: Last factor of the pairs.
    """

    log_z_B: Tensor
    ok_B: Tensor
    token_BTY: Tensor
    pair_BYY: Tensor
    left_BTY: Tensor
    right_BTY: Tensor

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Parts to compute again after underflow."""
        return self.log_z_B, self.token_BTY, self.pair_BYY


@dataclass(frozen=True)
class Packing:
    """Positions of the tokens in the packed batch.

    Attributes:
        order_B: Sentences, longest first.
        counts: Number n of sentences with a word at each step.
        row_N: Row of each packed token in the padded batch, flattened to [B · T].
        last_B: Packed position of each sentence's last token.
    """

    order_B: Tensor
    counts: list[int]
    row_N: Tensor
    last_B: Tensor

    def pack(self, values_BTX: Tensor) -> Tensor:
        """Return the rows [N, X] of all tokens, in packed order."""
        return values_BTX.flatten(0, 1).index_select(0, self.row_N)

    def unpack(self, values_NX: Tensor, time: int) -> Tensor:
        """Return packed rows as a padded batch [B, T, X], zero on padding."""
        batch = len(self.order_B)
        out = values_NX.new_zeros(batch * time, values_NX.shape[1])
        return out.index_copy_(0, self.row_N, values_NX).view(batch, time, values_NX.shape[1])

    def sentence_sums(self, values_N: Tensor, time: int) -> Tensor:
        """Return the sums over tokens per sentence [B] in float64."""
        return self.unpack(values_N.double()[:, None], time).sum((1, 2))


@dataclass(frozen=True)
class Recursion:
    """Results of one forward-backward run, packed.

    Attributes:
        packing: Positions of the tokens.
        matrix_BYY: P [1|B, Y, Y], in the packing's order.
        forward_NY: a.
        backward_NY: b, up to rounding: Σ a · b is not exactly 1.
        weights_NY: w / c.
        level_N1: 1 / Σ a · b, the factor that makes it exactly 1.
        log_z_B: log Z in float64.
        ok_B: True if underflow lost nothing that counts.
    """

    packing: Packing
    matrix_BYY: Tensor
    forward_NY: Tensor
    backward_NY: Tensor
    weights_NY: Tensor
    level_N1: Tensor
    log_z_B: Tensor
    ok_B: Tensor


def pack_tokens(lengths_B: Tensor, time: int) -> Packing:
    """Return the packing of a batch; waits for the device for the lengths only."""
    order_B = lengths_B.argsort(descending=True, stable=True)
    has_word_TB = torch.arange(time, device=lengths_B.device)[:, None] < lengths_B[order_B]
    step_N, slot_N = has_word_TB.nonzero(as_tuple=True)
    counts = [n for n in has_word_TB.sum(1).tolist() if n]
    offsets_T = torch.tensor([0, *counts[:-1]], device=lengths_B.device).cumsum(0)
    last_B = offsets_T[lengths_B[order_B] - 1] + torch.arange(len(lengths_B), device=lengths_B.device)
    return Packing(order_B, counts, order_B[slot_N] * time + step_N, last_B)


def shifted_exp(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return exp(scores − the row's maximum) and that maximum (0 if all are −∞)."""
    peak = scores.amax(-1, keepdim=True)
    peak = torch.where(peak == -inf, torch.zeros_like(peak), peak)
    return (scores - peak).exp(), peak


def transition_weights(chain: Chain) -> tuple[Tensor, Tensor]:
    """Return P = exp(transitions − their maximum) [1|B, Y, Y] and that maximum [1|B]."""
    transitions_BYY, _, _ = chain.filled()
    weights, peak = shifted_exp(transitions_BYY.flatten(1))
    return weights.view_as(transitions_BYY), peak[:, 0]


def sum_product(chain: Chain, *, pair: bool, sides: bool = False) -> Sums:
    """Compute log Z, token marginals and, if requested, expected transitions and pair factors, of a detached chain."""
    run, time = forward_backward(chain), chain.time
    token_BTY = run.packing.unpack(run.forward_NY * run.backward_NY * run.level_N1, time)
    empty = token_BTY.new_empty(0)
    if not (pair or sides):
        return Sums(run.log_z_B, run.ok_B, token_BTY, empty, empty, empty)
    left_BTY = run.packing.unpack(run.forward_NY, time)
    right_BTY = run.packing.unpack(run.weights_NY * run.backward_NY * run.level_N1, time)
    weights_BYY, _ = transition_weights(chain)
    pair_BYY = summed_pairs(left_BTY, right_BTY) * weights_BYY if pair else empty
    return Sums(run.log_z_B, run.ok_B, token_BTY, pair_BYY, left_BTY, right_BTY)


def summed_pairs(left_BTY: Tensor, right_BTY: Tensor) -> Tensor:
    """Return the products of neighbouring rows, summed over time [B, Y, Y]."""
    return torch.bmm(left_BTY[:, :-1].transpose(1, 2), right_BTY[:, 1:])


def forward_backward(chain: Chain) -> Recursion:
    """Run both recursions and bound the mass lost to underflow."""
    B, T, Y = chain.emissions_BTY.shape
    packing = pack_tokens(chain.lengths_B.long(), T)
    _, start_BY, end_BY = chain.filled()
    weights_NY, peak_N1 = shifted_exp(packing.pack(chain.emissions_BTY))
    matrix_BYY, shift_B = transition_weights(chain)
    if len(matrix_BYY) > 1:
        matrix_BYY = matrix_BYY[packing.order_B]
    start_BY, first_B1 = shifted_exp(start_BY.expand(B, Y)[packing.order_B])
    end_BY, final_B1 = shifted_exp(end_BY.expand(B, Y)[packing.order_B])
    forward_NY, scale_N1 = _forward(weights_NY, matrix_BYY, start_BY, packing.counts)
    mass_B1 = (forward_NY[packing.last_B] * end_BY).sum(1, keepdim=True)
    weights_NY = weights_NY / scale_N1
    ends_NY = torch.zeros_like(forward_NY).index_copy_(0, packing.last_B, end_BY / mass_B1)
    backward_NY = _backward(ends_NY, weights_NY, matrix_BYY, packing.counts)
    level_N1 = (forward_NY * backward_NY).sum(1, keepdim=True).reciprocal()
    log_z_B = packing.sentence_sums((scale_N1.double().log() + peak_N1).squeeze(1), T)
    log_z_B[packing.order_B] += (mass_B1.double().log() + first_B1 + final_B1).squeeze(1)
    log_z_B += (chain.lengths_B - 1) * shift_B.double()
    worst_N = (backward_NY * scale_N1.reciprocal().clamp(min=1)).amax(1)
    lost_B = packing.unpack(worst_N[:, None].double(), T).amax((1, 2)) * torch.finfo(chain.dtype).tiny
    ok_B = (lost_B * (T * Y * (Y + 1)) < LOST_MASS) & log_z_B.isfinite()
    return Recursion(packing, matrix_BYY, forward_NY, backward_NY, weights_NY, level_N1, log_z_B, ok_B)


def _step(rows_nY: Tensor, matrix_BYY: Tensor) -> Tensor:
    """Multiply the rows of a step's n sentences by their matrices, or by the shared one."""
    if len(matrix_BYY) == 1:
        return rows_nY @ matrix_BYY[0]
    return torch.bmm(rows_nY[:, None], matrix_BYY[: len(rows_nY)])[:, 0]


def _forward(
    weights_NY: Tensor, matrix_BYY: Tensor, start_BY: Tensor, counts: list[int]
) -> tuple[Tensor, Tensor]:
    forward_NY, scale_N1 = torch.empty_like(weights_NY), weights_NY.new_empty(len(weights_NY), 1)
    rows, scales, weights = forward_NY.split(counts), scale_N1.split(counts), weights_NY.split(counts)
    for t, n in enumerate(counts):
        before_nY = _step(rows[t - 1][:n], matrix_BYY) if t else start_BY
        torch.mul(before_nY, weights[t], out=rows[t])
        torch.sum(rows[t], 1, keepdim=True, out=scales[t])
        rows[t].div_(scales[t])
    return forward_NY, scale_N1


def _backward(added_NY: Tensor, weights_NY: Tensor, matrix_BYY: Tensor, counts: list[int]) -> Tensor:
    """Compute x_{t-1} = P (w_t ∘ x_t) / c_t + added_{t-1}, from the last step to the first, in place of `added_NY`.

    `weights_NY` is w / c.
    """
    rows, weights = added_NY.split(counts), weights_NY.split(counts)
    turned_BYY = matrix_BYY.transpose(1, 2)
    for t in range(len(counts) - 1, 0, -1):
        rows[t - 1][: counts[t]].add_(_step(rows[t] * weights[t], turned_BYY))
    return added_NY


def covariance(chain: Chain, along_BTY: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the Hessian of log Z times a direction v of the emissions.

    The Hessian is the covariance of the parts' counts, and symmetric. So one more scaled recursion, which carries the
    direction's score V along, gives the product without a graph through time: E[count · V] − E[count] E[V].

    Returns:
        Token part [B, T, Y], transition part [B, Y, Y], and `ok` [B].
    """
    run = forward_backward(chain)
    packing, a_NY, b_NY = run.packing, run.forward_NY, run.backward_NY * run.level_N1
    v_NY = packing.pack(along_BTY)
    v_NY = v_NY - (a_NY * b_NY * v_NY).sum(1, keepdim=True)  # a constant per token changes nothing
    da_NY = a_NY * v_NY
    rows, weights = da_NY.split(packing.counts), run.weights_NY.split(packing.counts)
    for t in range(1, len(rows)):
        rows[t].add_(_step(rows[t - 1][: len(rows[t])], run.matrix_BYY) * weights[t])
    carried_NY = _backward(b_NY * v_NY, run.weights_NY, run.matrix_BYY, packing.counts)
    parts = (a_NY, b_NY, da_NY, carried_NY - b_NY * v_NY, run.weights_NY * b_NY, run.weights_NY * carried_NY)
    token_BTY, pair_BYY = assemble_covariance(
        chain.lengths_B, *(packing.unpack(part, chain.time) for part in parts)
    )
    return token_BTY, pair_BYY * transition_weights(chain)[0], run.ok_B


def assemble_covariance(
    lengths_B: Tensor,
    a_BTY: Tensor,
    b_BTY: Tensor,
    da_BTY: Tensor,
    db_BTY: Tensor,
    u_BTY: Tensor,
    r_BTY: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the covariances of tags [B, T, Y] and of transitions [B, Y, Y], the latter without their factor P.

    Args:
        lengths_B: Words of each sentence.
        a_BTY: Forward rows.
        b_BTY: Backward rows.
        da_BTY: Tangents of the forward rows along the direction v.
        db_BTY: Tangents of the backward rows.
        u_BTY: w ∘ b / c.
        r_BTY: w ∘ (db + v ∘ b) / c.
    """
    mean_B11 = end_rows(da_BTY * b_BTY, lengths_B).sum(1)[:, None, None]
    token_BTY = da_BTY * b_BTY + a_BTY * (db_BTY - b_BTY * mean_B11)
    return token_BTY, summed_pairs(da_BTY - a_BTY * mean_B11, u_BTY) + summed_pairs(a_BTY, r_BTY)
