"""The importance of settings, and the reasons for having none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import Trial
from raykd.spec import assignments
from raykd.sweep.importance import FEWEST, compute_importance
from raykd.sweep.records import Record
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study
from tests.scores import scores

TREE = {
    "student": {"hidden_dim": {"choice": [16, 32, 64]}, "decoder": {"choice": ["crf", "maxent"]}},
    "objective": {"choice": [{"kind": "top_wk", "k": {"int": [1, 10]}}, {"kind": "posterior"}]},
    "training": {"learning_rate": {"float": [1e-4, 1e-2], "log": True}, "dropout": 0.1},
}
DIRECTIONS = {"f1": "max", "latency_ms": "min"}


def record_of(number: int, tree: dict) -> Record:
    """F1 depends on the hidden size and a little on the decoder, latency on the decoder alone."""
    hidden, crf = tree["student"]["hidden_dim"], tree["student"]["decoder"] == "crf"
    cost = {"latency_ms": 2.0 if crf else 1.0, "parameters": 9}
    trial = Trial(number, "COMPLETE", scores=scores(hidden / 80 + 0.02 * crf), cost=cost)
    return Record(trial, tree)


@pytest.fixture(scope="module")
def drawn() -> list[Record]:
    """Records of trials with settings drawn by a sampler."""
    study = Study(TREE, SearchConfig(sampler="random"))
    trees = [study.ask(number, 0, []) for number in range(40)]
    return [record_of(number, setting.tree) for number, setting in enumerate(trees) if setting is not None]


def test_each_objective_names_the_settings_that_it_depends_on(drawn):
    computed = compute_importance(TREE, drawn, DIRECTIONS)
    assert (computed.trials, computed.missing) == (40, "")
    common = {"student.hidden_dim", "student.decoder", "objective", "training.learning_rate"}
    assert {name: set(shares) for name, shares in computed.shares.items()} == dict.fromkeys(
        DIRECTIONS, common
    )
    f1, latency = computed.shares["f1"], computed.shares["latency_ms"]
    assert next(iter(f1)) == "student.hidden_dim"
    assert f1["student.hidden_dim"] > 0.9
    assert latency["student.decoder"] > 0.9
    assert sum(f1.values()) == pytest.approx(1)
    assert computed == compute_importance(TREE, drawn, DIRECTIONS), "the forest has a fixed seed"


def test_what_does_not_differ_is_left_out(drawn):
    computed = compute_importance(TREE, drawn, OBJECTIVES)
    assert set(computed.shares) == {"score", "latency_ms"}, "all have as many parameters"


def test_a_grid_has_importances_though_no_sampler_noted_its_values():
    grid = {"student": TREE["student"], "training": {"dropout": {"choice": [0.0, 0.1, 0.2, 0.3]}}}
    records = [record_of(number, tree) for number, tree in enumerate(assignments(grid))]
    shares = compute_importance(grid, records, DIRECTIONS).shares
    assert set(shares["f1"]) == {"student.hidden_dim", "student.decoder", "training.dropout"}
    assert shares["f1"]["student.hidden_dim"] > 0.9


def test_too_few_trials_and_too_few_settings_are_said(drawn):
    few = compute_importance(TREE, drawn[: FEWEST - 1], DIRECTIONS)
    assert (few.shares, few.missing) == ({}, f"it needs {FEWEST} complete trials, and there are {FEWEST - 1}")
    unfinished = [replace(stored, trial=replace(stored.trial, state="PRUNED")) for stored in drawn]
    assert compute_importance(TREE, unfinished, DIRECTIONS).missing.endswith("there are 0")
    single_search = {"student": {"hidden_dim": {"choice": [16, 32, 64]}, "decoder": "crf"}}
    draw = random.Random(0)
    alike = [
        record_of(n, {"student": {"hidden_dim": draw.choice([16, 32]), "decoder": "crf"}}) for n in range(30)
    ]
    assert compute_importance(single_search, alike, DIRECTIONS).missing.startswith("one setting differs")
    fixed = {"student": {"hidden_dim": 16, "decoder": "crf"}}
    assert compute_importance(fixed, alike, DIRECTIONS).missing.startswith("no setting differs")
