"""The first settings of a search: from the sweep file and from the front of an earlier sweep."""

from __future__ import annotations

import json

import pytest

from raykd.errors import StoreError
from raykd.spec import MisfitError, fit_setting, flatten_tree
from raykd.storage.store import Storage
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.spec import SearchConfig
from raykd.sweep.starts import starts_of
from raykd.sweep.study import Study
from tests.sweep.samples import TREE, trial
from tests.sweep.test_spec import GOOD, faults, written  # noqa: F401  (a fixture)
from tests.sweep.test_study import DRAWN, record_of, suggest

SPACE = {**TREE, "rate": {"float": [0.1, 0.5], "step": 0.1}}


@pytest.mark.parametrize(
    ("setting", "params"),
    [
        ({"student.embedding_dim": 16}, {"student.embedding_dim": "16"}),
        ({"objective.kind": "structural"}, {"objective": "structural"}),
        (
            {"objective": {"kind": "structural", "temperature": 4}, "rate": 0.3},
            {"objective": "structural", "objective.structural.temperature": "4", "rate": 0.3},
        ),
        # An option by its name, as of `strategy: D1`.
        ({"objective": "structural"}, {"objective": "structural"}),
        (
            {"objective": "structural", "objective.temperature": 4},
            {"objective": "structural", "objective.structural.temperature": "4"},
        ),
        # Only one option has such a key.
        ({"objective.k": 5}, {"objective": "top_wk", "objective.top_wk.k": 5}),
        ({"schedule.epochs": 2, "schedule.anneal_rate": 1.0}, {"schedule.anneal_rate": "1.0"}),
    ],
)
def test_a_setting_decides_what_it_says_of_the_space(setting, params):
    assert fit_setting(SPACE, flatten_tree(setting)).params == params


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            {"student.embedding_dim": 12},
            "student.embedding_dim: no option has student.embedding_dim=12; options are 8, 16",
        ),
        ({"objective.kind": "structural", "objective.temperature": 3}, "objective: no option has"),
        ({"objective.k": 6}, "objective: no option has objective.k=6"),
        ({"objective": "token"}, "objective: no option has objective='token'"),
        ({"schedule.epochs": 3}, "schedule.epochs: 3 is not in the space, which has 2"),
        ({"rate": 0.35}, "rate: 0.35 is not in the space, from 0.1 in steps of 0.1"),
        ({"rate": 0.7}, "rate: 0.7 is not in the space, from 0.1 to 0.5"),
        ({"rate": True}, "rate: True is not in the space"),
    ],
)
def test_a_value_outside_the_space_is_named(setting, message):
    with pytest.raises(MisfitError, match=message.split("(")[0]):
        fit_setting(SPACE, flatten_tree(setting))


@pytest.mark.parametrize("sampler", DRAWN)
def test_the_first_trials_are_those_that_are_given_and_the_sampler_draws_the_rest(sampler):
    starts = [
        {"student.embedding_dim": "16"},
        {"objective": "structural", "objective.structural.temperature": "4"},
    ]
    study, earlier = Study(TREE, SearchConfig(sampler=sampler), starts), []
    for number in range(3):
        suggestion = suggest(study, number, earlier=earlier)
        assert {**suggestion.params, **(starts[number] if number < 2 else {})} == dict(suggestion.params)
        assert len(suggestion.params) >= 4
        earlier.append(record_of(suggestion, number))
    # One that was known already is drawn anew.
    drawn = [suggest(study, 1, attempt).params for attempt in range(1, 12)]
    assert any(params["objective"] != "structural" for params in drawn)


@pytest.fixture
def earlier(tmp_path):
    """The store of a sweep on a different corpus, with two students on the front and one dominated."""
    storage = Storage(str(tmp_path))
    records = SweepRecords(storage, "small")
    records.open(sweep_id="sweep-0", text=json.dumps({**TREE, "corpus": {"cap": 10}}), resume=False)
    trees = [
        {"student": {"embedding_dim": 8, "decoder": "crf"}, "objective": {"kind": "top_wk", "k": 3}},
        {"student": {"embedding_dim": 64, "decoder": "crf"}, "objective": {"kind": "gold"}},
        {"student": {"embedding_dim": 16, "decoder": "crf"}, "objective": {"kind": "gold"}},
    ]
    for number, (tree, dev, size) in enumerate(zip(trees, (0.5, 0.9, 0.4), (1, 5, 2), strict=True)):
        cost = {"latency_ms": size, "parameters": 1000 * size}
        whole = {**tree, "schedule": {"epochs": 1, "anneal_rate": 0.5}, "corpus": {"cap": 10}}
        records.save(Record(trial(number, dev, cost=cost), whole))
    return storage


def test_the_front_of_an_earlier_sweep_comes_first_where_this_space_has_it(earlier):
    starts = starts_of("small", TREE, earlier)
    assert starts.params == [
        {
            "student.embedding_dim": "8",
            "student.decoder": "crf",
            "objective": "top_wk",
            "objective.top_wk.k": 3,
            "schedule.anneal_rate": "0.5",
        }
    ]
    (misfit,) = starts.misfits
    assert misfit.startswith("#01")
    assert misfit.endswith("student.embedding_dim: no option has student.embedding_dim=64; options are 8, 16")


def test_an_earlier_sweep_that_the_store_does_not_have_is_named(earlier):
    with pytest.raises(StoreError, match=r"sweep 'smal'.*is not in the store"):
        starts_of("smal", TREE, earlier)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (
            "start_from: [{student.embedding_dim: 12}]",
            "6 search.start_from.0: student.embedding_dim: no option has",
        ),
        (
            "start_from: [{objective.k: 2}, {student.embeding_dim: 8}]",
            "6 search.start_from.1: student.embeding_dim is no",
        ),
        (
            "start_from: [{student.hidden_dim: 8}]",
            "6 search.start_from.0: has no value for a searched setting",
        ),
        ("sampler: grid, start_from: earlier", "6 search.start_from: a grid tries every setting"),
    ],
)
def test_settings_that_are_not_in_the_space_are_refused_by_line(written, search, message):  # noqa: F811
    (fault,) = faults(written(f"{GOOD}search: {{{search}}}\n"))
    assert fault.startswith(message)
