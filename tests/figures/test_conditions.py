"""Conditions: by how much a trial misses one, which decides how a search is led."""

import pytest

from raykd.figures.conditions import JUST_MISSED, NOT_KNOWN, parse
from raykd.figures.trial import Trial
from tests.scores import score, scores

TRIAL = Trial(
    0,
    "COMPLETE",
    scores=scores(score(0.8, languages={"en": 0.9, "de": 0.7})),
    cost={"latency_ms": 2.0, "parameters": 1000, "bytes": 12e6},
    objective="structural",
)


@pytest.mark.parametrize(
    ("source", "margin"),
    [
        ("f1 >= 0.95 * teacher", (0.95 - 0.8) / 0.95),
        ("f1 >= 0.5", -0.6),
        ("bytes <= 10e6", 0.2),
        ("bytes <= 10e6 or latency_ms <= 4", -0.5),
        ("bytes <= 10e6 and latency_ms <= 4", 0.2),
        ("1 < latency_ms <= 4", -0.5),
        ("not latency_ms > 4", -0.5),
        ("not latency_ms < 4", 0.5),
        ("parameters < 1000", JUST_MISSED),
        ("parameters <= 1000", 0.0),
        ("parameters == 500", 1.0),
        ("parameters != 1000", JUST_MISSED),
        ("objective == 'structural'", 0.0),
        ("objective == 'gold'", 1.0),
        ("f1[de] >= 0.8", 0.125),
        ("f1[nl] >= 0.8", NOT_KNOWN),
        ("latency_ms_p90 < 4", NOT_KNOWN),
        ("f1 / (parameters - 1000) > 1", NOT_KNOWN),
    ],
)
def test_margins_are_shares_of_what_is_asked_for_and_below_zero_where_it_is_met(source, margin):
    condition = parse(source, "f1")
    assert condition.margin(condition.values(TRIAL, teacher=1.0)) == pytest.approx(margin)


@pytest.mark.parametrize(
    ("source", "foreseen"),
    [
        ("bytes <= 10e6 and speedup > 3", True),
        ("objective != 'gold'", True),
        ("f1 > 0.9", False),
        ("bytes <= 10e6 or f1[de] > 0.9", False),
        ("latency_ms < teacher", False),
        ("wall_s < 100", False),
    ],
)
def test_costs_are_known_before_training(source, foreseen):
    assert parse(source, "f1").known_before_training("f1") is foreseen
