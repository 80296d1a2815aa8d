"""Students of semantic parsing with a fine-tuned pointer-generator as the teacher, which reads their batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from raykd.errors import RunError, StoreError
from raykd.layers.model_config import BuildInputs
from raykd.objectives import Mix, Part
from raykd.objectives.attention import Attention
from raykd.objectives.hidden_states import HiddenStates
from raykd.objectives.labels import Gold
from raykd.objectives.token import Token
from raykd.precompute.model_cost import measure_cost
from raykd.recipes.recipe_faults import recipe_faults
from raykd.signals import Sizes, TeacherBatch
from raykd.storage.store import Storage
from raykd.teachers import HFSeq2SeqTeacher
from raykd.training.data import Batch, training_data
from raykd.training.learner import Learner
from raykd.training.live import live_needs, live_teacher
from raykd.training.load import load_tagger
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import called_once, executed, recipe, student_of, train_teachers
from tests.training.test_semantic_parsing import STUDENT, parsing, write_files

EVERYTHING = {
    "kind": "mix",
    "parts": (
        {"objective": {"kind": "gold"}},
        {"objective": {"kind": "token"}},
        {"objective": {"kind": "hidden_states", "layers": (0,)}, "weight": 0.01},
        {"objective": {"kind": "hidden_states", "layers": (2,)}, "weight": 0.01},
        {"objective": {"kind": "attention", "layers": (2,)}, "weight": 0.01},
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        name: make_checkpoint(folder / name, head=False, longest=32, layers=layers, seed=layers)
        for name, layers in (("teacher", 2), ("student", 1))
    }


def distilling(root, checkpoints, **changes):
    run_recipe = {
        "teachers": {
            "kind": "hf_seq2seq", "path": checkpoints["teacher"], "epochs": 2, "decoder_layers": 2,
            "decoder_feed_forward_dim": 32, "training": {"batch_tokens": 80, "learning_rate": 3e-3, "dropout": 0.1},
        },
        "student": {
            "kind": "seq2seq", "path": checkpoints["student"], "freeze": ("embeddings",), "decoder_layers": 1,
            "decoder_feed_forward_dim": 32,
        },
        "objective": EVERYTHING,
        "schedule": {"epochs": 3},
        "training": {"batch_tokens": 80, "learning_rate": 3e-3, "loss_average": "token"},
    } | changes  # fmt: skip
    return parsing(root, **run_recipe)


@pytest.fixture(scope="module")
def distilled(root, checkpoints, tmp_path_factory):
    """The store, the student's run and its result."""
    run_recipe = distilling(root, checkpoints)
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path_factory.mktemp("store"))))
    train_teachers(ready)
    run = student_of(ready, run_recipe)
    return ready, run, executed(ready, run)


def test_a_student_learns_from_all_that_the_teacher_gives(distilled):
    ready, run, result = distilled
    assert run.sources[0].signals == {}, "nothing is stored"
    kinds = {"gold", "token", "hidden_states", "hidden_states.2", "attention"}
    assert {kinds <= set(epoch["losses"]) for epoch in result.epochs} == {True}
    first, last = result.epochs[0]["losses"], result.epochs[-1]["losses"]
    for kind in kinds - {"hidden_states"}:
        assert last[kind] < first[kind], kind  # the embeddings are frozen, and as wide as the teacher's
    assert last["hidden_states"] == pytest.approx(first["hidden_states"], rel=0.05)
    (teacher,) = ready.teachers
    tagger = load_tagger(ready.storage.child(*teacher.run.folder).uri)
    assert tagger.model.depth == 2, "it is loaded again, with its decoder"


def test_losses_are_those_of_a_plain_reading_of_both(distilled):
    """The paper's equations sentence by sentence: Eq. 2 of every step after the gold ones, Eq. 3 of every piece."""
    ready, run, _ = distilled
    student = build_model(ready.storage, run, dropout=0.0).eval()
    objective = Mix(
        parts=tuple(
            Part(objective=difference)
            for difference in (
                Gold(),
                Token(),
                HiddenStates(layers=(0, 2), student_layers=(0, 1)),
                Attention(layers=(2,)),
            )
        )
    )
    live = live_teacher(ready.storage.uri, run, live_needs(run, objective.needs))
    assert live is not None
    sizes = {"student": {0: 16, 1: 16}, "teacher": {0: 16, 2: 16}}
    loss = objective.build(*(Sizes(1, difference) for difference in sizes.values()))
    data = training_data(ready.storage.uri, run, (), text="labelled")
    rows = np.array([0, 7, 45])
    batch = Batch(data.part.text.gather(rows), data.part.labels.gather(rows), TeacherBatch())
    with torch.no_grad():
        losses = Learner(student, loss, objective, live)(batch, 1.0, "float32")
    teacher = load_tagger(ready.storage.child("teachers", run.sources[0].teacher_id).uri).model
    both: tuple[Any, Any] = (student, teacher)
    for b, row in enumerate(rows):
        text, gold = data.part.text.gather(np.array([row])), data.part.labels.gather(np.array([row]))
        with torch.no_grad():
            chains = [model(text).distribution.emissions_BTY[0] for model in both]
            inside = [
                model.model(input_ids=text.pieces_BP, output_hidden_states=True).hidden_states
                for model in both
            ]
        log_SL, p_SL = chains[0].log_softmax(-1), chains[1].softmax(-1)
        apart = [
            (inside[1][teacher_layer] - inside[0][student_layer])[0]
            for student_layer, teacher_layer in ((0, 0), (1, 2))
        ]
        expected = {
            "gold": -log_SL.gather(1, gold.tags_BT[0, :, None]).sum(),
            "token": -(p_SL * log_SL).sum(),
            "hidden_states": sum(difference.norm(dim=1).sum() for difference in apart),
        }
        for kind, value in expected.items():
            torch.testing.assert_close(losses[kind][b], value, rtol=1e-4, atol=1e-4)


def test_a_drawn_student_reads_the_pieces_of_a_pruned_teacher(root, checkpoints, tmp_path):
    """The student has the teacher's vocabulary; the losses inside need no equal widths."""
    teachers = {**distilling(root, checkpoints).teachers.model_dump(), "vocabulary": "pruned", "beam": 2}
    student = {**STUDENT, "vocabulary": {"kind": "teacher"}}
    run_recipe = distilling(root, checkpoints, teachers=teachers, student=student, schedule={"epochs": 1})
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    train_teachers(ready)
    result = executed(ready, student_of(ready, run_recipe))
    assert {"gold", "token", "hidden_states", "attention"} <= set(result.epochs[0]["losses"])
    (teacher,) = ready.teachers
    embeddings = load_tagger(ready.storage.child(*teacher.run.folder).uri).model.embedding_matrix()
    whole = (
        HFSeq2SeqTeacher(path=checkpoints["teacher"])
        .build(BuildInputs(tag_set=ready.corpus.tag_set))
        .embedding_matrix()
    )
    assert 0 < len(embeddings) < len(whole)


def test_what_it_costs_is_that_of_generating_trees(distilled, monkeypatch):
    ready, _, _ = distilled
    monkeypatch.setattr("raykd.precompute.model_cost.time_in_turns", called_once)
    (teacher,) = ready.teachers
    cost = measure_cost(ready.storage.uri, teacher.run)
    assert cost.figures["parameters"] > 0
    assert cost.shape["model"]["decoder_layers"] == 2


def test_other_pieces_are_refused(root, checkpoints, tmp_path):
    run_recipe = distilling(root, checkpoints, student=STUDENT)
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    with pytest.raises(RunError, match=r"student\.vocabulary: \{kind: teacher\}"):
        student_runs(run_recipe, ready)


def test_layers_that_it_does_not_have(root, checkpoints, tmp_path):
    frozen = HFSeq2SeqTeacher(path=checkpoints["teacher"], freeze=("embeddings", 3))
    tag_set = prepare(distilling(root, checkpoints), Storage(str(tmp_path))).corpus.tag_set
    with pytest.raises(StoreError, match="no layer 3 to freeze"):
        frozen.build(BuildInputs(tag_set=tag_set))
    student = {**STUDENT, "vocabulary": {"kind": "teacher"}}
    deep = {"kind": "hidden_states", "layers": (2,), "student_layers": (3,)}
    (fault,) = recipe_faults(distilling(root, checkpoints, student=student, objective=deep))
    assert fault[0] == ("objective", "student_layers")


def test_what_cannot_work_is_refused_with_a_hint(root, checkpoints):
    labels = recipe(teachers={"kind": "hf_seq2seq", "path": "x"})
    assert "task: semantic_parsing" in dict(recipe_faults(labels))["teachers", "kind"]
    hidden = distilling(root, checkpoints, objective={"kind": "representation", "layer": 1})
    (fault,) = recipe_faults(hidden)
    assert "'hidden' is needed" in fault[1]
    with pytest.raises(ValueError, match="set count: 1"):
        HFSeq2SeqTeacher(path="x", count=2)
