"""Almost stochastic dominance: a comparison of the scores of two settings over seeds, as distributions.

F dominates G stochastically if every quantile of F is at least that of G. The violation ratio ε(F, G) is the share of
the squared distance between the quantile functions on which F is the lower one: 0 if F dominates G, 1 if G dominates F,
and ε(F, G) + ε(G, F) = 1. Samples give only an upper bound of ε, `epsilon_min`. F *dominates G almost stochastically*
at level α if that bound is below a threshold.

The threshold here is 0.2. The paper takes 0.5, where ε crosses over. But where F = G, ε is not defined and its
estimate spreads over 0..1. At α = 0.05 the bound was below 0.5 for 17 to 23 % of pairs of samples of 3 to 20 from one
normal; it was below 0.2 for 10 % of those of 3, 5 % of 5 and 3 % of 20 (measured; Ulmer et al. advise 0.2 for this
reason). Resampling cannot see beyond its sample: of two samples of three, all of one lie above all of the other once in
20 times by chance, and then the bound is 0 at any α. And 1 − α is the confidence of the bound only as samples grow.

Sources: del Barrio, Cuesta-Albertos and Matrán, "An optimal transportation approach for assessing almost stochastic
order", 2018; Dror, Shlomov and Reichart, "Deep Dominance: How to properly compare deep neural models", ACL 2019;
Ulmer, Hardmeier and Frellsen, "deep-significance", 2022.

Shapes: N and M scores of the two samples, R resamples, S simulated experiments, K pieces on which both empirical
quantile functions are constant.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int

THRESHOLD = 0.2
"""Bound of `epsilon_min`: below this value the first sample dominates."""
RESAMPLES = 1000
POWER = 0.8
"""The share of repetitions of an experiment that enough seeds would decide."""
MOST_SEEDS = 50
SIMULATED, SIMULATED_RESAMPLES = 200, 100


def violation_ratio(scores: Sequence[float], reference_scores: Sequence[float]) -> float:
    """Return ε(F, G) of the empirical distributions of two samples, exactly.

    Args:
        scores: The sample of F.
        reference_scores: The sample of G.

    Returns:
        ε in 0..1; 1/2 where both distributions are the same, so that ε(F, G) + ε(G, F) = 1 always.

    Raises:
        ValueError: A sample is empty, or a score is not finite.
    """
    return float(
        _ratio(
            _sorted(scores), _sorted(reference_scores), *_constant_pieces(len(scores), len(reference_scores))
        )
    )


def epsilon_min(
    scores: Sequence[float],
    reference_scores: Sequence[float],
    *,
    alpha: float,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """Return the upper bound of ε(F, G) at confidence 1 − α: ε̂ − sqrt((n+m)/(nm)) σ̂ Φ⁻¹(α).

    σ̂² is the variance of sqrt(nm/(n+m)) ε̂ over bootstrap resamples of both samples.

    Args:
        scores: The sample of F.
        reference_scores: The sample of G.
        alpha: Level α, in (0, 1/2].
        resamples: Bootstrap resamples.
        seed: Seed of the resampling; the same scores and seed give the same bound.

    Returns:
        The bound, in 0..1.

    Raises:
        ValueError: A side has fewer than two scores, a score is not finite, or α is outside (0, 1/2].
    """
    samples = _sorted_samples(scores, reference_scores)
    if not 0 < alpha <= 0.5:
        raise ValueError(f"alpha is above 0 and at most 0.5, got {alpha}")
    generator = np.random.default_rng(seed)
    return float(_bound(*samples, alpha, resamples, generator))


def seeds_needed(
    scores: Sequence[float],
    reference_scores: Sequence[float],
    *,
    alpha: float,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> int | None:
    """Estimate the number of seeds with which `epsilon_min` decides for the better setting.

    Experiments are simulated from normals with the means and sample standard deviations of the two samples. The result
    is the smallest number of seeds, above the present one, that decides for the better setting in a share `POWER` of
    the experiments. The estimate is as rough as the means and spreads from which it starts.

    Args:
        scores: Scores of one setting over its seeds.
        reference_scores: Scores of the other setting.
        alpha: Level α of `epsilon_min`.
        threshold: Bound below which a setting dominates.
        seed: Seed of the simulation.

    Returns:
        Seeds for each side; None if more than `MOST_SEEDS` are needed.

    Raises:
        ValueError: A side has fewer than two scores, or a score is not finite.
    """
    better, worse = sorted(_sorted_samples(scores, reference_scores), key=np.mean, reverse=True)
    lowest, highest = max(better.size, worse.size) + 1, MOST_SEEDS
    if better.mean() == worse.mean():
        return None
    generator = np.random.default_rng(seed)
    better_SN, worse_SN = (
        side.mean() + side.std(ddof=1) * generator.standard_normal((SIMULATED, MOST_SEEDS))
        for side in (better, worse)
    )

    def decides(seeds: int) -> bool:
        bounds_S = _bound(
            np.sort(better_SN[:, :seeds]), np.sort(worse_SN[:, :seeds]), alpha, SIMULATED_RESAMPLES,
            np.random.default_rng(seed),
        )  # fmt: skip
        return float(np.mean(bounds_S < threshold)) >= POWER

    if lowest > highest or not decides(highest):
        return None
    while lowest < highest:
        middle = (lowest + highest) // 2
        lowest, highest = (lowest, middle) if decides(middle) else (middle + 1, highest)
    return lowest


def _sorted_samples(
    scores: Sequence[float], reference_scores: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    if min(len(scores), len(reference_scores)) < 2:
        raise ValueError(
            f"a spread needs two scores on each side, got {len(scores)} and {len(reference_scores)}"
        )
    return _sorted(scores), _sorted(reference_scores)


def _sorted(scores: Sequence[float]) -> Float[np.ndarray, " score"]:
    sample = np.sort(np.asarray(scores, dtype=np.float64))
    if not sample.size or not np.isfinite(sample).all():
        raise ValueError(f"scores are one or more finite numbers, got {list(scores)}")
    return sample


def _constant_pieces(
    n: int, m: int
) -> tuple[Int[np.ndarray, " piece"], Int[np.ndarray, " piece"], Float[np.ndarray, " piece"]]:
    """Return the ranks of both samples on the pieces with constant quantile functions, and the widths of the pieces."""
    # In units of 1/(nm) every jump is at a whole number.
    starts_K = np.union1d(np.arange(n) * m, np.arange(m) * n)
    return starts_K // m, starts_K // n, np.diff(starts_K, append=n * m) / (n * m)


def _ratio(
    sorted_N: Float[np.ndarray, "*batch n"],
    reference_M: Float[np.ndarray, "*batch m"],
    ranks_K: Int[np.ndarray, "*any piece"],
    reference_ranks_K: Int[np.ndarray, "*any piece"],
    widths_K: Float[np.ndarray, " piece"],
) -> Float[np.ndarray, "*out"]:
    """Return ε of pairs of sorted samples, read at the given ranks."""
    gaps_K = sorted_N[..., ranks_K] - reference_M[..., reference_ranks_K]
    whole = np.square(gaps_K) @ widths_K
    violated = np.square(np.minimum(gaps_K, 0.0)) @ widths_K
    return np.where(whole > 0, violated / np.where(whole > 0, whole, 1.0), 0.5)


def _bound(
    sorted_N: Float[np.ndarray, "*batch n"],
    reference_M: Float[np.ndarray, "*batch m"],
    alpha: float,
    resamples: int,
    generator: np.random.Generator,
) -> Float[np.ndarray, "*out"]:
    """Return `epsilon_min` of pairs of sorted samples."""
    n, m = sorted_N.shape[-1], reference_M.shape[-1]
    ranks_K, reference_ranks_K, widths_K = _constant_pieces(n, m)
    # A resample of a sorted sample is a sorted draw of ranks: one draw serves all pairs, and nothing is sorted again.
    draw_RN = np.sort(generator.integers(n, size=(resamples, n)))
    draw_RM = np.sort(generator.integers(m, size=(resamples, m)))
    resampled_R = _ratio(sorted_N, reference_M, draw_RN[:, ranks_K], draw_RM[:, reference_ranks_K], widths_K)
    # sqrt((n+m)/(nm)) σ̂: the two roots cancel.
    deviation = resampled_R.std(axis=-1)
    ratio = _ratio(sorted_N, reference_M, ranks_K, reference_ranks_K, widths_K)
    return np.asarray(np.clip(ratio - deviation * NormalDist().inv_cdf(alpha), 0.0, 1.0))
