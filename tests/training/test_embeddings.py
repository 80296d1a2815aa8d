"""Students with embeddings from a teacher, a checkpoint's or a file's."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel

from raykd.corpora.piece_rows import matching_rows, piece_texts
from raykd.errors import StoreError
from raykd.layers.reduction import pca, svd
from raykd.recipes.recipe_faults import recipe_faults
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.layout import EMBEDDINGS, ROWS
from raykd.storage.store import Storage
from raykd.sweep.doctor import examine_store, repair_store
from raykd.training import embeddings
from raykd.training.embeddings import embeddings_id, open_embeddings
from raykd.training.execute import _starting_model, find_result
from raykd.training.model_folder import build_model, load_model
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs, with_seed_offset
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import executed, prepared, recipe, student_of, train_teachers

OF_TEACHER = {"vocabulary": {"kind": "teacher"}, "embedding_dim": 4}
GOLD = {"objective": {"kind": "gold"}, "schedule": {"epochs": 1}}


def start(kind: str, **settings) -> dict:
    return {"kind": kind, **settings}


def of(kind: str, **settings) -> dict:
    """A student with embeddings by `kind` from the teacher."""
    return {**OF_TEACHER, "embeddings": start(kind, **settings)}


STAGED = {
    "teachers": {"scope": "all"},
    "student": {"kind": "transformer", "layers": 2, "heads": 2, "projection": "teacher", **of("svd")},
    "stages": (
        {"objective": {"kind": "representation", "layer": 1}, "select": "loss", "schedule": {"epochs": 1}},
        {"objective": {"kind": "gold"}, "layers": "unfreeze", "schedule": {"epochs": 1}},
    ),
}


@pytest.fixture(scope="module")
def prepared_one(tmp_path_factory):
    """A store with one trained BiLSTM teacher of both languages, of words, and what serves these recipes."""
    run_recipe = recipe(teachers={"scope": "all"}, student=of("svd"))
    return prepared(str(tmp_path_factory.mktemp("one") / "store"), run_recipe, recipe(**STAGED))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"), head=False)


def checkpoint_teacher(path: str, **settings) -> dict:
    return {"kind": "hf_token_classifier", "path": path, "fine_tune": True, "epochs": 1, **settings}


def vectors_of(model) -> torch.Tensor:
    return model.embedding_matrix().detach().clone()


def started(ready, run: Run) -> torch.Tensor:
    return vectors_of(_starting_model(ready.storage, run))


def pieces_of(ready, run: Run):
    return open_vocabulary(ready.storage, run.vocabulary_id).pieces


def test_a_student_starts_from_the_best_subspace_of_its_teachers_words(prepared_one):
    run_recipe = recipe(teachers={"scope": "all"}, student=of("svd"))
    run, teacher = student_of(prepared_one, run_recipe), prepared_one.teachers[0].run
    assert run.embeddings_from == {"teacher_id": teacher.id}
    matrix_VD = vectors_of(load_model(prepared_one.storage, teacher))
    rows = torch.from_numpy(matching_rows(pieces_of(prepared_one, teacher), pieces_of(prepared_one, run)))
    assert (rows >= 0).all(), "both are built from the same words"
    assert torch.equal(started(prepared_one, run), svd(matrix_VD[rows], 4))
    result = executed(prepared_one, run)
    assert len(result.epochs) == 2
    assert not torch.equal(vectors_of(load_model(prepared_one.storage, run)), started(prepared_one, run)), (
        "they are trained"
    )


def test_a_small_transformer_learns_through_its_projection(prepared_one):
    run = student_of(prepared_one, recipe(**STAGED))
    assert run.model["projection"] == 12
    history = executed(prepared_one, run).epochs
    assert [epoch["stage"] for epoch in history] == [0, 1, 1, 1, 1]
    trained, first = load_model(prepared_one.storage, run), _starting_model(prepared_one.storage, run)
    for group, parameters in trained.layer_groups().items():
        before = first.layer_groups()[group]
        assert any(not torch.equal(*pair) for pair in zip(parameters, before, strict=True)), group


def test_pieces_that_the_teacher_lacks_are_drawn_as_without_it(prepared_one):
    """A teacher of frequent words, a student of all of them."""
    rare = {"vocabulary": {"kind": "word", "min_count": 3}, "scope": "all"}
    run_recipe = recipe(teachers=rare, student={**of("pca"), "vocabulary": {"kind": "word"}})
    ready = prepare(run_recipe, prepared_one.storage)
    train_teachers(ready)
    run, teacher = student_of(ready, run_recipe), ready.teachers[0].run
    rows = matching_rows(pieces_of(ready, teacher), pieces_of(ready, run))
    lacking = torch.from_numpy(rows < 0)
    assert 0 < int(lacking.sum()) < len(rows) - 2
    initial, drawn = started(ready, run), vectors_of(build_model(ready.storage, run))
    assert torch.equal(initial[lacking], drawn[lacking])
    matrix_VD = vectors_of(load_model(ready.storage, teacher))
    assert torch.equal(initial[~lacking], pca(matrix_VD[torch.from_numpy(rows[rows >= 0])], 4))


def test_it_is_computed_once_for_all_runs_that_start_so(prepared_one, monkeypatch):
    calls = []
    honest = embeddings._compute
    monkeypatch.setattr(embeddings, "_compute", lambda *args: (calls.append(args), honest(*args))[1])
    run_recipe = recipe(teachers={"scope": "all"}, student=of("ppa", remove=1), **GOLD)
    run = student_of(prepared_one, run_recipe)
    models = [_starting_model(prepared_one.storage, with_seed_offset(run, offset)) for offset in (0, 1)]
    second_run = student_of(
        prepared_one, recipe(teachers={"scope": "all"}, student={**of("ppa", remove=1), "hidden_dim": 9})
    )
    assert embeddings_id(second_run) == embeddings_id(run)
    _starting_model(prepared_one.storage, second_run)
    assert len(calls) == 1
    assert torch.equal(*(vectors_of(model) for model in models))
    heads = [model.head.emissions.weight for model in models]
    assert not torch.equal(*heads), "all else is drawn by the seed"


def test_what_a_run_starts_from_is_part_of_what_it_is(prepared_one):
    runs = [
        student_of(prepared_one, recipe(teachers={"scope": "all"}, student=student, **GOLD))
        for student in (OF_TEACHER, of("random"), of("svd"), of("pca"), of("ppa", remove=1))
    ]
    assert runs[0].id == runs[1].id
    assert len({run.id for run in runs}) == 4
    assert embeddings_id(runs[2]) != embeddings_id(runs[3])
    # Gold labels are the same whatever the teacher is; where the student starts is not.
    run_recipe = recipe(teachers={"scope": "all", "training": {"seed": 1}}, student=of("svd"), **GOLD)
    second_run = student_of(prepare(run_recipe, prepared_one.storage), run_recipe)
    assert second_run.id != runs[2].id
    assert embeddings_id(second_run) != embeddings_id(runs[2])
    assert embeddings_id(replace(runs[2], vocabulary_id="vocabulary-other")) != embeddings_id(runs[2])


def test_what_a_kill_or_damage_leaves_is_computed_again(prepared_one):
    run_recipe = recipe(teachers={"scope": "all"}, student=of("pca"), **GOLD)
    run = student_of(prepared_one, run_recipe)
    before = started(prepared_one, run)
    folder = prepared_one.storage.child(EMBEDDINGS, embeddings_id(run))
    folder.remove("embeddings.json")
    assert torch.equal(started(prepared_one, run), before)
    folder.write(ROWS, folder.read(ROWS)[:-1] + b"x")
    with pytest.raises(
        StoreError, match=rf"{ROWS}: is damaged: its checksum is not the one in the manifest; run `raykd"
    ):
        started(prepared_one, run)
    (damage,) = (examination := examine_store(prepared_one.storage)).damages
    assert sorted(name.rpartition("/")[2] for name in damage.remove) == ["embeddings.json", ROWS]
    repair_store(prepared_one.storage, examination)
    assert torch.equal(started(prepared_one, run), before)
    assert not examine_store(prepared_one.storage).damages


@pytest.mark.parametrize(("teachers", "students"), [("pruned", False), ("whole", True), ("pruned", None)])
def test_a_fine_tuned_checkpoint_and_its_student_have_their_own_pieces(
    checkpoint, tmp_path, teachers, students
):
    """Pruned or not, pieces are the same by their ids in the checkpoint."""
    taught = checkpoint_teacher(checkpoint, vocabulary=teachers, training={"learning_rate": 1e-2})
    vocabulary = {"kind": "teacher", "pruned": students}
    student = {"vocabulary": vocabulary, "embedding_dim": 16, "embeddings": start("teacher")}
    run_recipe = recipe(teachers=taught, student=student, **GOLD)
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    train_teachers(ready)
    run, teacher = student_of(ready, run_recipe), ready.teachers[0].run
    whole_VD = AutoModel.from_pretrained(checkpoint).get_input_embeddings().weight.detach()
    matrix_VD, initial_VD = vectors_of(load_model(ready.storage, teacher)), started(ready, run)
    student_pieces, teacher_pieces = pieces_of(ready, run), pieces_of(ready, teacher)
    kept_ids = [
        range(pieces.size) if pieces.checkpoint_ids is None else pieces.checkpoint_ids
        for pieces in (student_pieces, teacher_pieces)
    ]
    assert (student_pieces.size < teacher_pieces.size) == (students is True)
    for row, piece in enumerate(kept_ids[0]):
        if piece in kept_ids[1]:
            assert torch.equal(initial_VD[row], matrix_VD[list(kept_ids[1]).index(piece)])
    assert not torch.equal(matrix_VD, whole_VD[torch.tensor(list(kept_ids[1]))]), "the teacher was trained"
    assert len(executed(ready, student_of(ready, replace_gold(run_recipe))).epochs) == 1


def replace_gold(run_recipe):
    return run_recipe.model_copy(
        update={"objective": recipe(**GOLD).objective, "schedule": recipe(**GOLD).schedule}
    )


def test_the_checkpoint_as_it_was_given(checkpoint, tmp_path):
    """With monolingual teachers too, and wherever the checkpoint lies."""
    first = shutil.copytree(checkpoint, tmp_path / "first")
    student = {**of("svd", weights="pretrained"), "vocabulary": {"kind": "teacher", "pruned": True}}
    run_recipe = recipe(teachers=checkpoint_teacher(str(first), scope="language"), student=student, **GOLD)
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    whole_VD = AutoModel.from_pretrained(checkpoint).get_input_embeddings().weight.detach()
    kept_ids = pieces_of(ready, run).checkpoint_ids
    assert torch.equal(started(ready, run), svd(whole_VD[torch.tensor(kept_ids)], 4))
    moved = replace(run, embeddings_from={**run.embeddings_from, "path": str(tmp_path / "moved")})
    assert (moved.id, embeddings_id(moved)) == (run.id, embeddings_id(run))
    second_run = replace(run, embeddings_from={**run.embeddings_from, "checksum": "0" * 64})
    assert second_run.id != run.id
    assert embeddings_id(second_run) != embeddings_id(run)
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        started(ready, second_run)


def test_word_vectors_by_the_text_of_a_piece(tmp_path):
    run_recipe = recipe(student={"embedding_dim": 2})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    texts = piece_texts(pieces_of(ready, student_of(ready, run_recipe)))
    pieces = open_vocabulary(ready.storage, student_of(ready, run_recipe).vocabulary_id).pieces.entries
    both = next(text for text in texts if text in pieces and "##" + text in pieces and text.isalpha())
    upper = next(text for text in texts if text != text.lower() and text.lower() != both)
    lines = [f"{both} 1.25 -2", f"{upper.lower()} 3 4", "nobody-says-this 5 6"]
    (tmp_path / "some.vec").write_text("\n".join(lines) + "\n")
    student = {"embedding_dim": 2, "embeddings": start("vectors", path=str(tmp_path / "some.vec"))}
    run = student_of(ready, recipe(student=student, **GOLD))
    assert run.embeddings_from is None
    initial, drawn = started(ready, run), vectors_of(build_model(ready.storage, run))
    for row, text in enumerate(texts):
        expected = {both: [1.25, -2.0], upper: [3.0, 4.0], upper.lower(): [3.0, 4.0]}.get(text)
        assert initial[row].tolist() == (expected or drawn[row].tolist()), text
    assert len(executed(ready, run).epochs) == 1
    # By content: a copy elsewhere is the same, another file is not.
    shutil.copy(tmp_path / "some.vec", tmp_path / "copy.vec")
    (tmp_path / "other.vec").write_text("nobody-says-this 5 6\n")
    ids = []
    for name in ("copy.vec", "other.vec"):
        elsewhere = {**student, "embeddings": start("vectors", path=str(tmp_path / name))}
        ids.append((second_run := student_of(ready, recipe(student=elsewhere, **GOLD))).id)
    assert ids[0] == run.id != ids[1]
    with pytest.raises(StoreError, match=r"other.vec: has none of the student's pieces"):
        started(ready, second_run)
    with pytest.raises(
        StoreError, match=r"vectors of 2 components, the student's have 4; set student.embedding_dim: 2"
    ):
        student_of(ready, recipe(student={**student, "embedding_dim": 4}))


def test_each_language_has_its_own_file(tmp_path):
    for language, word in (("en", "the"), ("de", "die")):
        (tmp_path / f"{language}.vec").write_text(f"{word} 1 2\n")
    student = {
        "embedding_dim": 2,
        "scope": "language",
        "embeddings": start("vectors", path=str(tmp_path / "{lang}.vec")),
    }
    run_recipe = recipe(student=student)
    runs = student_runs(run_recipe, prepare(run_recipe, Storage(str(tmp_path / "store"))))
    assert [run.model["embeddings"]["path"] for run in runs] == [
        f"{tmp_path}/{name}.vec" for name in ("en", "de")
    ]


def test_a_checkpoint_that_is_too_narrow(checkpoint, tmp_path):
    for kind, size, hint in (
        ("teacher", 12, "set student.embedding_dim: 16, or use svd or pca"),
        ("svd", 17, "set student.embedding_dim to at most 16"),
        ("ppa", 10, "ppa removes 14 of the teacher's 16 components and 14 of the student's 10"),
    ):
        run_recipe = recipe(
            teachers=checkpoint_teacher(checkpoint), student={**of(kind), "embedding_dim": size}
        )
        assert not recipe_faults(run_recipe)
        with pytest.raises(StoreError, match=hint):
            student_of(prepare(run_recipe, Storage(str(tmp_path))), run_recipe)


EACH, ALL = {"scope": "language"}, {"scope": "all"}


@pytest.mark.parametrize(
    ("teachers", "student", "path", "message"),
    [
        (EACH, {}, "kind", "each language has another teacher; set student.scope: language"),
        ({**ALL, "count": 2}, {}, "kind", "the mean of 2 teachers has no embeddings; set teachers.count: 1"),
        (ALL, {"vocabulary": {"kind": "wordpiece"}}, "kind", "pieces are not the teacher's; set student.vocabulary"),
        (ALL, of("svd", weights="pretrained"), "weights", "'bilstm_crf' starts from no checkpoint; set weights"),
        (EACH, {**EACH, "embedding_dim": 9}, "kind", "have 6 components, too few for the student's 9; set student."),
        (ALL, of("teacher"), "kind", "have 6 components, the student's 4; set student.embedding_dim: 6, or use"),
        (ALL, of("ppa"), "kind", "ppa removes 14 of the teacher's 6 components"),
        ({**ALL, "embedding_dim": 0}, {}, "kind", "have 0 components"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_started_from_is_refused(teachers, student, path, message):
    (fault,) = recipe_faults(recipe(teachers=teachers, student={**of("svd"), **student}))
    assert fault[0] == ("student", "embeddings", path)
    assert message in fault[1]


def test_another_checkpoints_pieces_are_refused(checkpoint, tmp_path):
    second_checkpoint = make_checkpoint(tmp_path / "other", head=False)
    student = {**of("svd"), "vocabulary": {"kind": "pretrained", "path": second_checkpoint}}
    (fault,) = recipe_faults(recipe(teachers=checkpoint_teacher(checkpoint), student=student))
    assert "the student's pieces are not the teacher's" in fault[1]
    student["vocabulary"] = {"kind": "pretrained", "path": checkpoint}
    assert not recipe_faults(recipe(teachers=checkpoint_teacher(checkpoint), student=student))
    several = checkpoint_teacher(checkpoint, scope="language")
    (fault,) = recipe_faults(recipe(teachers=several, student=student))
    assert "set student.scope: language, or weights: pretrained" in fault[1]
    student["embeddings"] = start("svd", weights="pretrained")
    assert not recipe_faults(recipe(teachers=several, student=student))


def test_all_weights_of_another_run_leave_nothing_to_start_from():
    run_recipe = recipe(start_from="run-0000000000000000", teachers={"scope": "all"}, student=of("svd"))
    (fault,) = recipe_faults(run_recipe)
    assert fault[1] == "all weights are taken from the run in start_from; omit embeddings or start_from"


def test_a_student_without_embeddings_has_none_to_start():
    with pytest.raises(ValueError, match="embeddings needs embedding_dim above 0"):
        recipe(student={**of("svd"), "embedding_dim": 0, "character_dim": 3})


def test_a_language_has_the_teacher_of_that_language(tmp_path):
    run_recipe = recipe(student={**of("svd"), "scope": "language"}, **GOLD)
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    runs = student_runs(run_recipe, ready)
    assert [run.embeddings_from["teacher_id"] for run in runs] == [
        teacher.run.id for teacher in ready.teachers
    ]
    train_teachers(ready)
    executed(ready, runs[1])
    assert find_result(ready.storage, runs[1]) is not None
    pieces, _ = open_embeddings(ready.storage.child(EMBEDDINGS, embeddings_id(runs[1])))
    assert np.array_equal(pieces.numpy(), np.arange(len(pieces)))
