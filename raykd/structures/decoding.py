"""Labellings of chains: the best, the K best, drawn ones, and the score of given ones.

Shapes: B batch, T time, Y tags, K best paths, n samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raykd.structures import reference

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from raykd.structures.chain import Chain


def score(chain: Chain, paths: Int[Tensor, "batch *best time"]) -> Float[Tensor, "batch *best"]:
    """Scores of given labellings: paths [B, T] to [B], or [B, K, T] to [B, K]. Differentiable in the chain.

    Tags on padding are not read. Raises ValueError where the shape does not fit the chain or a tag is out of range.
    """
    if paths.dim() not in (2, 3) or (paths.shape[0], paths.shape[-1]) != (chain.batch, chain.time):
        raise ValueError(
            f"paths must be [{chain.batch}, {chain.time}] or [{chain.batch}, K, {chain.time}]; got {list(paths.shape)}"
        )
    paths_BKT = _on_tokens(chain, paths[:, None] if paths.dim() == 2 else paths)
    scores_BK = _score(chain, paths_BKT)
    return scores_BK[:, 0] if paths.dim() == 2 else scores_BK


def _on_tokens(chain: Chain, paths_BKT: Tensor) -> Tensor:
    paths_BKT = paths_BKT.long().masked_fill(~chain.mask_BT[:, None], 0)
    if paths_BKT.numel():
        lowest, highest = (int(v) for v in paths_BKT.aminmax())
        if lowest < 0 or highest >= chain.tags:
            raise ValueError(f"tags of paths must lie in 0..{chain.tags - 1}; got {lowest}..{highest}")
    return paths_BKT


def _score(chain: Chain, paths_BKT: Tensor) -> Tensor:
    rows_B1 = torch.arange(chain.batch, device=chain.device)[:, None]
    mask_B1T = chain.mask_BT[:, None]
    total_BK = _summed(chain.emissions_BTY.gather(2, paths_BKT.transpose(1, 2)).transpose(1, 2), mask_B1T)
    if chain.transitions is not None:
        before, after = paths_BKT[:, :, :-1], paths_BKT[:, :, 1:]
        shared = chain.transitions.dim() == 2
        steps = (
            chain.transitions[before, after]
            if shared
            else chain.transitions[rows_B1[..., None], before, after]
        )
        total_BK = total_BK + _summed(steps, mask_B1T[:, :, 1:])
    last_BK = paths_BKT.gather(
        2, (chain.lengths_B.long() - 1)[:, None, None].expand(-1, paths_BKT.shape[1], 1)
    )
    for ends, tags_BK in ((chain.start, paths_BKT[:, :, 0]), (chain.end, last_BK.squeeze(2))):
        if ends is not None:
            total_BK = total_BK + (ends[tags_BK] if ends.dim() == 1 else ends.gather(1, tags_BK))
    return total_BK.to(chain.dtype)


def _summed(steps_BKT: Tensor, mask_B1T: Tensor) -> Tensor:
    # float64: the difference of two such sums is a loss, and float32 would leave 1e-3 of it at T = 512
    return torch.where(mask_B1T, steps_BKT, 0).sum(2, dtype=torch.float64)


def viterbi(chain: Chain) -> tuple[Int[Tensor, "batch time"], Float[Tensor, " batch"]]:
    """The best labelling [B, T] (zero on padding) and its score [B], −∞ where none is allowed."""
    paths_BKT, scores_BK = kbest(chain, 1)
    return paths_BKT[:, 0], scores_BK[:, 0]


def kbest(chain: Chain, k: int) -> tuple[Int[Tensor, "batch best time"], Float[Tensor, "batch best"]]:
    """The k best labellings in descending order, exactly: paths [B, K, T] and scores [B, K].

    Where fewer than k labellings exist the rest have score −∞ and tags 0, and count for nothing in `path_weights`.
    Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    with torch.no_grad():
        return reference.kbest(chain.detach(), k)


def path_weights(scores_BK: Float[Tensor, "batch best"]) -> Float[Tensor, "batch best"]:
    """Probabilities of the K best paths renormalised over those that exist; paths of score −∞ weigh zero."""
    return torch.softmax(scores_BK, 1).nan_to_num(0)


def sample(
    chain: Chain, n: int, generator: torch.Generator | None = None
) -> Int[Tensor, "batch sample time"]:
    """n independent labellings drawn from each chain's distribution: [B, n, T], zero on padding."""
    with torch.no_grad():
        return reference.sample(chain.detach(), n, generator)
