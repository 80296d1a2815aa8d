"""What a run's identity is made of, and what never enters it."""

from __future__ import annotations

import json

import pytest

from raykd.runs.prepare import gold_run, prepare, student_run, transfer_needs, with_seed
from raykd.runs.run import Run
from raykd.signals import Need
from raykd.storage import Storage
from tests.runs.small import recipe


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("identity") / "store")


def run_of(folder: str, **changes) -> Run:
    asked = recipe(**changes)
    return student_run(asked, prepare(asked, Storage(folder)))


def test_names_workers_and_the_store_do_not_enter(store, tmp_path):
    plain = run_of(store)
    assert run_of(str(tmp_path / "elsewhere"), store="s3://bucket/elsewhere").id == plain.id
    resources = {"workers": 4, "cpus_per_worker": 0.25, "gpus_per_worker": 1.0, "concurrency": 3}
    assert run_of(store, resources=resources).id == plain.id


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"seed": 1}},
        {"training": {"learning_rate": 2e-2}},
        {"training": {"batch_tokens": 201}},
        {"training": {"precision": "bf16"}},
        {"student": {"hidden_dim": 7}},
        {"student": {"decoder": "maxent"}},
        {"student": {"vocabulary": {"kind": "wordpiece", "size": 201}}},
        {"objective": {"kind": "structural", "temperature": 2.0}},
        {"objective": {"kind": "posterior"}},
        {"objective": {"kind": "gold"}},
        {"schedule": {"epochs": 3}},
        {"schedule": {"anneal_rate": 0.5}},
        {"schedule": {"anneal_horizon": 4}},
        {"corpus": {"train": 23}},
        {"corpus": {"seed": 1}},
        {"corpus": {"sampling_alpha": 0.5}},
        {"teachers": {"hidden_dim": 7}},
        {"teachers": {"training": {"seed": 1}}},
    ],
    ids=str,
)
def test_what_decides_the_outcome_enters(store, changes):
    assert run_of(store, **changes).id != run_of(store).id


def test_gold_knows_neither_teacher_nor_annealing(store):
    gold = {"objective": {"kind": "gold"}}
    plain = run_of(store, **gold)
    assert plain.sources == ()
    assert not plain.unlabelled
    for changes in ({"schedule": {"anneal_rate": 0.1}}, {"teachers": {"hidden_dim": 7}}):
        assert run_of(store, **gold, **changes).id == plain.id
    assert gold_run(run_of(store)).id == plain.id
    assert run_of(store, **gold, schedule={"epochs": 3}).id != plain.id


def test_seeds_count_from_the_recipes_own(store):
    run = run_of(store, training={"seed": 5})
    assert with_seed(run, 0).id == run.id
    assert with_seed(run, 2).id == run_of(store, training={"seed": 7}).id


def test_a_run_crosses_processes_as_plain_data(store):
    run = run_of(store)
    again = Run.from_plain(json.loads(json.dumps(run.to_plain())))
    assert again == run
    assert again.id == run.id


def test_a_monolingual_teacher_is_the_same_whatever_languages_a_sweep_adds(store):
    both = prepare(recipe(), Storage(store)).teachers
    alone = prepare(recipe(corpus={"languages": ("en",)}), Storage(store)).teachers
    assert [teacher.languages for teacher in both] == [("en",), ("de",)]
    assert alone[0].run.id == both[0].run.id != both[1].run.id
    together = prepare(recipe(teachers={"scope": "all"}), Storage(store)).teachers
    assert [teacher.languages for teacher in together] == [("en", "de")]


def test_the_stored_signals_serve_every_objective(store):
    corpus = prepare(recipe(), Storage(store)).corpus
    asked = [{"kind": "gold"}, {"kind": "top_wk", "k": 3}, {"kind": "top_k", "k": 7}, {"kind": "posterior"}]
    recipes = [recipe(objective=objective) for objective in asked]
    everything = (Need("emissions"), Need("transitions"), Need("kbest", 7))
    assert transfer_needs(recipes, corpus) == everything
    # Unlabelled text is labelled by the teacher's best path, whatever the objective reads; gold alone reads none.
    assert transfer_needs([recipe()], corpus) == (*everything[:2], Need("kbest", 1))
    assert transfer_needs(recipes[:1], corpus) == ()
