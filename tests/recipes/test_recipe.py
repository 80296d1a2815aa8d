"""Faults between sections of a recipe, with their key paths."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from raykd.recipes.recipe_faults import recipe_faults
from tests.training.small import TREE, recipe

GOLD, POSTERIOR = {"objective": {"kind": "gold"}}, {"objective": {"kind": "posterior"}}


@pytest.mark.parametrize(
    ("changes", "written"),
    [
        ({}, "none of them"),
        ({"objective": GOLD["objective"], "stages": (GOLD,)}, "objective and stages"),
        ({"stages": (GOLD,), "strategy": {"name": "D", "stages": (GOLD,)}}, "stages and strategy"),
    ],
)
def test_an_objective_or_stages_or_a_strategy(changes, written):
    tree = {key: value for key, value in TREE.items() if key != "objective"}
    with pytest.raises(
        ValidationError, match=rf"write one of `objective: …` .* and `strategy: NAME`; got {written}"
    ):
        type(recipe()).model_validate({**tree, **changes})


def test_stages_may_not_be_empty():
    with pytest.raises(ValidationError, match="at least 1"):
        recipe(stages=())


@pytest.mark.parametrize("name", ["seed", "dropout"])
def test_what_holds_for_the_whole_run_is_no_setting_of_a_stage(name):
    (fault,) = recipe_faults(
        recipe(stages=(POSTERIOR, {**GOLD, "training": {name: 0, "learning_rate": 1e-3}}))
    )
    assert fault[0] == ("stages", 1, "training", name)
    assert fault[1] == f"{name} holds for the whole run; write it in the sweep file's own training"
    assert not recipe_faults(recipe(stages=(POSTERIOR, {**GOLD, "training": {"learning_rate": 1e-3}})))


def test_gold_labels_need_labels():
    (fault,) = recipe_faults(recipe(stages=({**GOLD, "text": "unlabelled"}, POSTERIOR)))
    assert fault[0] == ("stages", 0, "text")
    assert "gold labels say nothing about unlabelled text; use 'top_1'" in fault[1]
    mix = {"kind": "mix", "parts": (GOLD, {**GOLD, "weight": 2.0})}
    assert len(recipe_faults(recipe(stages=({"objective": mix, "text": "unlabelled"},)))) == 1
    for text in ("labelled", "all"):
        assert not recipe_faults(recipe(stages=({**GOLD, "text": text},)))
    assert not recipe_faults(recipe(stages=({**POSTERIOR, "text": "unlabelled"},)))


def test_the_text_of_a_part_is_in_the_corpus_and_in_the_stage():
    def faults_of(objective, of, stage=None, **corpus):
        parts = ({"objective": objective, "text": of}, GOLD)
        return recipe_faults(
            recipe(corpus=corpus, stages=({"objective": {"kind": "mix", "parts": parts}, "text": stage},))
        )

    posterior, gold = POSTERIOR["objective"], GOLD["objective"]
    for of in ("labelled", "unlabelled", "all"):
        assert not faults_of(posterior, of)
        assert not faults_of(posterior, of, "all")
    (fault,) = faults_of(posterior, "unlabelled", unlabelled=0)
    path = ("stages", 0, "objective", "parts", 0, "text")
    assert fault == (path, "the corpus has no unlabelled text; set corpus.unlabelled")
    for of, stage in (("labelled", "unlabelled"), ("unlabelled", "labelled")):
        assert (path, f"the stage is trained on {stage} text alone; set its text: all") in faults_of(
            posterior, of, stage
        )
    (fault,) = faults_of(gold, "unlabelled")
    assert fault == (path, "gold labels say nothing about unlabelled text; use 'top_1'")


def test_only_a_projection_that_is_there_is_trained():
    stages = (GOLD, {**GOLD, "layers": ("head", "projection")})
    (fault,) = recipe_faults(recipe(stages=stages))
    assert fault[0] == ("stages", 1, "layers")
    assert "the student has no layer group 'projection'; set student.projection" in fault[1]
    assert not recipe_faults(recipe(stages=stages, student={"projection": 8}))
    assert not recipe_faults(recipe(stages=(GOLD, {**GOLD, "layers": "unfreeze"})))


@pytest.mark.parametrize("text", ["unlabelled", "all"])
def test_a_stage_on_text_that_the_corpus_does_not_have(text):
    (fault,) = recipe_faults(recipe(corpus={"unlabelled": 0}, stages=({**POSTERIOR, "text": text},)))
    assert fault[0] == ("stages", 0, "text")
    assert "the corpus has no unlabelled text; set corpus.unlabelled" in fault[1]


def test_pseudo_labels_of_no_text_are_gold():
    top_1 = {"objective": {"kind": "top_1"}}
    (fault,) = recipe_faults(recipe(corpus={"unlabelled": 0}, stages=(GOLD, top_1)))
    assert fault[0] == ("stages", 1, "objective", "kind")
    (fault,) = recipe_faults(recipe(stages=({**top_1, "text": "labelled"},)))
    assert fault[0] == ("stages", 0, "text")
    assert "on labelled text 'top_1' is the same as 'gold'" in fault[1]


def test_faults_of_all_stages_are_reported_together():
    span = {"kind": "biaffine_ner", "embedding_dim": 6, "hidden_dim": 6}
    stages = ({"objective": {"kind": "emission"}}, GOLD, {"objective": {"kind": "top_k", "k": 3}})
    faults = recipe_faults(recipe(teachers=span, student={"decoder": "maxent"}, stages=stages))
    assert [path for path, _ in faults] == [("stages", place, "objective", "kind") for place in (0, 2)]


def test_a_projection_is_a_layer_of_those_that_have_one():
    second = {"objective": {"kind": "representation", "student_layer": 2}}
    (fault,) = recipe_faults(recipe(stages=(second,)))
    assert fault[0] == ("stages", 0, "objective", "student_layer")
    assert "the student's encoder has no layer 2; choose from 0 (its input) to 1" in fault[1]
    mixed = {"objective": {"kind": "mix", "parts": ({"objective": {"kind": "representation", "layer": 9}},)}}
    (fault,) = recipe_faults(recipe(stages=(mixed,)))
    assert fault[0] == ("stages", 0, "objective", "parts", 0, "objective", "layer")
    assert not recipe_faults(recipe(stages=(second,), student={"projection": 5}))
    alone = {**GOLD, "layers": ("head", "projection")}
    assert not recipe_faults(recipe(stages=(GOLD, alone), student={"projection": "teacher"}))


def test_half_precision_needs_a_gpu():
    faults = recipe_faults(recipe(training={"precision": "fp16"}))
    assert [path for path, _ in faults] == [("training", "precision")]
    assert not recipe_faults(recipe(training={"precision": "fp16"}, resources={"gpus_per_worker": 1.0}))
    gpu_role = {"gpus_per_worker": 1.0}
    assert not recipe_faults(recipe(training={"precision": "fp16"}, resources={"students": gpu_role}))
    assert recipe_faults(recipe(training={"precision": "fp16"}, resources={"teachers": gpu_role})) == faults


def test_the_method_names_every_stage():
    assert recipe().method == "structural"
    assert recipe(stages=(POSTERIOR, GOLD)).method == "posterior > gold"
    assert recipe(stages=(POSTERIOR, GOLD)).on_gold_labels().method == "gold"


def strategy(*stages, **fields):
    return recipe(objective=None, strategy={"name": "own", "stages": stages, **fields})


def test_a_strategy_is_named_stages_with_a_scope_of_its_own():
    two = strategy(POSTERIOR, GOLD)
    assert (two.all_stages, two.method) == (recipe(stages=(POSTERIOR, GOLD)).all_stages, "own")
    assert strategy(GOLD, GOLD).method == "gold"
    assert two.scoped_student == two.student
    alone = strategy(GOLD, scope="language")
    assert alone.scoped_student == alone.student.model_copy(update={"scope": "language"})
    assert alone.on_gold_labels().student.scope == "language"


def test_faults_of_a_strategy_name_the_place_in_it():
    (fault,) = recipe_faults(strategy(POSTERIOR, {**GOLD, "text": "unlabelled"}))
    assert fault[0] == ("strategy", "stages", 1, "text")
    two = strategy(GOLD, scope="language").model_copy(
        update={"corpus": recipe(corpus={"zero_shot_languages": ("de",)}).corpus}
    )
    assert [path for path, _ in recipe_faults(two)] == [("strategy", "scope")]


@pytest.mark.parametrize("rate", [{"learning_rate_schedule": "cosine"}, {"warmup": 0.1}])
def test_a_learning_rate_that_needs_an_end_has_one(rate):
    setting = next(iter(rate))
    (fault,) = recipe_faults(recipe(schedule={"epochs": None, "patience": 2}, training=rate))
    assert fault[0] == ("schedule",)
    assert fault[1].startswith(f"training.{setting}")
    assert fault[1].endswith("set schedule.epochs or schedule.max_steps beside patience")
    for end in ({"max_steps": 9, "patience": 2}, {"epochs": 3}, {}):
        assert not recipe_faults(recipe(schedule={"epochs": None, **end}, training=rate))
    (fault,) = recipe_faults(recipe(teachers={"epochs": None, "patience": 2, "training": rate}))
    assert fault[0] == ("teachers",)
    assert "set teachers.epochs" in fault[1]


def test_layers_that_have_no_effect_on_an_objective_are_refused():
    hidden = {"objective": {"kind": "representation", "layer": 1}}
    (fault,) = recipe_faults(recipe(stages=({**hidden, "layers": ("head",)}, GOLD)))
    assert fault == (
        ("stages", 0, "layers"),
        "'representation' reads hidden states, on which the head has no effect; name other layers",
    )
    assert not recipe_faults(recipe(stages=({**hidden, "layers": "unfreeze"}, GOLD)))


def test_a_loss_that_changes_by_epoch_selects_nothing():
    (fault,) = recipe_faults(recipe(stages=({**POSTERIOR, "select": "loss"},)))
    assert fault[0] == ("stages", 0, "select")
    assert fault[1].endswith("set schedule.anneal_rate: 0, or select: dev")
    constant = {**POSTERIOR, "select": "loss", "schedule": {"anneal_rate": 0}}
    assert not recipe_faults(recipe(stages=(constant, {**GOLD, "select": "loss"})))


PAIRS = {
    "source": "tsv", "languages": ("en",), "train": "t", "dev": "d", "test": "e",
}  # fmt: skip


def labels_of_texts(task, teacher, second):
    corpus = {**PAIRS, "columns": {"text": 0, "second": second, "label": 2}}
    tree = {**TREE, "corpus": corpus, "teachers": teacher, "task": task, "objective": {"kind": "posterior"}}
    tree["student"] = {**TREE["student"], "decoder": "maxent"}
    return [message for _, message in recipe_faults(type(recipe()).model_validate(tree))]


def test_pairs_are_of_the_task_of_pairs():
    maxent = {"kind": "bilstm_maxent", "scope": "all"}
    assert labels_of_texts("pairs", maxent, 1) == labels_of_texts("classification", maxent, None) == []
    (single,) = labels_of_texts("pairs", maxent, None)
    assert "set corpus.columns.second, or task: classification" in single
    (pair,) = labels_of_texts("classification", maxent, 1)
    assert "labels single ones; set task: pairs" in pair
    checkpoint = {"kind": "hf_token_classifier", "path": "x", "fine_tune": True}
    (words,) = labels_of_texts("pairs", checkpoint, 1)
    assert "use 'hf_sequence_classifier'" in words
