"""Almost stochastic dominance against closed forms, counted areas, whole bootstraps and another implementation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.metrics.significance import MOST_SEEDS, THRESHOLD, epsilon_min, seeds_needed, violation_ratio

# Tenths, so that ties and equal samples come up.
samples = st.lists(st.integers(-30, 30).map(lambda tenths: tenths / 10), min_size=2, max_size=6)


def counted_ratio(scores, reference_scores) -> float:
    """ε by cutting 0..1 into as many equal parts as both samples divide, in exact fractions."""
    parts = math.lcm(len(scores), len(reference_scores))
    ones, twos = (
        [Fraction(s) for s in sorted(side) for _ in range(parts // len(side))]
        for side in (scores, reference_scores)
    )
    gaps = [score - reference for score, reference in zip(ones, twos, strict=True)]
    whole = sum(gap**2 for gap in gaps)
    return float(sum(gap**2 for gap in gaps if gap < 0) / whole) if whole else 0.5


def normal_ratio(mean: float, sd: float, other_mean: float, other_sd: float) -> float:
    """Return ε of two normals.

    Quantiles differ by δ + s z for standard normal z, so with a = δ/|s| ε is
    E[(a + z)²; a + z < 0] / (a² + 1) = Φ(−a) − a φ(a) / (1 + a²).
    """
    a = (mean - other_mean) / abs(sd - other_sd)
    unit = NormalDist()
    return unit.cdf(-a) - a * unit.pdf(a) / (1 + a * a)


def normal_sample(mean: float, sd: float, size: int) -> list[float]:
    """A sample whose quantiles are those of the normal."""
    return [NormalDist(mean, sd).inv_cdf((i + 0.5) / size) for i in range(size)]


@given(samples, samples)
def test_the_ratio_is_the_share_of_the_squared_distance_where_the_first_is_lower(scores, others):
    assert violation_ratio(scores, others) == pytest.approx(counted_ratio(scores, others), abs=1e-9)


@given(samples, samples)
def test_both_directions_add_up_to_one(scores, others):
    assert violation_ratio(scores, others) + violation_ratio(others, scores) == pytest.approx(1)


@given(samples, samples, st.floats(0.1, 10), st.floats(-5, 5))
def test_neither_unit_nor_origin_of_the_scores_matters(scores, others, unit, origin):
    moved = [[unit * score + origin for score in side] for side in (scores, others)]
    assert violation_ratio(*moved) == pytest.approx(violation_ratio(scores, others), abs=1e-6)


@pytest.mark.parametrize(
    ("mean", "sd", "other_mean", "other_sd"),
    [(0, 1, 0, 2), (0.5, 1, 0, 2), (1, 2, 0, 0.5), (-0.3, 1, 0, 1.5), (70.5, 0.4, 70, 0.9)],
)
def test_two_normals_have_a_ratio_in_closed_form(mean, sd, other_mean, other_sd):
    estimate = violation_ratio(normal_sample(mean, sd, 20_000), normal_sample(other_mean, other_sd, 20_000))
    assert estimate == pytest.approx(normal_ratio(mean, sd, other_mean, other_sd), abs=2e-3)


def test_a_shift_dominates_completely():
    scores = [0.1, 0.5, 0.7]
    better = [score + 0.01 for score in scores]
    assert violation_ratio(better, scores) == 0
    assert violation_ratio(scores, better) == 1


def test_where_all_scores_are_higher_so_is_every_resample():
    assert epsilon_min([3, 4, 5], [0, 1, 2], alpha=0.001) == 0
    assert epsilon_min([0, 1, 2], [3, 4, 5], alpha=0.001) == 1


def test_the_same_sample_dominates_itself_in_no_way():
    assert violation_ratio([1, 2, 3], [1, 2, 3]) == 0.5
    assert epsilon_min([1, 2, 3, 4], [1, 2, 3, 4], alpha=0.05) > 0.9
    assert epsilon_min([1, 1, 1], [1, 1, 1], alpha=0.05) == 0.5


@pytest.mark.parametrize(
    ("scores", "others"),
    [((0.3, 0.9, 1.0), (0.1, 0.8, 0.5)), ((0.3, 0.9), (0.1, 0.4, 0.6)), ((2.0, 1.0, 1.5), (1.2, 1.1))],
)
def test_the_bound_lies_above_by_the_deviation_over_all_resamples(scores, others):
    ratios = [
        counted_ratio(resample, two)
        for resample in product(scores, repeat=len(scores))
        for two in product(others, repeat=len(others))
    ]
    expected = counted_ratio(scores, others) + 1.6448536 * pstdev(ratios)
    estimate = epsilon_min(scores, others, alpha=0.05, resamples=100_000)
    assert 0 < expected < 1
    assert estimate == pytest.approx(expected, abs=0.01)


# deepsig 1.2.8, aso(…, confidence_level=0.95, num_bootstrap_iterations=500), the mean of three seeds. It integrates
# on a grid of 0.005, which three seeds do not divide; both draw resamples, 500 and 1000 of them.
DEEPSIG = [
    ([73.2, 68.6, 71.6], [69.4, 69.5, 69.8], 0.389),
    ([68.8, 70.6, 69.9, 74.1, 71.0], [69.6, 69.7, 69.3, 68.9, 69.6], 0.180),
    ([70.8, 70.1, 71.3, 70.1, 70.3], [71.5, 70.5, 69.5, 69.8, 70.5], 0.705),
    ([72.0, 71.3, 70.8, 71.7, 70.4, 69.7], [70.6, 70.6, 69.8, 69.2], 0.180),
    ([70.2, 67.5, 70.7, 70.5, 68.4], [70.1, 69.0, 70.8, 68.0, 69.1], 0.960),
]


@pytest.mark.parametrize(("scores", "others", "theirs"), DEEPSIG)
def test_the_bound_is_that_of_another_implementation(scores, others, theirs):
    assert epsilon_min(scores, others, alpha=0.05) == pytest.approx(theirs, abs=0.04)


def test_the_bound_repeats_and_is_wider_for_a_smaller_alpha():
    scores, others = [1.0, 2.5, 3.0, 2.0], [0.5, 2.6, 1.0, 2.1]
    bounds = [epsilon_min(scores, others, alpha=alpha) for alpha in (0.2, 0.05, 0.05, 0.01)]
    assert bounds[0] < bounds[1] == bounds[2] < bounds[3]
    assert epsilon_min(scores, others, alpha=0.5) == pytest.approx(violation_ratio(scores, others))


def test_the_bound_lies_above_a_known_ratio_by_its_true_deviation():
    drawn = np.random.default_rng(1)
    true = normal_ratio(0.5, 1, 0, 2)
    pairs = [(drawn.normal(0.5, 1, 150), drawn.normal(0, 2, 150)) for _ in range(200)]
    estimate = np.array([violation_ratio(*pair) for pair in pairs])
    bounds = np.array([epsilon_min(*pair, alpha=0.05, resamples=150) for pair in pairs])
    assert estimate.mean() == pytest.approx(true, abs=0.02)
    assert np.mean(bounds - estimate) == pytest.approx(1.645 * estimate.std(), rel=0.15)
    # 95 % only as samples grow: the deviation is small where the estimate is by chance.
    assert 0.8 < np.mean(bounds >= true) < 0.98


def test_five_seeds_of_one_distribution_are_seldom_found_different():
    drawn = np.random.default_rng(2)
    bounds = np.array(
        [
            epsilon_min(drawn.normal(size=5).tolist(), drawn.normal(size=5).tolist(), alpha=0.05)
            for _ in range(600)
        ]
    )
    # Three standard errors about the rates of the module's docstring.
    assert np.mean(bounds < THRESHOLD) < 0.082
    assert np.mean(bounds < 0.5) > 0.15


def test_the_seeds_that_are_estimated_decide_in_most_repetitions():
    scores, others = [0.651, 0.660, 0.648], [0.643, 0.652, 0.647]
    needed = seeds_needed(scores, others, alpha=0.05)
    assert needed is not None
    assert 3 < needed < MOST_SEEDS
    drawn = np.random.default_rng(3)

    def decided(seeds: int) -> float:
        pairs = (
            [drawn.normal(np.mean(side), np.std(side, ddof=1), seeds) for side in (scores, others)]
            for _ in range(300)
        )
        return float(np.mean([epsilon_min(*pair, alpha=0.05, resamples=200) < THRESHOLD for pair in pairs]))

    assert decided(needed) == pytest.approx(0.8, abs=0.12)
    assert decided(needed // 2) < 0.75
    assert seeds_needed(others, scores, alpha=0.05) == needed
    assert seeds_needed(scores, others, alpha=0.005) > needed


def test_more_seeds_are_needed_where_less_is_to_be_seen():
    spread = np.array([-1.0, 0.0, 1.0])
    needed = [seeds_needed(spread + shift, spread, alpha=0.05) for shift in (2.0, 1.0, 0.0)]
    assert needed[0] == 4, "one more than there are"
    assert 4 < needed[1] <= MOST_SEEDS
    assert needed[2] is None
    assert seeds_needed(spread + 0.01, spread, alpha=0.05) is None


def test_scores_without_spread_are_found_different_at_once():
    assert seeds_needed([1, 1], [0, 0], alpha=0.05) == 3
    assert seeds_needed([1, 1], [1, 1], alpha=0.05) is None


def test_what_has_no_meaning_is_refused():
    for measure in (epsilon_min, seeds_needed):
        with pytest.raises(ValueError, match="two scores on each side, got 1 and 3"):
            measure([1], [1, 2, 3], alpha=0.05)
        with pytest.raises(ValueError, match="finite"):
            measure([1, math.nan], [1, 2, 3], alpha=0.05)
    with pytest.raises(ValueError, match="finite"):
        violation_ratio([], [1])
    for alpha in (0.0, 0.6):
        with pytest.raises(ValueError, match="alpha"):
            epsilon_min([1, 2], [1, 2], alpha=alpha)
