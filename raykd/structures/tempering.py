"""Local temperature: marginals at ϑ = 1, their logarithms divided by ϑ, each substructure renormalised (ACL 2021).

Shapes: B batch, T time, Y tags. A pair's marginal is a product a[t-1, i] · P[i, j] · u[t, j] of forward, transition and
backward weights, so its ϑ-th root factorises in the same way and the tensor [B, T, Y, Y] is never formed. The
moments are constants, without gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine, reference
from raykd.structures.device import all_true
from raykd.structures.padding import end_rows
from raykd.structures.scaled import shifted_exp, transition_weights

if TYPE_CHECKING:
    from raykd.structures.chain import Chain


# A weight below tiny underflows; its root would be up to tiny ** (1/ϑ), which is negligible up to ϑ = 3 in float32
# (2e-13) and up to ϑ = 20 in float64 (4e-16). Below ϑ = 1 weights become smaller, so float64 is needed there too.
MAX_FLOAT32_TEMPERATURE, MAX_FLOAT64_TEMPERATURE = 3.0, 20.0


def local_token_moments(chain: Chain, temperature: float) -> Tensor:
    """Return tempered token marginals [B, T, Y], zero on padding."""
    return _tempered_tokens(_wide_enough(chain.detach(), temperature), temperature).to(chain.dtype)


def _wide_enough(chain: Chain, temperature: float) -> Chain:
    return chain if 1 <= temperature <= MAX_FLOAT32_TEMPERATURE else chain.double()


def _tempered_tokens(wide: Chain, temperature: float) -> Tensor:
    if temperature > MAX_FLOAT64_TEMPERATURE:
        logs_BTY = reference.forward_scores(wide) + reference.backward_scores(wide)
        return torch.softmax(logs_BTY / temperature, 2).nan_to_num(0) * wide.mask_BT[:, :, None]
    return _root(engine.sums(wide, pair=False).token_BTY, temperature)


def _root(marginals: Tensor, temperature: float) -> Tensor:
    rooted = marginals ** (1 / temperature)
    return rooted / rooted.sum(-1, keepdim=True).clamp(min=torch.finfo(rooted.dtype).tiny)


def local_pair_moments(chain: Chain, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return tempered token [B, T, Y], transition [B, Y, Y], start [B, Y] and end [B, Y] moments of a chain student."""
    wide = _wide_enough(chain.detach(), temperature)
    single_BTY = _tempered_tokens(wide, temperature)
    left_BTY, right_BTY, weights_BYY = _rooted_factors(wide, temperature)
    # tensors of pairs have T − 1 rows: words with one before them
    into_BTY = left_BTY[:, :-1] @ weights_BYY
    total_BT1 = (into_BTY * right_BTY[:, 1:]).sum(2, keepdim=True)
    scale_BT1 = torch.where(total_BT1 > 0, total_BT1, 1.0).reciprocal() * wide.mask_BT[:, 1:, None]
    right_BTY = right_BTY[:, 1:] * scale_BT1
    token_BTY = torch.cat([single_BTY[:, :1].to(into_BTY.dtype), into_BTY * right_BTY], 1)
    transition_BYY = (left_BTY[:, :-1].transpose(1, 2) @ right_BTY) * weights_BYY
    end_BY = end_rows(single_BTY, wide.lengths_B)
    return (
        token_BTY.to(chain.dtype),
        transition_BYY.to(chain.dtype),
        single_BTY[:, 0].to(chain.dtype),
        end_BY.to(chain.dtype),
    )


def _rooted_factors(wide: Chain, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the ϑ-th roots of a, w ∘ b / c and P, up to a factor per row."""
    sums = (
        None
        if temperature > MAX_FLOAT64_TEMPERATURE
        else engine.sums(wide, token=False, pair=False, sides=True)
    )
    if sums is not None and all_true(sums.ok_B):
        weights_BYY, _ = transition_weights(wide)
        power = 1 / temperature
        return sums.left_BTY**power, sums.right_BTY**power, weights_BYY**power
    wide = wide.double()
    transitions_BYY, _, _ = wide.filled()
    right_BTY = wide.emissions_BTY.masked_fill(~wide.mask_BT[:, :, None], 0) + reference.backward_scores(wide)
    logs = (reference.forward_scores(wide), right_BTY, transitions_BYY.flatten(1))
    left_BTY, right_BTY, weights = (shifted_exp(part / temperature)[0] for part in logs)
    return left_BTY, right_BTY, weights.view_as(transitions_BYY)
