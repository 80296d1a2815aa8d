"""The search: conditional spaces, honest states, memory of earlier trials, and where it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import optuna
import pytest
from optuna.trial import TrialState

from raykd.spec import assignments
from raykd.sweep.records import Record, Suggestion
from raykd.sweep.spec import SearchConfig, planned_trials
from raykd.sweep.study import SAMPLERS, Study
from tests.sweep.samples import SETTINGS, TREE, ended, trial

DRAWN = [name for name in SAMPLERS if name != "grid"]
QUICK = [name for name in DRAWN if name != "gp"]
"""A Gaussian process takes seconds a trial."""


def test_every_sampler_of_the_sweep_file_is_in_the_table():
    assert set(get_args(SearchConfig.model_fields["sampler"].annotation)) == set(SAMPLERS)


def study_of(sampler: str = "tpe", tree=TREE, seed: int = 0) -> Study:
    return Study(tree, SearchConfig(sampler=sampler, seed=seed))


def suggest(study: Study, number: int = 0, attempt: int = 0, earlier: Sequence[Record] = ()) -> Suggestion:
    suggestion = study.ask(number, attempt, earlier)
    assert suggestion is not None
    return suggestion


def record_of(suggestion: Suggestion, number: int) -> Record:
    """The record after a round trip through JSON."""
    fresh = Record(
        trial(number), suggestion.tree, suggestion.params, suggestion.distributions, suggestion.sampler
    )
    return Record.from_plain(json.loads(json.dumps(fresh.to_plain())))


@pytest.mark.parametrize("sampler", DRAWN)
def test_a_setting_asks_only_for_what_its_alternative_has(sampler):
    study, grid, kinds, earlier = study_of(sampler), list(assignments(TREE)), set(), []
    # Nine are random.
    for number in range(25 if sampler in QUICK else 12):
        suggestion = suggest(study, number, earlier=earlier)
        assert suggestion.tree in grid
        kind = suggestion.tree["objective"]["kind"]
        below = {name for name in suggestion.params if name.startswith(f"objective.{kind}.")}
        assert below == {name for name in suggestion.params if name.count(".") == 2}
        assert below == {
            "top_wk": {"objective.top_wk.k"}, "structural": {"objective.structural.temperature"}, "gold": set()
        }[kind]  # fmt: skip
        kinds.add(kind)
        earlier.append(ended(record_of(suggestion, number), "COMPLETE", number / 25))
    assert kinds == {"top_wk", "structural", "gold"}


def test_the_study_gets_how_trials_ended(monkeypatch):
    studies = []
    create = optuna.create_study
    monkeypatch.setattr(
        optuna, "create_study", lambda **options: studies.append(create(**options)) or studies[-1]
    )
    study = study_of()
    # Half-trained figures of a trial that was stopped must not reach the front that the search sees, and what failed
    # is tried again.
    earlier = [
        ended(record_of(suggest(study, number), number), state, 0.5 + number / 10)
        for number, state in enumerate(("COMPLETE", "PRUNED", "FAILED", "RUNNING", "COMPLETE"))
    ]
    suggest(study, 9, earlier=earlier)
    optuna_trials = studies[-1].trials[:-1]
    assert [optuna_trial.state for optuna_trial in optuna_trials] == [
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.COMPLETE,
    ]
    assert [optuna_trial.values for optuna_trial in optuna_trials] == [
        [0.5, 1.5, 1000.0],
        None,
        [0.9, 1.5, 1000.0],
    ]
    assert [optuna_trial.params for optuna_trial in optuna_trials] == [
        dict(earlier[number].params) for number in (0, 1, 4)
    ]


def dev_of(tree) -> float:
    return (
        0.1 + 0.3 * (tree["student"]["decoder"] == "crf") + 0.2 * (tree["objective"]["kind"] == "structural")
    )


def searched(sampler: str, trials: int, *records: Record, seed: int = 0) -> list[Record]:
    """All records of a search continued from `records`, one trial after the other."""
    study, earlier = study_of(sampler, seed=seed), list(records)
    for number in range(len(records), trials):
        # A proposal that was known, in between.
        suggest(study, number, 0, earlier)
        suggestion = suggest(study, number, 1, earlier)
        dev = dev_of(suggestion.tree) + number / 1000
        earlier.append(ended(record_of(suggestion, number), "COMPLETE", dev))
    return earlier


@pytest.mark.slow
@pytest.mark.parametrize("sampler", QUICK)
def test_a_search_that_is_killed_anywhere_and_resumed_is_the_same_search(sampler):
    whole = [dict(record.params) for record in searched(sampler, 45)]
    assert whole != [dict(record.params) for record in searched(sampler, 45, seed=1)]
    assert len({json.dumps(params) for params in whole}) > 20
    for killed in (1, 5, 17, 31, 44):
        resumed = searched(sampler, 45, *searched(sampler, killed))
        assert [dict(record.params) for record in resumed] == whole


def test_a_gaussian_process_draws_the_same_from_the_same_records():
    records = searched("random", 12)
    assert [suggest(study_of("gp"), 12, attempt, records).params for attempt in (0, 1)] == [
        suggest(study_of("gp"), 12, attempt, [record_of_stored(record) for record in records]).params
        for attempt in (0, 1)
    ]


def record_of_stored(record: Record) -> Record:
    return Record.from_plain(json.loads(json.dumps(record.to_plain())))


def test_an_evolutionary_search_has_generations():
    generations = [record.sampler["NSGAIISampler:generation"] for record in searched("nsga2", 40)]
    assert generations == sorted(generations)
    assert max(generations) == 3, "of twelve each"


def test_tpe_learns_what_pays():
    study, good, earlier = study_of(), 0, []
    for number in range(40):
        suggestion = suggest(study, number, earlier=earlier)
        student, kind = suggestion.tree["student"], suggestion.tree["objective"]["kind"]
        pays = student["decoder"] == "crf" and kind == "structural"
        good += pays and number >= 20
        earlier.append(ended(record_of(suggestion, number), "COMPLETE", 0.9 if pays else 0.1))
    # A sixth of all settings pays.
    assert good >= 8


def test_a_grid_gives_every_setting_once_and_ends():
    study = study_of("grid")
    assert study.exhaustive
    trees = [suggest(study, number).tree for number in range(SETTINGS)]
    assert study.ask(SETTINGS, 0, ()) is None
    assert len({json.dumps(tree, sort_keys=True) for tree in trees}) == SETTINGS


@pytest.mark.parametrize(("trials", "tree", "planned"), [
    (10, TREE, 10), (10**4, TREE, SETTINGS), (7, {"rate": {"float": [0, 1]}}, 7), (5, {"plain": 1}, 1)
])  # fmt: skip
def test_no_more_trials_are_planned_than_there_are_settings(trials, tree, planned):
    assert planned_trials(tree, SearchConfig(trials=trials)) == planned


@pytest.mark.parametrize("figure", ["bytes", "compression", "latency_ms_batch32"])
def test_any_figure_may_be_an_objective(figure, monkeypatch):
    studies = []
    create = optuna.create_study
    monkeypatch.setattr(
        optuna, "create_study", lambda **options: studies.append(create(**options)) or studies[-1]
    )
    search = SearchConfig.model_construct(objectives={"f1": "max", figure: "min"}, sampler="random", seed=0)
    study = Study(TREE, search)
    first = record_of(suggest(study), 0)
    suggest(study, 1, earlier=[replace(first, trial=trial(0, 0.75, cost={figure: 8.0}))])
    assert studies[-1].trials[0].values == [0.75, 8.0]
