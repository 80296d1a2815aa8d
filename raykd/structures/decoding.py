"""Labellings of chains: the best, the K best, samples, and the scores of given labellings.

Shapes: B batch, T time, Y tags, K best paths, n samples.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import engine, reference
from raykd.structures.independent import emissions_with_ends
from raykd.structures.padding import check_tags
from raykd.structures.unscored import UnscoredChain

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from raykd.structures.chain import Chain
    from raykd.structures.legal import LegalTransitions


def score(chain: Chain, paths: Int[Tensor, "batch *best time"]) -> Float[Tensor, " batch *best"]:
    """Return the scores of labellings, [B] or [B, K]. Differentiable in the chain.

    Args:
        chain: The chain.
        paths: Tags [B, T] or [B, K, T]; tags on padding are not read.

    Raises:
        ValueError: The shape does not fit the chain, or a tag is out of range.
    """
    paths_BKT = checked_paths(chain, paths)
    scores_BK = reference.score(chain, paths_BKT).to(chain.dtype)
    return scores_BK[:, 0] if paths.dim() == 2 else scores_BK


def checked_paths(chain: Chain, paths: Tensor) -> Tensor:
    """Return paths as int64 [B, K, T] with zeros on padding; ValueError if they cannot label the chain's sentences."""
    if paths.dim() not in (2, 3) or (paths.shape[0], paths.shape[-1]) != (chain.batch, chain.time):
        raise ValueError(
            f"paths must be [{chain.batch}, {chain.time}] or [{chain.batch}, K, {chain.time}]; got {list(paths.shape)}"
        )
    paths_BKT = paths[:, None] if paths.dim() == 2 else paths
    paths_BKT = paths_BKT.long().masked_fill(~chain.mask_BT[:, None], 0)
    check_tags(paths_BKT, chain.tags)
    return paths_BKT


def viterbi(
    chain: Chain, legal: LegalTransitions | None = None
) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """Return the best labelling [B, T] (zero on padding) and its score [B], −∞ if none is allowed.

    Args:
        chain: The chain.
        legal: Transitions to which the labelling is restricted; None: no restriction.
    """
    chain = chain if legal is None else legal.restrict(chain.detach())
    if chain.transitions is None and not isinstance(chain, UnscoredChain):
        return _best_independent_tags(chain.detach())
    paths_BKT, scores_BK = kbest(chain, 1)
    return paths_BKT[:, 0], scores_BK[:, 0]


def _best_independent_tags(chain: Chain) -> tuple[Tensor, Tensor]:
    """Return the best labelling of independent tags: the best tag of each token, without a step over pairs of tags."""
    best_BT, tags_BT = emissions_with_ends(chain).max(2)
    best_B = torch.where(chain.mask_BT, best_BT, 0).sum(1, dtype=torch.float64)
    allowed_BT = chain.mask_BT & (best_B > -inf)[:, None]
    return torch.where(allowed_BT, tags_BT, 0), best_B.to(chain.dtype)


def kbest(
    chain: Chain, k: int, legal: LegalTransitions | None = None
) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best"]]:
    """Return the k best labellings, in descending order and exactly: paths [B, K, T] and scores [B, K].

    If fewer than k labellings exist, the rest have score −∞ and tags 0, and weight 0 in `path_weights`.

    Args:
        chain: The chain.
        k: Number of labellings.
        legal: Transitions to which labellings are restricted; None: no restriction.

    Raises:
        ValueError: `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    if isinstance(chain, UnscoredChain) and legal is None:
        return _kbest_of_best_tags(*chain.best_tags(k), k)
    with torch.no_grad():
        return engine.k_best(chain if legal is None else legal.restrict(chain.detach()), k)


def _kbest_of_best_tags(chain: Chain, tags_BTK: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Find the k best labellings of independent tokens among the k best tags per token.

    Tag r of the chain at a token stands for `tags_BTK[b, t, r]`.
    """
    ranks_BKT, scores_BK = kbest(chain, k)
    paths_BKT = tags_BTK.transpose(1, 2).gather(1, ranks_BKT)
    exists_BKT = (scores_BK > -inf)[:, :, None] & chain.mask_BT[:, None]
    return paths_BKT.masked_fill(~exists_BKT, 0), scores_BK


def path_weights(scores_BK: Float[Tensor, "batch best *time"]) -> Float[Tensor, "batch best *time"]:
    """Return the probabilities of the K best paths, or of each word's K best labels; their sum is 1.

    Args:
        scores_BK: Scores of the paths [B, K], or of labels [B, K, T]; −∞ has weight 0, and if all are −∞,
            all have.
    """
    return torch.softmax(scores_BK, 1).nan_to_num(0)


def sample(
    chain: Chain, n: int, generator: torch.Generator | None = None
) -> Int[Tensor, "batch sample time"]:
    """Draw n independent labellings per sentence from the chain's distribution: [B, n, T], zero on padding.

    Args:
        chain: The chain.
        n: Number of labellings.
        generator: Source of randomness; None: torch's default generator.
    """
    with torch.no_grad():
        return reference.sample(chain.detach(), n, generator)
