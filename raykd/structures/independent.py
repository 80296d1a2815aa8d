"""Chains without transitions: tokens are independent (a MaxEnt decoder), so there is no recursion and no kernel.

Shapes: B batch, T time, Y tags.

    log Z = Σ_t log Σ_y exp e[t, y]      p_t = softmax e_t      expected transitions = Σ_t p_{t-1} p_tᵀ
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.scaled import Sums, shifted_exp

if TYPE_CHECKING:
    from raykd.structures.chain import Chain


def sums(chain: Chain, *, pair: bool) -> Sums:
    """Return log Z [B] in float64, token marginals and, if requested, expected transitions of a detached chain."""
    weights_BTY, peak_BT1 = shifted_exp(emissions_with_ends(chain))
    total_BT1 = weights_BTY.sum(2, keepdim=True)
    log_BT = (total_BT1.double().log() + peak_BT1).squeeze(2)
    mask_BT = chain.mask_BT
    log_z_B = torch.where(mask_BT, log_BT, 0).sum(1)
    # NaN counts as possible, so that it is not hidden
    possible_B11 = (log_z_B != -inf)[:, None, None]
    token_BTY = torch.where(mask_BT[:, :, None] & possible_B11, weights_BTY / total_BT1, 0)
    empty = token_BTY.new_empty(0)
    pair_BYY = torch.bmm(token_BTY[:, :-1].transpose(1, 2), token_BTY[:, 1:]) if pair else empty
    ok_B = torch.ones(chain.batch, dtype=torch.bool, device=chain.device)
    return Sums(log_z_B, ok_B, token_BTY, pair_BYY, empty, empty)


def covariance(chain: Chain, along_BTY: Tensor) -> Tensor:
    """Return the Hessian of log Z in the emissions, times a direction of them: [B, T, Y]."""
    token_BTY = sums(chain, pair=False).token_BTY
    along_BTY = torch.where(chain.mask_BT[:, :, None], along_BTY, 0)
    return token_BTY * (along_BTY - (token_BTY * along_BTY).sum(2, keepdim=True))


def posterior(chain: Chain, teacher_BTY: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ_t KL(q_t ‖ p_t) [B] in float64 and its gradient in the emissions, Σq · p − q."""
    emissions_BTY = emissions_with_ends(chain)
    teacher_BTY = torch.where(chain.mask_BT[:, :, None], teacher_BTY.to(chain.dtype), 0)
    log_BTY = torch.where(teacher_BTY > 0, torch.log_softmax(emissions_BTY, 2), 0)
    value_BTY = torch.xlogy(teacher_BTY, teacher_BTY) - teacher_BTY * log_BTY
    student_BTY = sums(chain, pair=False).token_BTY
    gradient_BTY = student_BTY * teacher_BTY.sum(2, keepdim=True) - teacher_BTY
    return value_BTY.sum((1, 2), dtype=torch.float64), gradient_BTY


def emissions_with_ends(chain: Chain) -> Tensor:
    """Return emissions with start and end scores added to the first and last tokens."""
    emissions_BTY = chain.emissions_BTY
    time_T = torch.arange(chain.time, device=chain.device)
    places = ((chain.start, time_T == 0), (chain.end, time_T == chain.lengths_B[:, None] - 1))
    for scores, place in places:
        if scores is not None:
            place_BT1 = place.expand(chain.batch, chain.time)[:, :, None]
            scores_BY = scores.expand(chain.batch, chain.tags)
            emissions_BTY = torch.where(place_BT1, emissions_BTY + scores_BY[:, None], emissions_BTY)
    return emissions_BTY
