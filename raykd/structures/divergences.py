"""Entropies and divergences of whole chains, and of their token marginals. All in nats, per sentence.

Shapes: B batch, T time, Y tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures.differentiable import PosteriorKL
from raykd.structures.moments import expected_score, moments
from raykd.structures.partition import log_partition_64

if TYPE_CHECKING:
    from jaxtyping import Float

    from raykd.structures.chain import Chain


def entropy(chain: Chain) -> Float[Tensor, " batch"]:
    """H(p) = −Σ_y p(y) log p(y) [B] over all labellings: log Z − ⟨μ, θ⟩."""
    return cross_entropy(chain, chain)


def cross_entropy(p: Chain, q: Chain) -> Float[Tensor, " batch"]:
    """−Σ_y p(y) log q(y) [B]; +∞ where p allows what q forbids. Raises ValueError where the chains differ in shape."""
    return _cross_entropy(p, q).to(q.dtype)


def _cross_entropy(p: Chain, q: Chain) -> Tensor:
    _check_alike(p, q)
    chained = not (q.transitions is None and q.start is None and q.end is None)
    return log_partition_64(q) - expected_score(q, moments(p, pairwise=chained))


def kl(p: Chain, q: Chain) -> Float[Tensor, " batch"]:
    """KL(p ‖ q) = Σ_y p(y) log(p(y) / q(y)) [B]; zero iff the distributions agree."""
    return (_cross_entropy(p, q) - _cross_entropy(p, p)).to(q.dtype)


def posterior_kl(teacher_token_BTY: Float[Tensor, "batch time tag"], chain: Chain) -> Float[Tensor, " batch"]:
    """Σ_t KL(q_t ‖ p_t) [B], q the teacher's token marginals, p the chain's (Wang et al., ACL 2020, Eq. 8, as a KL).

    Zero iff the token marginals agree. Differentiable in the chain; the teacher's rows are taken as constants.
    """
    if teacher_token_BTY.shape != chain.emissions_BTY.shape:
        raise ValueError(
            f"teacher marginals must be {list(chain.emissions_BTY.shape)}; got {list(teacher_token_BTY.shape)}"
        )
    return PosteriorKL.apply(teacher_token_BTY.detach().to(chain.dtype), *chain.parts())


def _check_alike(p: Chain, q: Chain) -> None:
    if p.emissions_BTY.shape != q.emissions_BTY.shape or not torch.equal(p.lengths_B, q.lengths_B):
        raise ValueError(
            f"both chains must label the same sentences; got emissions {list(p.emissions_BTY.shape)} and "
            f"{list(q.emissions_BTY.shape)}, or different lengths"
        )
