"""The log-partition and its derivatives: marginals and moments.

Shapes: B batch, T time, Y tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from raykd.structures.differentiable import LogPartition, Marginals

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
