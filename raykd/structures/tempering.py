"""Local temperature: marginals at ϑ = 1, their logarithms divided by ϑ, each substructure renormalised (ACL 2021).

Shapes: B batch, T time, Y tags. A pair's marginal is a product a[t-1, i] · P[i, j] · u[t, j] of forward, transition and
backward weights, so its ϑ-th root factorises in the same way and the tensor [B, T, Y, Y] is never formed. Computed in
float64, where a root lifts nothing lost into sight; the moments are constants, outside every gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine, reference
from raykd.structures.differentiable import end_rows
from raykd.structures.scaled import shifted_exp, transition_weights

if TYPE_CHECKING:
    from raykd.structures.chain import Chain


# In float64 a weight is lost below 1e-308, which a root lifts to 1e-308 ** (1/ϑ): nothing up to here
HOTTEST = 20.0


def local_token_moments(chain: Chain, temperature: float) -> Tensor:
    """Tempered token marginals [B, T, Y], zero on padding."""
    return _tempered_tokens(chain.detach().double(), temperature).to(chain.dtype)


def _tempered_tokens(wide: Chain, temperature: float) -> Tensor:
    if temperature > HOTTEST:
        logs_BTY = reference.forward_scores(wide) + reference.backward_scores(wide)
        return torch.softmax(logs_BTY / temperature, 2).nan_to_num(0) * wide.mask_BT[:, :, None]
    return _root(engine.sums(wide, pair=False).token_BTY, temperature)


def _root(marginals_BTY: Tensor, temperature: float) -> Tensor:
    rooted_BTY = marginals_BTY ** (1 / temperature)
    return rooted_BTY / rooted_BTY.sum(2, keepdim=True).clamp(min=torch.finfo(rooted_BTY.dtype).tiny)


def local_pair_moments(chain: Chain, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tempered token [B, T, Y], transition [B, Y, Y], start [B, Y] and end [B, Y] moments of a chain student."""
    wide = chain.detach().double()
    left_BTY, right_BTY, weights_BYY = _rooted_factors(wide, temperature)
    into_BTY = left_BTY[:, :-1] @ weights_BYY
    total_BT1 = (into_BTY * right_BTY[:, 1:]).sum(2, keepdim=True)
    scale_BT1 = torch.where(total_BT1 > 0, total_BT1, 1.0).reciprocal() * wide.mask_BT[:, 1:, None]
    right_BTY = right_BTY[:, 1:] * scale_BT1
    single_BTY = _tempered_tokens(wide, temperature)
    token_BTY = torch.cat([single_BTY[:, :1], into_BTY * right_BTY], 1)
    transition_BYY = (left_BTY[:, :-1].transpose(1, 2) @ right_BTY) * weights_BYY
    parts = (token_BTY, transition_BYY, single_BTY[:, 0], end_rows(single_BTY, wide.lengths_B))
    return tuple(part.to(chain.dtype) for part in parts)  # type: ignore[return-value]


def _rooted_factors(wide: Chain, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """The ϑ-th roots of a, w ∘ b / c and P, each up to a factor per row."""
    found = None if temperature > HOTTEST else engine.sums(wide, token=False, pair=False, sides=True)
    if found is not None and bool(found.ok_B.all()):
        weights_BYY, _ = transition_weights(wide)
        power = 1 / temperature
        return found.left_BTY**power, found.right_BTY**power, weights_BYY**power
    transitions_BYY, _, _ = wide.filled()
    right_BTY = wide.emissions_BTY.masked_fill(~wide.mask_BT[:, :, None], 0) + reference.backward_scores(wide)
    logs = (reference.forward_scores(wide), right_BTY, transitions_BYY.flatten(1))
    left_BTY, right_BTY, weights = (shifted_exp(part / temperature)[0] for part in logs)
    return left_BTY, right_BTY, weights.view_as(transitions_BYY)
