"""Live teachers in the training step: distillation while pretraining, and while fine-tuning."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel, BertForMaskedLM

from raykd.corpora.encoded_text import encode_text
from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import RunError, SignalError, StoreError
from raykd.forms import FLAT, PIECES
from raykd.layers.model_config import BuildInputs
from raykd.objectives import Mix, Part
from raykd.objectives.attention import Attention
from raykd.objectives.hidden_states import HiddenStates
from raykd.objectives.labels import Gold
from raykd.objectives.token import Token
from raykd.recipes.recipe_faults import recipe_faults
from raykd.signals import Need, Sizes, TeacherBatch
from raykd.storage.store import Storage
from raykd.structures import unscored
from raykd.students import PretrainedStudent
from raykd.training.data import Batch, encoded_part
from raykd.training.execute import _starting_model
from raykd.training.learner import Learner
from raykd.training.live import LiveTeacher, live_needs, live_teacher
from raykd.training.load import load_tagger
from raykd.training.model_folder import build_model, load_model
from raykd.training.prepare import prepare
from raykd.training.student_runs import seed_runs, student_runs
from raykd.training.transformers_checkpoint import export_checkpoint
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import computed, executed, recipe, student_of, train_teachers
from tests.training.test_masked_lm import STUDENT, pretraining, text

TEACHER = {**STUDENT, "embedding_dim": 24, "layers": 3, "heads": 3}
OF_TEACHER = {**STUDENT, "vocabulary": {"kind": "teacher"}}
INSIDE = (
    {"objective": {"kind": "hidden_states", "layers": (0,)}},
    {"objective": {"kind": "hidden_states", "layers": (2, 3)}, "weight": 0.5},
    {"objective": {"kind": "attention", "layers": (1, 3)}, "weight": 0.1},
)
EVERYTHING = {
    "kind": "mix", "parts": ({"objective": {"kind": "gold"}}, {"objective": {"kind": "token"}}, *INSIDE)
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, draw = tmp_path_factory.mktemp("text"), np.random.default_rng(0)
    for language in ("en", "xx"):
        for part, count in (("train", 40), ("dev", 12), ("test", 12)):
            (root / f"{language}-{part}.txt").write_text(text(draw, count))
    return root


@pytest.fixture(scope="module")
def encoders(root, tmp_path_factory):
    """Folders of a teacher and of a small student, pretrained with the same pieces."""
    folder = tmp_path_factory.mktemp("encoders")
    for name, student in (("teacher", TEACHER), ("small", STUDENT)):
        run_recipe = pretraining(root, student=student, schedule={"epochs": 3})
        ready = prepare(run_recipe, Storage(str(tmp_path_factory.mktemp("store"))))
        run = student_of(ready, run_recipe)
        executed(ready, run)
        export_checkpoint(ready.storage.child(*run.folder), Storage(str(folder / name)))
    return folder


def distilling(root, encoders, **changes):
    """A recipe for pretraining with a teacher."""
    teachers = {"kind": "hf_masked_lm", "path": str(encoders / "teacher")}
    return pretraining(
        root,
        **{"teachers": teachers, "student": OF_TEACHER, "objective": EVERYTHING, "schedule": {"epochs": 2}}
        | changes,
    )


@pytest.fixture(scope="module")
def distilled(root, encoders, tmp_path_factory):
    run_recipe = distilling(root, encoders)
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path_factory.mktemp("store"))))
    train_teachers(ready)
    computed(ready, run_recipe)  # nothing is to be stored
    run = student_of(ready, run_recipe)
    return ready, run, executed(ready, run)


def test_pretraining_with_a_teacher_stores_nothing_and_names_each_loss(distilled):
    ready, run, result = distilled
    assert not ready.storage.child("transfer").names()
    assert run.sources[0].signals == {}
    kinds = {"gold", "token", "hidden_states", "hidden_states.2", "attention"}
    assert {kinds <= set(epoch["losses"]) for epoch in result.epochs} == {True}
    first, last = result.epochs[0]["losses"], result.epochs[-1]["losses"]
    assert last["hidden_states"] < first["hidden_states"], "it comes nearer to the teacher"


def test_another_teacher_makes_another_run(root, encoders, distilled, tmp_path):
    _, run, _ = distilled
    second_recipe = distilling(
        root,
        encoders,
        teachers={"kind": "hf_masked_lm", "path": str(encoders / "small")},
        objective={"kind": "token"},
        schedule={"epochs": 1},
    )
    same = distilling(root, encoders, objective={"kind": "token"}, schedule={"epochs": 1})
    runs = [
        student_of(prepare(run_recipe, Storage(str(tmp_path))), run_recipe).id
        for run_recipe in (second_recipe, same)
    ]
    assert len({run.id, *runs}) == 3


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-10), ("bf16", 2e-2)])
def test_a_step_in_chunks_is_that_of_the_whole(distilled, monkeypatch, precision, tolerance):
    """With the gradients of all weights, the embedding among them, which is the head's last layer too."""
    ready, run, _ = distilled
    part, rows = encoded_part(ready.storage.uri, run, "train"), np.arange(0, 60, 5)
    gold: Any = part.labels
    batch = Batch(part.text.gather(rows), part.labels.gather(rows), TeacherBatch())
    dtype = torch.float64 if precision == "float32" else torch.float32
    student = build_model(ready.storage, run, dropout=0.0).to(dtype).train()
    objective = Mix(
        parts=tuple(
            Part(objective=objective_part) for objective_part in (Gold(), Token(), HiddenStates(layers=(0,)))
        )
    )
    live = live_teacher(ready.storage.uri, run, live_needs(run, objective.needs))
    assert live is not None
    live._model.to(dtype)
    loss = objective.build(Sizes(1, {0: 16}), Sizes(1, {0: live.hidden_size(0)})).to(dtype)

    def step() -> dict[str, torch.Tensor]:
        student.zero_grad()
        losses = Learner(student, loss, objective, live)(batch, 1.0, precision)
        losses["total"].mean().backward()
        of = {
            name: loss_B.grad.clone()
            for name, loss_B in student.named_parameters()
            if loss_B.grad is not None
        }
        return {**{name: loss_B.detach() for name, loss_B in losses.items()}, **of}

    def guesses() -> list:
        with torch.inference_mode():
            return PIECES.best_labellings(gold, student(batch.text), rows)

    expected, certain = step(), guesses()
    assert student(batch.text).distribution.fits_in_memory
    monkeypatch.setattr(unscored, "MAX_SCORES", 150)
    assert len(student(batch.text).distribution.chunks()) > 3
    actual = step()
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=tolerance, atol=tolerance, msg=name)
    for guess, certain_guess in zip(guesses(), certain, strict=True):
        np.testing.assert_allclose(guess.log_p_M, certain_guess.log_p_M, rtol=1e-4)
        np.testing.assert_array_equal(guess.right_M, certain_guess.right_M)


def test_losses_are_those_of_a_plain_reading_of_both(distilled):
    """The paper's equations on the outputs of Transformers, sentence by sentence, piece by piece."""
    ready, run, _ = distilled
    student = build_model(ready.storage, run, dropout=0.0).eval()
    objective = Mix(
        parts=tuple(
            Part(objective=checkpoint)
            for checkpoint in (
                Gold(),
                Token(),
                HiddenStates(layers=(0, 3)),
                Attention(layers=(3,), student_layers=(2,)),
            )
        )
    )
    live = live_teacher(ready.storage.uri, run, live_needs(run, objective.needs))
    assert live is not None
    loss = objective.build(
        Sizes(student.config_tags if hasattr(student, "config_tags") else 1, {0: 16, 1: 16, 2: 16}),
        Sizes(1, {layer: live.hidden_size(layer) for layer in (0, 3)}),
    )
    rows = np.array([0, 7, 45])
    part, _ = encoded_part(ready.storage.uri, run, "train").for_epoch(3, 1, rows)
    batch = Batch(part.text.gather(rows), part.labels.gather(rows), TeacherBatch())
    with torch.no_grad():
        losses = Learner(student, loss, objective, live)(batch, 1.0, "float32")
    wide, small = (
        load_tagger(ready.storage.child("teachers", run.sources[0].teacher_id).uri).model.model,
        student.model,
    )
    projections = loss.losses[2].own
    for b, row in enumerate(rows):
        read, length = part.text.gather(np.array([row])), int(batch.text.piece_lengths_B[b])
        with torch.no_grad():
            student_output, teacher_output = (
                checkpoint.eval()(input_ids=read.pieces_BP, output_hidden_states=True)
                for checkpoint in (small, wide)
            )
        hidden = part.text.hidden(np.array([row]))[0]
        log_MV = student_output.logits[0, read.first_BT[0]].log_softmax(-1)
        gold = -sum(log_MV[m, piece] for m, piece in enumerate(hidden))
        p_MV = teacher_output.logits[0, read.first_BT[0]].softmax(-1)
        states = sum(
            (
                teacher_output.hidden_states[layer][0, p]
                - f(student_output.hidden_states[student_layer][0, p])
            ).norm()
            for (layer, student_layer), f in zip(((0, 0), (3, 1)), projections, strict=True)
            for p in range(length)
        )
        expected = {"gold": gold, "token": -(p_MV * log_MV).sum(), "hidden_states": states}
        for kind, value in expected.items():
            torch.testing.assert_close(losses[kind][b], value, rtol=1e-4, atol=1e-4)
        scores = [
            _scores(model, layer, out)
            for model, layer, out in ((small, 2, student_output), (wide, 3, teacher_output))
        ]
        apart_PP = scores[0].mean(0) - scores[1].mean(0)
        torch.testing.assert_close(losses["attention"][b], apart_PP.norm(dim=1).sum(), rtol=1e-3, atol=1e-3)


def _scores(model, layer, out):
    """Attention scores of one sentence, q · k / √d [H, P, P]."""
    attention, states_PD = model.bert.encoder.layer[layer - 1].attention.self, out.hidden_states[layer - 1][0]
    heads = model.config.num_attention_heads
    q, k = (
        projection(states_PD).unflatten(-1, (heads, -1)).transpose(0, 1)
        for projection in (attention.query, attention.key)
    )
    return q @ k.mT / q.shape[-1] ** 0.5


def test_the_teacher_of_a_step_is_neither_trained_nor_saved(distilled):
    ready, run, _ = distilled
    live = live_teacher(ready.storage.uri, run, live_needs(run, Token().needs))
    assert live is not None
    model = nn.Linear(1, 1)
    learner = Learner(model, nn.Identity(), Gold(), live)  # type: ignore[arg-type]
    assert set(learner.state_dict()) == {"model.weight", "model.bias"}
    assert not any(parameter.requires_grad for parameter in live._model.parameters())


def test_a_checkpoint_without_a_head_gets_one_and_is_pruned(root, encoders, tmp_path):
    """As of an encoder from the Hub: the head alone is trained, then students learn from its layers."""
    from transformers import AutoModel, AutoTokenizer

    bare = tmp_path / "bare"
    AutoModel.from_pretrained(encoders / "teacher").save_pretrained(bare)
    AutoTokenizer.from_pretrained(encoders / "teacher").save_pretrained(bare)
    checkpoint = {"kind": "hf_masked_lm", "path": str(bare)}
    run_recipe = distilling(root, encoders, teachers=checkpoint)
    with pytest.raises(StoreError, match="no trained masked-language-model head"):
        train_teachers(prepare(run_recipe, Storage(str(tmp_path / "one"))))
    trained = {
        **checkpoint, "fine_tune": True, "vocabulary": "pruned", "freeze": ("embeddings", 1, 2, 3),
        "training": {"batch_tokens": 100},
    }  # fmt: skip
    run_recipe = distilling(root, encoders, teachers=trained)
    ready = prepare(run_recipe, Storage(str(tmp_path / "two")))
    train_teachers(ready)
    teacher = ready.teachers[0].run
    result = executed(ready, teacher)
    assert result.scores.get("dev").beside["perplexity"].mean > 1
    pruned = load_tagger(ready.storage.child(*teacher.folder).uri)
    whole = AutoModel.from_pretrained(bare)
    assert pruned.vocabulary.pieces.size < whole.config.vocab_size
    assert pruned.vocabulary.pieces.special.mask is not None
    student_weight = pruned.model.model.base_model.encoder.layer[1].output.dense.weight
    torch.testing.assert_close(student_weight, whole.encoder.layer[1].output.dense.weight)
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1


def test_a_checkpoint_with_rows_behind_its_vocabulary(root, encoders, tmp_path):
    """As multilingual-e5-small has them: teacher and student speak of the pieces alone."""
    model = BertForMaskedLM.from_pretrained(encoders / "small")
    pieces = model.config.vocab_size
    model.resize_token_embeddings(pieces + 7)
    shutil.copytree(encoders / "small", tmp_path / "more")
    model.save_pretrained(tmp_path / "more")
    checkpoint = {"path": str(tmp_path / "more")}
    objective = {"kind": "mix", "parts": ({"objective": {"kind": "gold"}}, {"objective": {"kind": "token"}})}
    run_recipe = distilling(
        root, encoders, teachers={"kind": "hf_masked_lm", **checkpoint},
        student={"kind": "pretrained_encoder", **checkpoint}, objective=objective, schedule={"epochs": 1},
    )  # fmt: skip
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    train_teachers(ready)
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean < pieces
    loaded = load_tagger(ready.storage.child(*run.folder).uri)
    assert loaded.model.model.config.vocab_size == pieces + 7
    read = loaded.model.eval()(encoded_part(ready.storage.uri, run, "dev").text.gather(np.arange(2)))
    assert read.distribution.tags == pieces


def test_pieces_of_its_own_beside_a_teacher_that_reads_batches_are_refused_before_anything_is_read(
    root, encoders
):
    run_recipe = distilling(root, encoders, student=STUDENT)
    (fault,) = [
        path_and_text
        for path_and_text in recipe_faults(run_recipe)
        if path_and_text[0] == ("student", "vocabulary")
    ]
    assert "set student.vocabulary: {kind: teacher}" in fault[1]
    assert recipe_faults(distilling(root, encoders, student=STUDENT, objective={"kind": "gold"})) == []


def test_texts_that_one_of_two_encoders_would_cut_are_refused(tmp_path):
    tags, sizes = FLAT.tag_set(["good", "bad"]), {"teacher": 16, "student": 24}
    teacher, student = (
        PretrainedStudent(path=make_checkpoint(tmp_path / name, head="sequence", longest=longest)).build(
            BuildInputs(tag_set=tags, unit="sentence")
        )
        for name, longest in sizes.items()
    )
    pieces = HFVocabulary.load(str(tmp_path / "teacher"))
    short, long = (encode_text([["an"] * count], pieces).gather(np.array([0])) for count in (14, 15))
    need = Need("piece_states", layer=1)
    live = LiveTeacher(teacher, [need], tags=2)
    assert live.paired_with(student).read(short, TeacherBatch()).pieces[1].shape[1] == 16
    with pytest.raises(RunError, match=r"17 pieces: the teacher reads 16, the student 24\. "):
        live.read(long, TeacherBatch())
    assert live.paired_with(teacher).read(long, TeacherBatch()).pieces[1].shape[1] == 16


def test_refusals(root, encoders, tmp_path):
    storage = Storage(str(tmp_path))
    lower = {**STUDENT, "vocabulary": {**STUDENT["vocabulary"], "lower_case": True}}
    other_pieces = distilling(root, encoders, student=lower)
    with pytest.raises(RunError, match="the student has other pieces than the teacher"):
        student_runs(other_pieces, prepare(other_pieces, storage))
    too_deep = {"kind": "hidden_states", "layers": (9,)}
    deep = distilling(root, encoders, objective=too_deep)
    with pytest.raises(SignalError, match="no layer 9"):
        student_runs(deep, prepare(deep, storage))
    messages = dict(recipe_faults(recipe(objective={"kind": "hidden_states", "layers": (1,)})))
    assert "student.kind: encoder or pretrained" in messages["objective", "kind"]
    messages = dict(
        recipe_faults(distilling(root, encoders, objective={"kind": "attention", "layers": (1, 2, 3)}))
    )
    assert "no layer 3" in messages["objective", "student_layers"]
    labels = recipe(teachers={"kind": "hf_masked_lm", "path": "x"})
    assert "task: masked_lm" in dict(recipe_faults(labels))["teachers", "kind"]
    with pytest.raises(ValueError, match="each teacher layer needs one student layer"):
        HiddenStates(layers=(1, 2), student_layers=(1,))


def fine_tuning(encoders, **changes):
    """A recipe for fine-tuning the small encoder on labels, with a fine-tuned teacher of the same pieces."""
    run_recipe = {
        "corpus": {"languages": ("en",), "unlabelled": 0},
        "teachers": {
            "kind": "hf_token_classifier", "path": str(encoders / "teacher"), "fine_tune": True, "epochs": 1,
            "training": {"batch_tokens": 200},
        },
        "student": {"kind": "pretrained", "path": str(encoders / "small"), "freeze": ("embeddings",)},
        "objective": {"kind": "mix", "parts": (
            {"objective": {"kind": "gold"}}, {"objective": {"kind": "token"}}, *INSIDE,
        )},
    } | changes  # fmt: skip
    return recipe(**run_recipe)


def test_fine_tuning_with_a_teacher(encoders, tmp_path):
    """Storable signals are stored; the rest the teacher gives in the training step."""
    run_recipe = fine_tuning(encoders)
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    train_teachers(ready)
    computed(ready, run_recipe)
    run = student_of(ready, run_recipe)
    assert set(run.sources[0].signals) == {"emissions", "transitions"}
    objective = Mix.model_validate(run_recipe.objective.model_dump())
    assert {need.signal for need in live_needs(run, objective.needs)} == {"piece_states", "attention"}
    result = executed(ready, run)
    assert {"gold", "token", "hidden_states", "attention"} <= set(result.epochs[0]["losses"])
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    before = build_model(ready.storage, run)
    for name, parameter in before.named_parameters():
        same = torch.equal(parameter, dict(tagger.model.named_parameters())[name])
        assert same == ("embeddings" in name), name


def test_each_seed_may_start_from_a_checkpoint_of_its_own(encoders, tmp_path):
    """As where encoders were pretrained over several seeds: no figure is of one of them alone."""
    for seed, name in ((4, "small"), (5, "teacher")):
        shutil.copytree(encoders / name, tmp_path / f"encoder-{seed}")
    student = {"kind": "pretrained", "path": str(tmp_path / "encoder-{seed}")}
    run_recipe = fine_tuning(
        encoders, student=student, objective={"kind": "gold"}, teachers={"kind": "none"}, training={"seed": 4}
    )
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    ((first,), (second,)) = seed_runs(run_recipe, ready, 2)
    assert student_runs(run_recipe, ready) == (first,)
    assert [run.training["seed"] for run in (first, second)] == [4, 5]
    assert [run.model["path"][-1] for run in (first, second)] == ["4", "5"]
    vocabulary = {"kind": "pretrained", "path": str(encoders / "teacher")}
    by_hand = fine_tuning(
        encoders,
        student=vocabulary,
        objective={"kind": "gold"},
        teachers={"kind": "none"},
        training={"seed": 5},
    )
    assert second.id == student_of(ready, by_hand).id  # the run of the weights, wherever their folder is
    with pytest.raises(StoreError, match="encoder-6"):
        seed_runs(run_recipe, ready, 3)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", ["whole", "pruned"])
def test_a_pretrained_student_is_a_student_like_others(encoders, tmp_path, vocabulary):
    """Fine-tuned on labels alone, loaded again without its checkpoint, and shipped."""
    from raykd.deploy.export import export_run

    student = {"kind": "pretrained", "path": str(encoders / "small"), "vocabulary": vocabulary}
    run_recipe = fine_tuning(encoders, student=student, objective={"kind": "gold"}, teachers={"kind": "none"})
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    result = executed(ready, run)
    assert result.epochs[-1]["loss"] < result.epochs[0]["loss"]
    (encoders / "small").rename(encoders / "moved")
    try:
        folder = ready.storage.child(*run.folder)
        tagger = load_tagger(folder.uri)
        export_run(
            folder,
            Storage(str(tmp_path / "out")),
        )
        assert (tmp_path / "out" / "model.onnx").exists()
    finally:
        (encoders / "moved").rename(encoders / "small")
    assert len(tagger.vocabulary.pieces.pieces(["dog"])) == 1


@pytest.mark.parametrize("fine_tune", [False, True])
def test_an_encoder_cut_from_its_teacher_goes_on_being_pretrained(root, encoders, tmp_path, fine_tune):
    layers = {
        "kind": "mix",
        "parts": ({"objective": {"kind": "token"}}, {"objective": {"kind": "hidden_states"}}),
    }
    run_recipe = distilling(
        root, encoders, objective=layers, schedule={"epochs": 1},
        teachers={"kind": "hf_masked_lm", "path": str(encoders / "teacher"), "fine_tune": fine_tune, "epochs": 1},
        student={"kind": "pretrained_encoder", "path": "teacher", "layers": (0, 2), "heads": 1},
    )  # fmt: skip
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    train_teachers(ready)
    run = student_of(ready, run_recipe)
    assert bool(run.cut_from) is fine_tune
    start = _starting_model(ready.storage, run).model
    teacher = load_model(ready.storage, ready.teachers[0].run).model
    student_layer, teacher_layer = start.bert.encoder.layer[1], teacher.bert.encoder.layer[2]
    torch.testing.assert_close(student_layer.output.dense.weight, teacher_layer.output.dense.weight)
    assert (
        student_layer.attention.self.query.out_features
        == teacher_layer.attention.self.query.out_features // 3
    )
    torch.testing.assert_close(start.cls.state_dict(), teacher.cls.state_dict())

    executed(ready, run)
    export_checkpoint(ready.storage.child(*run.folder), Storage(str(tmp_path / "encoder")))
    assert AutoModel.from_pretrained(tmp_path / "encoder").config.num_hidden_layers == 2
