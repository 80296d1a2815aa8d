"""The search: conditional spaces, honest states, memory of earlier trials, and where it ends."""

from __future__ import annotations

import json

import optuna
import pytest
from optuna.trial import TrialState

from raykd.spec import assignments
from raykd.sweep.records import Record
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study, Suggestion, planned_trials
from tests.sweep.samples import SETTINGS, TREE, ended, trial

SAMPLERS = ("tpe", "random", "nsga2")


def study_of(*records: Record, sampler="tpe", tree=TREE, seed: int = 0) -> Study:
    return Study(tree, SearchConfig(sampler=sampler, seed=seed), records)


def asked(study: Study, number: int = 0, attempt: int = 0) -> Suggestion:
    suggestion = study.ask(number, attempt)
    assert suggestion is not None
    return suggestion


def record_of(suggestion: Suggestion, number: int) -> Record:
    """The record as it comes back from the store."""
    fresh = Record(trial(number), suggestion.tree, suggestion.params, suggestion.distributions)
    return Record.from_plain(json.loads(json.dumps(fresh.to_plain())))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_setting_asks_only_for_what_its_alternative_has(sampler):
    study, grid, kinds = study_of(sampler=sampler), list(assignments(TREE)), set()
    for number in range(25):
        suggestion = asked(study, number)
        assert suggestion.tree in grid
        kind = suggestion.tree["objective"]["kind"]
        below = {name for name in suggestion.params if name.startswith(f"objective.{kind}.")}
        assert below == {name for name in suggestion.params if name.count(".") == 2}
        assert below == {
            "top_wk": {"objective.top_wk.k"}, "structural": {"objective.structural.temperature"}, "gold": set()
        }[kind]  # fmt: skip
        kinds.add(kind)
        study.tell(suggestion, trial(number, dev=number / 25))
    assert kinds == {"top_wk", "structural", "gold"}


def test_the_study_gets_how_trials_ended(monkeypatch):
    kept = []
    create = optuna.create_study
    monkeypatch.setattr(optuna, "create_study", lambda **how: kept.append(create(**how)) or kept[-1])
    study = study_of()
    for number, state in enumerate(("COMPLETE", "PRUNED", "FAILED")):
        # Half-trained figures of a trial that was stopped must not reach the front that the search sees.
        study.tell(asked(study, number), trial(number, state=state, dev=0.5 + number / 10))
    given = kept[0].trials
    assert [each.state for each in given] == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
    assert [each.values for each in given] == [[0.5, 1.0, 1000.0], None, None]
    assert [best.number for best in kept[0].best_trials] == [0]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_resumed_study_knows_what_was_tried(sampler, monkeypatch):
    first = study_of(sampler=sampler)
    records = []
    for number in range(12):
        suggestion = asked(first, number)
        state = ("COMPLETE", "PRUNED", "FAILED", "RUNNING")[number % 4]
        records.append(ended(record_of(suggestion, number), state, number / 12))
    kept = []
    create = optuna.create_study
    monkeypatch.setattr(optuna, "create_study", lambda **how: kept.append(create(**how)) or kept[-1])
    again = study_of(*records, sampler=sampler)
    over = [record for record in records if record.trial.state in ("COMPLETE", "PRUNED")]
    assert [each.params for each in kept[0].trials] == [dict(record.params) for record in over]
    assert [each.values and each.values[0] for each in kept[0].trials] == [
        record.trial.scores.mean("dev") if record.trial.state == "COMPLETE" else None for record in over
    ]
    study_trees = [asked(again, number).tree for number in range(12, 17)]
    assert all(tree in list(assignments(TREE)) for tree in study_trees)


def searched(sampler: str, trials: int, *records: Record, seed: int = 0) -> list[Record]:
    """All records of a search that goes on from `records`, one trial after the other."""
    study, found = study_of(*records, sampler=sampler, seed=seed), list(records)
    for number in range(len(records), trials):
        # A proposal that was known, in between.
        study.tell(asked(study, number), trial(number, state="FAILED"))
        suggestion = asked(study, number, 1)
        student, kind = suggestion.tree["student"], suggestion.tree["objective"]["kind"]
        dev = 0.1 + 0.3 * (student["decoder"] == "crf") + 0.2 * (kind == "structural") + number / 1000
        found.append(ended(record_of(suggestion, number), "COMPLETE", dev))
        study.tell(suggestion, found[-1].trial)
    return found


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_that_is_killed_anywhere_and_resumed_is_the_same_search(sampler):
    whole = [dict(record.params) for record in searched(sampler, 45)]
    assert whole != [dict(record.params) for record in searched(sampler, 45, seed=1)]
    assert len({json.dumps(params) for params in whole}) > 20
    for killed in (1, 5, 17, 31, 44):
        records = searched(sampler, killed)
        again = searched(
            sampler, 45, *(Record.from_plain(json.loads(json.dumps(r.to_plain()))) for r in records)
        )
        assert [dict(record.params) for record in again] == whole


def test_tpe_learns_what_pays():
    study, good = study_of(), 0
    for number in range(40):
        suggestion = asked(study, number)
        student, kind = suggestion.tree["student"], suggestion.tree["objective"]["kind"]
        pays = student["decoder"] == "crf" and kind == "structural"
        good += pays and number >= 20
        study.tell(suggestion, trial(number, dev=0.9 if pays else 0.1))
    # A sixth of all settings pays.
    assert good >= 8


def test_a_grid_gives_every_setting_once_and_ends():
    study = study_of(sampler="grid")
    assert study.exhaustive
    trees = [asked(study, number).tree for number in range(SETTINGS)]
    assert study.ask(SETTINGS) is None
    assert len({json.dumps(tree, sort_keys=True) for tree in trees}) == SETTINGS


@pytest.mark.parametrize(("trials", "tree", "planned"), [
    (10, TREE, 10), (10**4, TREE, SETTINGS), (7, {"rate": {"float": [0, 1]}}, 7), (5, {"plain": 1}, 1)
])  # fmt: skip
def test_no_more_trials_are_planned_than_there_are_settings(trials, tree, planned):
    assert planned_trials(tree, SearchConfig(trials=trials)) == planned


@pytest.mark.parametrize("figure", ["bytes", "compression", "latency_ms_batch32"])
def test_any_figure_may_be_an_objective(figure):
    search = SearchConfig.model_construct(objectives={"f1": "max", figure: "min"}, sampler="random", seed=0)
    study = Study(TREE, search, [])
    suggestion = asked(study)
    study.tell(suggestion, trial(0, 0.75, cost={figure: 8.0}))
    assert study._study.trials[0].values == [0.75, 8.0]
