"""The log-partition and its derivatives: marginals and moments.

Shapes: B batch, T time, Y tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine, reference
from raykd.structures.differentiable import LogPartition, Marginals
from raykd.structures.scaled import transition_weights

if TYPE_CHECKING:
    from jaxtyping import Float

    from raykd.structures.chain import Chain


def log_partition(chain: Chain) -> Float[Tensor, " batch"]:
    """log Z [B]: the log of the summed exponentiated scores of all labellings, in nats; −∞ where none is allowed.

    Differentiable any number of times; its gradient in the emissions is the token marginals.
    """
    return log_partition_64(chain).to(chain.dtype)


def log_partition_64(chain: Chain) -> Tensor:
    """log Z [B] in float64, so that a difference of large values stays accurate; gradients have the chain's dtype."""
    return LogPartition.apply(*chain.parts())  # type: ignore[return-value]


def token_marginals(chain: Chain) -> Float[Tensor, "batch time tag"]:
    """p(y_t = y) [B, T, Y]: zero on padding, each token's row sums to one. Differentiable any number of times."""
    return moments_of(chain, pairwise=False)[0]


def moments_of(chain: Chain, *, pairwise: bool) -> tuple[Tensor, Tensor | None]:
    """Token marginals [B, T, Y] and, if requested, expected transitions summed over time [B, Y, Y]."""
    return Marginals.apply(pairwise, *chain.parts())  # type: ignore[return-value]


def pairwise_marginals(chain: Chain) -> Float[Tensor, "batch time tag tag"]:
    """p(y_{t-1} = i, y_t = j) [B, T, Y, Y] as pair[b, t, i, j]; zero at t = 0 and on padding. Differentiable.

    Training never needs this tensor (see `moments`); it is Y times larger than the emissions.
    """
    if torch.is_grad_enabled() and any(part.requires_grad for part in chain.scores()):
        return reference.pairwise_marginals(chain)
    found = engine.sums(chain, token=False, pair=False, sides=True)
    weights_BYY, _ = transition_weights(chain.detach())
    pairs = found.left_BTY.new_zeros(*found.left_BTY.shape, chain.tags)
    scaled_BTYY = found.left_BTY[:, :-1, :, None] * weights_BYY[:, None]
    torch.mul(scaled_BTYY, found.right_BTY[:, 1:, None, :], out=pairs[:, 1:])
    bad_N = (~found.ok_B).nonzero().squeeze(1)
    if len(bad_N):
        pairs[bad_N] = reference.pairwise_marginals(chain.detach().select(bad_N).double()).to(chain.dtype)
    return pairs
