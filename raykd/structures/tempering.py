"""Local temperature: marginals at ϑ = 1, their logarithms divided by ϑ, each substructure renormalised (ACL 2021).

Shapes: B batch, T time, Y tags. A pair's marginal is a product a[t-1, i] · P[i, j] · u[t, j] of forward, transition and
backward weights, so its ϑ-th root factorises in the same way and the tensor [B, T, Y, Y] is never formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.reference import backward_scores, forward_scores

if TYPE_CHECKING:
    from raykd.structures.chain import Chain


def local_token_moments(chain: Chain, temperature: float) -> Tensor:
    """Tempered token marginals [B, T, Y], zero on padding."""
    return _tempered_tokens(chain.double(), temperature).to(chain.dtype)


def _tempered_tokens(wide: Chain, temperature: float) -> Tensor:
    log_BTY = (forward_scores(wide) + backward_scores(wide)) / temperature
    return torch.softmax(log_BTY, -1).nan_to_num(0) * wide.mask_BT[:, :, None]


def local_pair_moments(chain: Chain, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tempered token [B, T, Y], transition [B, Y, Y], start [B, Y] and end [B, Y] moments of a chain student."""
    wide = chain.double()
    alpha_BTY, beta_BTY = forward_scores(wide), backward_scores(wide)
    transitions_BYY, _, _ = wide.filled()
    mask_BT = wide.mask_BT
    right_BTY = wide.emissions_BTY.masked_fill(~mask_BT[:, :, None], 0) + beta_BTY
    left_BTY = _shifted_exp(alpha_BTY[:, :-1] / temperature)
    right_BTY = _shifted_exp(right_BTY[:, 1:] / temperature)
    weights_BYY = _shifted_exp(transitions_BYY.flatten(1) / temperature).view_as(transitions_BYY)
    into_BTY = left_BTY @ weights_BYY
    total_BT1 = (into_BTY * right_BTY).sum(-1, keepdim=True)
    scale_BT1 = torch.where(total_BT1 > 0, total_BT1, 1.0).reciprocal() * mask_BT[:, 1:, None]
    right_BTY = right_BTY * scale_BT1
    single_BTY = _tempered_tokens(wide, temperature)
    token_BTY = torch.cat([single_BTY[:, :1], into_BTY * right_BTY], 1)
    transition_BYY = (left_BTY.transpose(1, 2) @ right_BTY) * weights_BYY
    last_B = (wide.lengths_B - 1)[:, None, None].expand(-1, 1, wide.tags)
    end_BY = single_BTY.gather(1, last_B).squeeze(1)
    parts = (token_BTY, transition_BYY, single_BTY[:, 0], end_BY)
    return tuple(part.to(chain.dtype) for part in parts)  # type: ignore[return-value]


def _shifted_exp(logs: Tensor) -> Tensor:
    peak = logs.amax(-1, keepdim=True)
    return (logs - torch.where(peak == float("-inf"), 0.0, peak)).exp()
