"""Students with a checkpoint's pieces, pruned to what they are trained on."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
from transformers import BertTokenizerFast

from raykd.corpora.vocabulary import WordVocabulary, words_in
from raykd.precompute import model_cost
from raykd.precompute.model_cost import measure_cost
from raykd.recipes.recipe_faults import recipe_faults
from raykd.recipes.stored_vocabulary import open_vocabulary, unknown_share, vocabulary_id
from raykd.storage.store import Storage
from raykd.training.model_folder import load_model
from raykd.training.prepare import prepare
from tests.teachers.checkpoints import PIECES, make_checkpoint
from tests.training.small import called_once, executed, recipe, student_of


def recipes(tmp_path, *, teacher="whole", pruned=None):
    teachers = {
        "kind": "hf_token_classifier",
        "path": make_checkpoint(tmp_path / "checkpoint", longest=64),
        "fine_tune": True,
    }
    vocabulary = {"kind": "teacher", "pruned": pruned}
    run_recipe = recipe(
        teachers={**teachers, "vocabulary": teacher},
        student={"kind": "bilstm", "embedding_dim": 4, "hidden_dim": 4, "vocabulary": vocabulary},
        objective={"kind": "gold"},
    )
    return run_recipe, prepare(run_recipe, Storage(str(tmp_path / "store")))


@pytest.mark.parametrize(
    ("teacher", "pruned", "expected"),
    [("whole", None, False), ("pruned", None, True), ("whole", True, True), ("pruned", False, False)],
)
def test_a_students_vocabulary_is_pruned_as_it_says_or_as_its_teachers(tmp_path, teacher, pruned, expected):
    run_recipe, preparation = recipes(tmp_path, teacher=teacher, pruned=pruned)
    pieces = open_vocabulary(preparation.storage, student_of(preparation, run_recipe).vocabulary_id).pieces
    assert (pieces.checkpoint_ids is not None) == expected
    assert pieces.size == (pieces.used if expected else pieces.full_size)


def test_pruned_to_training_and_unlabelled_text_and_never_to_the_test(tmp_path):
    run_recipe, preparation = recipes(tmp_path, pruned=True)
    run, parts = student_of(preparation, run_recipe), preparation.corpus.parts
    pieces = open_vocabulary(preparation.storage, run.vocabulary_id).pieces
    text = pa.concat_tables([parts[name].select(["tokens"]) for name in ("train", "unlabelled")])
    whole = run_recipe.teachers.tokenizer.build([])
    used_pieces = set(np.unique(whole.pieces(list(words_in(text))).values).tolist())
    assert set(pieces.checkpoint_ids) == used_pieces | {0, 1, 2, 3, 4}
    executed(preparation, run)
    model = load_model(preparation.storage, run)
    assert model.embedding.table.num_embeddings == pieces.size < whole.size


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["of the teacher", "of the student"])
def test_a_size_is_known_with_all_pieces_and_pruned_whichever_is_read(tmp_path, monkeypatch, rows):
    """A pruned model has the figures of the same model with all pieces, and the other way round."""
    monkeypatch.setattr(model_cost, "time_in_turns", called_once)
    collected = {}
    for pruned in (False, True):
        run_recipe, preparation = recipes(tmp_path, teacher="pruned" if pruned else "whole", pruned=pruned)
        run = student_of(preparation, run_recipe) if rows == "of the student" else preparation.teachers[0].run
        collected[pruned] = measure_cost(preparation.storage.uri, run, ("int8",)).figures
        assert (
            collected[pruned]["parameters_pruned" if pruned else "parameters_unpruned"]
            == collected[pruned]["parameters"]
        )
    assert collected[False]["parameters"] > collected[True]["parameters"]
    for name in ("parameters_unpruned", "parameters_pruned", "bytes_torch"):
        assert collected[False][name] == collected[True][name]
    # The dimensions of an array, among others, are written in more bytes where they are larger numbers.
    for name, limit in (("bytes", 16), ("bytes_int8", 64)):
        assert collected[False][name] == pytest.approx(collected[True][name], abs=limit)


def test_the_share_of_unknown_pieces():
    vocabulary = WordVocabulary(("a", "b"))
    assert unknown_share(
        vocabulary, pa.table({"tokens": [["a", "b", "c"], ["a", "a"], ["c"]]})
    ) == pytest.approx(2 / 6)


def test_a_classifier_of_sentences_does_not_label_words(tmp_path):
    run_recipe, _ = recipes(tmp_path)
    path = run_recipe.teachers.path
    wrong = recipe(
        teachers={"kind": "hf_sequence_classifier", "path": path, "fine_tune": True},
        objective={"kind": "gold"},
    )
    faults = dict(recipe_faults(wrong))
    assert "labels sentences" in faults["teachers", "kind"]
    assert not any(path[0] == "teachers" for path, _ in recipe_faults(run_recipe))


def test_a_vocabulary_is_of_the_tokenizer_that_is_there_now(tmp_path):
    """A second checkpoint at the same place has different pieces: what was stored of the first is not read for it."""
    first_recipe, first = recipes(tmp_path, pruned=True)
    folder = tmp_path / "checkpoint"
    before = student_of(first, first_recipe).vocabulary_id
    pieces = [*PIECES[:5], *reversed(PIECES[5:])]
    BertTokenizerFast(
        vocab={piece: row for row, piece in enumerate(pieces)}, do_lower_case=False
    ).save_pretrained(folder)
    run_recipe = first_recipe.model_copy()
    second_preparation = prepare(run_recipe, Storage(str(tmp_path / "store")))
    now = student_of(second_preparation, run_recipe).vocabulary_id
    assert now != before
    rows = open_vocabulary(second_preparation.storage, now).pieces
    fresh = run_recipe.teachers.tokenizer.build([])
    old = fresh.pieces(["an"]).values.tolist()
    assert [rows.checkpoint_ids[row] for row in rows.pieces(["an"]).values] == old or 1 in old
    moved_path = tmp_path / "moved"
    shutil.copytree(folder, moved_path)
    config = run_recipe.teachers.tokenizer
    moved = config.model_copy(update={"path": str(moved_path)})
    assert vocabulary_id(config, False, None, "c") == vocabulary_id(moved, False, None, "c")
