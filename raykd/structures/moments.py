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
    """Expected counts per sentence.

    The last three are None if only tokens are needed (a student without transitions).

    Attributes:
        token_BTY: Tags at each token [B, T, Y], zero on padding.
        transition_BYY: Transitions summed over time [B, from, to].
        start_BY: First tags [B, Y].
        end_BY: Last tags [B, Y].
    """

    token_BTY: Float[Tensor, "batch time tag"]
    transition_BYY: Float[Tensor, "batch tag tag"] | None = None
    start_BY: Float[Tensor, "batch tag"] | None = None
    end_BY: Float[Tensor, "batch tag"] | None = None


def moments(chain: Chain, *, pairwise: bool = True) -> Moments:
    """Return the chain's moments: the gradient of log Z in its scores. Differentiable.

    Args:
        chain: The chain.
        pairwise: Whether to count transitions, first and last tags too. A chain without transitions has transition
            moments too: the summed products of neighbouring token marginals (Wang et al., ACL 2021, case 3).
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
    """Return the moments of a weighted list of labellings: one-hot for gold (K = 1, weight 1), path weights for Top-K.

    Args:
        paths_BKT: Labellings; tags of a path of weight zero must be within 0..tags-1 too.
        weights_BK: Weight of each path.
        lengths: Words of each sentence.
        tags: Number of tags.
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
    """Return the chain's moments at a temperature ϑ (Wang et al., ACL 2021, section on temperature).

    Moments with ϑ ≠ 1 in local mode are constants: no gradient goes through them.

    Args:
        chain: The chain.
        temperature: ϑ, above 0.
        mode: "global" divides the scores by ϑ, then takes the moments. "local" takes the marginals at ϑ = 1 over the
            student's substructures, divides their logarithms by ϑ, and renormalises each.
        pairwise: Whether the substructures are those of a chain student: the first tag, every neighbouring pair (with
            the second tag's emission) and the last tag; otherwise the single tags of a MaxEnt student.

    Raises:
        ValueError: The temperature is not positive, or the mode unknown.
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
    """Return ⟨μ, θ⟩ [B] in float64: the expected score of labellings with these moments.

    It is −∞ if a part of a labelling with a moment other than 0 is forbidden.

    Args:
        chain: The chain, with scores θ.
        target: Moments μ.

    Raises:
        ValueError: The shapes differ, or the chain has transition, start or end scores and the moments do not count
            them.
    """
    return reference.expected_score(chain, *_matching_moments(chain, target))


def _matching_moments(
    chain: Chain, target: Moments
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Return the moments of the chain's parts, None for parts without scores."""
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
    """Return log Z(θ) − ⟨μ*, θ⟩ [B]: the Fenchel–Young loss, whose gradient is μ(θ) − μ*.

    One loss for gold likelihood (one-hot moments), Top-K (path moments) and structural distillation (the teacher's
    moments; Wang et al., ACL 2021, Eq. 3). The minimum is the entropy of the distribution that μ* belongs to, reached
    iff μ(θ) = μ*. Differentiable in the chain and in the moments.

    Args:
        chain: The student's chain, with scores θ.
        moments: Target moments μ*.

    Raises:
        ValueError: As of `expected_score`.
    """
    return (log_partition_64(chain) - expected_score(chain, moments)).to(chain.dtype)


def posterior_kl(teacher_token_BTY: Float[Tensor, "batch time tag"], chain: Chain) -> Float[Tensor, " batch"]:
    """Return Σ_t KL(q_t ‖ p_t) [B], q the teacher's token marginals, p the chain's.

    (Wang et al., ACL 2020, Eq. 8, as a KL.) Zero iff the token marginals agree. Differentiable in the chain; the
    teacher's rows are taken as constants.

    Args:
        teacher_token_BTY: Token marginals of the teacher.
        chain: The student's chain.

    Raises:
        ValueError: Shapes differ.
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
    """Return −Σ_k w_k log p(path_k) [B]: gold likelihood for paths [B, T], weighted Top-K for paths [B, K, T].

    Equal to `fenchel_young` with `path_moments`, which are not formed; log Z is computed once for all K. The minimum is
    reached iff the chain's moments are the weighted paths'.

    Args:
        chain: The student's chain.
        paths: Labellings.
        weights_BK: Constant weights of the paths; None: 1/K. A path of weight zero has no effect. With [B, K, T] each
            word has its weights, −Σ_k Σ_t w_kt log p(path_k[t]), for chains without transitions.

    Raises:
        ValueError: Paths or weights do not fit the chain.
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
        raise ValueError(
            "weights per word need independent words, and the chain has transitions; give weights [B, K]"
        )
    if weights_BKT.shape != paths_BKT.shape:
        raise ValueError(f"weights must be {list(paths_BKT.shape)}; got {list(weights_BKT.shape)}")
    inside_BT1 = chain.mask_BT[:, :, None]
    logs_BTK = chain.emissions_BTY.log_softmax(2).gather(
        2, paths_BKT.transpose(1, 2).masked_fill(~inside_BT1, 0)
    )
    weights_BTK = weights_BKT.transpose(1, 2).to(chain.dtype)
    return -torch.where(inside_BT1 & (weights_BTK != 0), weights_BTK * logs_BTK, 0).sum((1, 2))
