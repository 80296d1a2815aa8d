"""Moments of chains: the targets of distillation objectives, and the losses against them, in nats for each sentence.

Shapes: B batch, T time, Y tags, K best paths. A moment is an expected count of one part of a labelling. The score of a
chain is linear in its parts, so an expected score needs the moments only, and since transitions do not depend on the
position, their moments are summed over time: [Y, Y] per sentence, never [T, Y, Y].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from raykd.structures import reference
from raykd.structures.decoding import checked_paths
from raykd.structures.differentiable import PosteriorKL, log_partition_64, moment_tensors
from raykd.structures.padding import end_rows, length_mask
from raykd.structures.tempering import local_pair_moments, local_token_moments

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from raykd.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class Moments:
    """Expected counts per sentence: tags at each token, transitions summed over time, first tags, last tags.

    token_BTY: [B, T, Y], zero on padding. transition_BYY: [B, from, to]. start_BY, end_BY: [B, Y].
    The last three are None where only tokens are needed (a student without transitions).
    """

    token_BTY: Float[Tensor, "batch time tag"]
    transition_BYY: Float[Tensor, "batch tag tag"] | None = None
    start_BY: Float[Tensor, "batch tag"] | None = None
    end_BY: Float[Tensor, "batch tag"] | None = None


def moments(chain: Chain, *, pairwise: bool = True) -> Moments:
    """The chain's own moments: the gradient of log Z in its scores; differentiable.

    With `pairwise=False` only the token marginals. A chain without transitions has transition moments too: the products
    of neighbouring token marginals, summed (Wang et al., ACL 2021, case 3).
    """
    token_BTY, transition_BYY = moment_tensors(chain, pairwise=pairwise)
    if transition_BYY is None:
        return Moments(token_BTY)
    return Moments(token_BTY, transition_BYY, token_BTY[:, 0], end_rows(token_BTY, chain.lengths_B))


def path_moments(
    paths_BKT: Int[Tensor, "batch best time"],
    weights_BK: Float[Tensor, "batch best"],
    lengths: Int[Tensor, " batch"],
    tags: int,
) -> Moments:
    """Moments of a weighted list of labellings: one-hot for gold (K = 1, weight 1), the paths' weights for Top-K.

    A path of weight zero has no effect; its tags must still be within 0..tags-1.
    """
    B, _, T = paths_BKT.shape
    paths_BKT = paths_BKT.long()
    mask_BT = length_mask(lengths, T)
    weights_BKT = weights_BK[:, :, None] * mask_BT[:, None]
    paths_BKT = paths_BKT.masked_fill(~mask_BT[:, None], 0)
    token_BTY = weights_BK.new_zeros(B, T, tags)
    token_BTY.scatter_add_(2, paths_BKT.transpose(1, 2), weights_BKT.transpose(1, 2))
    pairs = (paths_BKT[:, :, :-1] * tags + paths_BKT[:, :, 1:]).reshape(B, -1)
    transition = weights_BK.new_zeros(B, tags * tags)
    transition.scatter_add_(1, pairs, weights_BKT[:, :, 1:].reshape(B, -1))
    return Moments(
        token_BTY, transition.reshape(B, tags, tags), token_BTY[:, 0], end_rows(token_BTY, lengths)
    )


def tempered_moments(
    chain: Chain, temperature: float, mode: Literal["local", "global"] = "local", *, pairwise: bool = True
) -> Moments:
    """The chain's moments at a temperature ϑ (Wang et al., ACL 2021, section on temperature).

    global: divide the scores by ϑ, then take the moments.
    local: take the marginals at ϑ = 1 over the student's substructures, divide their logarithms by ϑ, renormalise each.
    With `pairwise` the substructures are those of a chain student: the first tag, every neighbouring pair (with the
    second tag's emission) and the last tag; otherwise the single tags of a MaxEnt student. With ϑ ≠ 1 and local
    mode the moments are constants: no gradient goes through them.
    Raises ValueError for a temperature that is not positive or an unknown mode.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive; got {temperature}")
    if mode not in ("local", "global"):
        raise ValueError(f"unknown temperature mode {mode!r}; allowed: local, global")
    if temperature == 1:
        return moments(chain, pairwise=pairwise)
    if mode == "global":
        return moments(chain.map(lambda scores: scores / temperature), pairwise=pairwise)
    if not pairwise:
        return Moments(local_token_moments(chain, temperature))
    return Moments(*local_pair_moments(chain, temperature))


def expected_score(chain: Chain, target: Moments) -> Float[Tensor, " batch"]:
    """⟨μ, θ⟩ [B] in float64: the expected score of labellings with these moments; −∞ if one of them is forbidden.

    Raises ValueError where the chain has transitions, start or end scores and the moments do not count them.
    """
    return reference.expected_score(chain, *_counted(chain, target))


def _counted(chain: Chain, target: Moments) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """The moments that the chain has scores for."""
    if target.token_BTY.shape != chain.emissions_BTY.shape:
        raise ValueError(
            f"token moments must be {list(chain.emissions_BTY.shape)}; got {list(target.token_BTY.shape)}"
        )
    parts: list[Tensor | None] = []
    counts = (target.transition_BYY, target.start_BY, target.end_BY)
    for name, count in zip(("transitions", "start", "end"), counts, strict=True):
        scored = getattr(chain, name) is not None
        if scored and count is None:
            raise ValueError(
                f"the chain has {name} scores but the moments do not count them; take moments with pairwise=True"
            )
        parts.append(count if scored else None)
    return target.token_BTY, *parts  # type: ignore[return-value]


def fenchel_young(chain: Chain, moments: Moments) -> Float[Tensor, " batch"]:
    """log Z(θ) − ⟨μ*, θ⟩ [B]: the Fenchel–Young loss, whose gradient is μ(θ) − μ*.

    One loss for gold likelihood (one-hot moments), Top-K (path moments) and structural distillation (the teacher's
    moments; Wang et al., ACL 2021, Eq. 3). Its minimum is the entropy of the distribution that μ* belongs to, reached
    iff μ(θ) = μ*. Differentiable in the chain and in the moments. Raises ValueError as `expected_score`.
    """
    return (log_partition_64(chain) - expected_score(chain, moments)).to(chain.dtype)


def posterior_kl(teacher_token_BTY: Float[Tensor, "batch time tag"], chain: Chain) -> Float[Tensor, " batch"]:
    """Σ_t KL(q_t ‖ p_t) [B], q the teacher's token marginals, p the chain's (Wang et al., ACL 2020, Eq. 8, as a KL).

    Zero iff the token marginals agree. Differentiable in the chain; the teacher's rows are taken as constants.
    """
    if teacher_token_BTY.shape != chain.emissions_BTY.shape:
        raise ValueError(
            f"teacher marginals must be {list(chain.emissions_BTY.shape)}; got {list(teacher_token_BTY.shape)}"
        )
    return PosteriorKL.apply(teacher_token_BTY.detach().to(chain.dtype), *chain.parts())


def path_loss(
    chain: Chain,
    paths: Int[Tensor, "batch *best time"],
    weights_BK: Float[Tensor, "batch best *time"] | None = None,
) -> Float[Tensor, " batch"]:
    """−Σ_k w_k log p(path_k) [B]: gold likelihood for paths [B, T], weighted Top-K for paths [B, K, T].

    Of a chain without transitions each word may have weights of its own [B, K, T]: −Σ_k Σ_t w_kt log p(path_k[t]).

    Equal to `fenchel_young` with `path_moments`, which are not formed; log Z is computed once for all K.
    Weights default to 1/K; they are taken as constants, and a path of weight zero has no effect. The minimum is
    reached iff the chain's moments are the weighted paths'. Raises ValueError where paths do not fit the chain.
    """
    paths_BKT = checked_paths(chain, paths)
    shape = tuple(paths_BKT.shape[:2])
    if weights_BK is None:
        return (log_partition_64(chain) - reference.score(chain, paths_BKT).mean(1)).to(chain.dtype)
    if weights_BK.dim() == 3:
        return _word_path_loss(chain, paths_BKT, weights_BK.detach())
    if tuple(weights_BK.shape) != shape:
        raise ValueError(f"weights must be {list(shape)}, one per path; got {list(weights_BK.shape)}")
    weights_BK = weights_BK.detach().double()
    scores_BK = torch.where(weights_BK != 0, reference.score(chain, paths_BKT), 0)
    value_B = weights_BK.sum(1) * log_partition_64(chain) - (weights_BK * scores_BK).sum(1)
    return value_B.to(chain.dtype)


def _word_path_loss(chain: Chain, paths_BKT: Tensor, weights_BKT: Tensor) -> Tensor:
    if any(part is not None for part in (chain.transitions, chain.start, chain.end)):
        raise ValueError("weights of words are of independent words, and the chain has transitions")
    if weights_BKT.shape != paths_BKT.shape:
        raise ValueError(f"weights must be {list(paths_BKT.shape)}; got {list(weights_BKT.shape)}")
    inside_BT1 = chain.mask_BT[:, :, None]
    logs_BTK = chain.emissions_BTY.log_softmax(2).gather(
        2, paths_BKT.transpose(1, 2).masked_fill(~inside_BT1, 0)
    )
    weights_BTK = weights_BKT.transpose(1, 2).to(chain.dtype)
    return -torch.where(inside_BT1 & (weights_BTK != 0), weights_BTK * logs_BTK, 0).sum((1, 2))
