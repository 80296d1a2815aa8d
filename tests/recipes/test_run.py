"""The identity of a run: settings with an effect enter it, names and places do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from raykd.recipes.run import Run
from raykd.recipes.signal_needs import stored_needs
from raykd.signals import Need
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from raykd.training.student_runs import with_seed_offset
from tests.training.small import recipe, student_of

GOLD = {"objective": {"kind": "gold"}}
STAGES = (
    {"objective": {"kind": "posterior"}, "text": "unlabelled"},
    {"objective": {"kind": "gold"}, "schedule": {"epochs": 3}, "training": {"learning_rate": 1e-3}},
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("identity") / "store")


def run_of(folder: str, **changes) -> Run:
    resolved = recipe(**changes)
    return student_of(prepare(resolved, Storage(folder)), resolved)


def staged(small, first=(), second=(), **changes) -> Run:
    """A run of two stages, with changes of each."""
    return student_of(small, stages=({**STAGES[0], **dict(first)}, {**STAGES[1], **dict(second)}), **changes)


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
        {"student": {"projection": 5}},
        {"student": {"vocabulary": {"kind": "wordpiece", "size": 201}}},
        {"objective": {"kind": "structural", "temperature": 2.0}},
        {"objective": {"kind": "posterior"}},
        {"objective": {"kind": "gold"}},
        {"schedule": {"epochs": 3}},
        {"schedule": {"patience": 1}},
        {"schedule": {"anneal_rate": 0.5}},
        {"schedule": {"anneal_horizon": 4}},
    ],
    ids=str,
)
def test_what_decides_the_outcome_enters(small, changes):
    assert student_of(small, **changes).id != student_of(small).id


@pytest.mark.parametrize(
    "changes",
    [
        {"corpus": {"train": 23}},
        {"corpus": {"seed": 1}},
        {"corpus": {"sampling_alpha": 0.5}},
        {"teachers": {"hidden_dim": 7}},
        {"teachers": {"training": {"seed": 1}}},
    ],
    ids=str,
)
def test_what_decides_the_corpus_and_the_teachers_enters(store, changes):
    assert run_of(store, **changes).id != run_of(store).id


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"text": "all"}, {}),
        ({"objective": {"kind": "posterior", "temperature": 2.0}}, {}),
        ({"layers": ("head",)}, {}),
        ({}, {"layers": "unfreeze"}),
        ({"select": "loss"}, {}),
        ({"select": "loss", "held_out": 0.1}, {"select": "loss"}),
        ({}, {"schedule": {"epochs": 4}}),
        ({}, {"training": {"learning_rate": 2e-3}}),
        ({}, {"training": {"learning_rate": 1e-3, "batch_tokens": 100}}),
    ],
    ids=str,
)
def test_each_setting_of_a_stage_enters(small, first, second):
    assert staged(small, first, second).id != staged(small).id


def test_what_has_no_effect_on_a_stage_does_not_enter(small):
    plain = staged(small).id
    annealed = {"schedule": {"epochs": 3, "anneal_rate": 0.5, "anneal_horizon": 7}}
    assert staged(small, {}, annealed).id == plain, "gold labels follow no λ"
    # Held-out text is only for `select: loss`; a stage may repeat what holds anyway.
    assert staged(small, {"held_out": 0.2}).id == plain
    assert staged(small, {"layers": "all", "select": "dev", "training": {"learning_rate": 1e-2}}).id == plain
    groups = (("head", "encoder"), ("encoder", "head"))
    assert len({staged(small, {"layers": layers}).id for layers in groups}) == 1
    # The short form is one stage.
    assert student_of(small, stages=({"objective": {"kind": "structural"}},)).id == student_of(small).id
    mix = {"kind": "mix", "parts": ({"objective": {"kind": "gold"}}, {"objective": {"kind": "posterior"}})}
    fast, slow = (student_of(small, objective=mix, schedule={"anneal_rate": rate}).id for rate in (1.0, 0.5))
    assert fast == slow, "none of its weights follows λ"


def test_gold_labels_depend_on_neither_teacher_nor_annealing(store):
    plain = run_of(store, **GOLD)
    assert plain.sources == ()
    assert [stage["text"] for stage in plain.stages] == ["labelled"]
    for changes in ({"schedule": {"anneal_rate": 0.1}}, {"teachers": {"hidden_dim": 7}}):
        assert run_of(store, **GOLD, **changes).id == plain.id
    twin = recipe().on_gold_labels()
    assert student_of(prepare(twin, Storage(store)), twin).id == plain.id
    assert run_of(store, **GOLD, schedule={"epochs": 3}).id != plain.id


def test_where_things_are_does_not_enter(small):
    run = student_of(small)
    (source, *further_sources) = run.sources
    elsewhere = replace(source, text_id="text-larger", stored=dict.fromkeys(source.signals, "signal-larger"))
    assert replace(run, sources=(elsewhere, *further_sources)).id == run.id
    different = replace(source, signals=dict.fromkeys(source.signals, "signal-other"))
    assert replace(run, sources=(different, *further_sources)).id != run.id
    started = [
        replace(run, start_from={"folder": folder, "weights_sha256": weights})
        for folder, weights in (("/one", "a"), ("/two", "a"), ("/one", "b"))
    ]
    assert started[0].id == started[1].id
    assert len({run.id, started[0].id, started[2].id}) == 3


def test_what_trains_on_equal_bits_is_another_run(small):
    run, equal = student_of(small), student_of(small, training={"deterministic": True})
    assert equal.id != run.id


def test_each_setting_of_an_objective_and_of_its_parts_enters(small):
    def run_of(states, **part):
        parts = ({"objective": {"kind": "representation", **states}, **part}, {"objective": {"kind": "gold"}})
        return student_of(small, stages=({"objective": {"kind": "mix", "parts": parts}},))

    runs = [
        run_of({}),
        run_of({"distance": "mse"}),
        run_of({"normalise": "none"}),
        run_of({}, text="unlabelled"),
    ]
    assert len({run.id for run in runs}) == 4


def test_the_teachers_width_is_a_number_in_the_run(small):
    """A student with the teacher's 2 · 6 hidden states, however that is written."""
    runs = [student_of(small, student={"projection": width}) for width in ("teacher", 12, 11)]
    assert [run.model["projection"] for run in runs] == [12, 12, 11]
    assert runs[0].id == runs[1].id != runs[2].id


def test_seeds_count_from_the_recipes_own(small):
    run = student_of(small, training={"seed": 5})
    assert with_seed_offset(run, 0).id == run.id
    assert with_seed_offset(run, 2).id == student_of(small, training={"seed": 7}).id


def test_a_run_crosses_processes_as_plain_data(small):
    for run in (student_of(small), staged(small), small.teachers[0].run):
        copy = Run.from_plain(json.loads(json.dumps(run.to_plain())))
        assert copy == run
        assert copy.id == run.id


def test_a_monolingual_teacher_is_the_same_whatever_languages_a_sweep_adds(store):
    both = prepare(recipe(), Storage(store)).teachers
    alone = prepare(recipe(corpus={"languages": ("en",)}), Storage(store)).teachers
    assert [teacher.languages for teacher in both] == [("en",), ("de",)]
    assert alone[0].run.id == both[0].run.id != both[1].run.id
    together = prepare(recipe(teachers={"scope": "all"}), Storage(store)).teachers
    assert [teacher.languages for teacher in together] == [("en", "de")]


def test_the_stored_signals_serve_every_objective():
    objectives = [
        {"kind": "gold"},
        {"kind": "top_wk", "k": 3},
        {"kind": "top_k", "k": 7},
        {"kind": "posterior"},
    ]
    recipes = [recipe(objective=objective) for objective in objectives]
    everything = (Need("emissions"), Need("transitions"), Need("kbest", 7))
    assert stored_needs(recipes, unlabelled=True) == everything
    # Unlabelled text is labelled by the teacher's best path, whatever the objective reads; gold alone reads none.
    assert stored_needs([recipe()], unlabelled=True) == (*everything[:2], Need("kbest", 1))
    assert stored_needs([recipe()], unlabelled=False) == everything[:2]
    assert stored_needs(recipes[:1], unlabelled=True) == ()
    stages = recipe(stages=(*STAGES, {"objective": {"kind": "top_k", "k": 2}}))
    assert stored_needs([stages], unlabelled=True) == (*everything[:2], Need("kbest", 2))
