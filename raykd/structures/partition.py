"""The log-partition and its derivatives: marginals and moments.

Shapes: B batch, T time, Y tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from raykd.structures import reference

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from raykd.structures.chain import Chain


def log_partition(chain: Chain) -> Float[Tensor, " batch"]:
    """log Z [B]: the log of the summed exponentiated scores of all labellings, in nats; −∞ where none is allowed.

    Differentiable twice; its gradient in the emissions is the token marginals.
    """
    return reference.log_partition(chain)


def token_marginals(chain: Chain) -> Float[Tensor, "batch time tag"]:
    """p(y_t = y) [B, T, Y]: zero on padding; each token's row sums to one. Differentiable twice."""
    return reference.token_marginals(chain)


def pairwise_marginals(chain: Chain) -> Float[Tensor, "batch time tag tag"]:
    """p(y_{t-1} = i, y_t = j) [B, T, Y, Y] as pair[b, t, i, j]; zero at t = 0 and on padding. Differentiable.

    Training never needs this tensor (see `moments`); it is Y times larger than the emissions.
    """
    return reference.pairwise_marginals(chain)


def moments_of(chain: Chain, *, pairwise: bool) -> tuple[Tensor, Tensor | None]:
    """Token marginals [B, T, Y] and, if asked, expected transitions summed over time [B, Y, Y]."""
    if not pairwise:
        return token_marginals(chain), None
    return token_marginals(chain), pairwise_marginals(chain).sum(1)


def end_token(
    values_BTY: Float[Tensor, "batch time tag"], lengths_B: Int[Tensor, " batch"]
) -> Float[Tensor, "batch tag"]:
    """The row [B, Y] of each sentence's last token."""
    last_B1Y = (lengths_B.long() - 1)[:, None, None].expand(-1, 1, values_BTY.shape[2])
    return values_BTY.gather(1, last_B1Y).squeeze(1)
