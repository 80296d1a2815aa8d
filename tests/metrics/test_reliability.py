"""Reliability against its definition, prediction by prediction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.metrics.reliability import BINS, reliability

PREDICTIONS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@given(PREDICTIONS)
def test_the_error_is_the_mean_gap_between_confidence_and_accuracy_of_a_bin(predictions):
    probabilities, right = zip(*predictions, strict=True)
    measured = reliability(probabilities, right)
    gaps, bins = 0.0, 0
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        inside = [(p, r) for p, r in predictions if low < p <= high or (number == 0 and p == 0)]
        if inside:
            bins += 1
            gaps += abs(sum(p for p, _ in inside) - sum(r for _, r in inside))
    assert measured.error == pytest.approx(gaps / len(predictions), abs=0.5 / len(predictions) * 1e-6 + 1e-9)
    assert len(measured.bins) == bins
    assert measured.count == len(predictions)
    assert 0 <= measured.error <= 1


def test_probabilities_that_hold_have_no_error():
    generator = np.random.default_rng(0)
    probabilities = generator.random(200_000)
    right = generator.random(200_000) < probabilities
    assert reliability(probabilities, right).error < 0.01
    assert reliability(np.sqrt(probabilities), right).error > 0.1


def test_lists_of_two_lengths_are_refused():
    with pytest.raises(ValueError, match="2 probabilities, and 1 predictions"):
        reliability([0.1, 0.2], [True])


def test_no_prediction_has_no_error():
    assert reliability([], []).error == 0.0
