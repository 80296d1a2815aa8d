"""The training text of teachers, and the text that their signals are for."""

from __future__ import annotations

import pytest

from raykd.corpora.corpus import open_corpus, read_corpus
from raykd.errors import CorpusError
from raykd.recipes.recipe import Recipe
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from tests.training.small import TREE, recipe


def _texts(table) -> set[tuple[str, ...]]:
    return {tuple(tokens) for tokens in table["tokens"].to_pylist()}


def test_teachers_are_trained_on_more_sentences_than_students(tmp_path):
    run_recipe = recipe(corpus={"cap": 6}, teacher_corpus={"cap": None})
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    assert ready.corpus.parts["train"].num_rows == 12
    for teacher in ready.teachers:
        taught = open_corpus(ready.storage, teacher.run.corpus_id)
        assert taught.parts["train"].num_rows == 24
        held_out = _texts(ready.corpus.parts["dev"]) | _texts(ready.corpus.parts["test"])
        assert not _texts(taught.parts["train"]) & held_out
        student_corpus = ready.corpus.select_languages(teacher.languages)
        assert taught.parts["test"].equals(student_corpus.parts["test"])
        # Its signals are for the students' text, not for what it was trained on.
        students = [student_corpus.parts[part] for part in ("train", "unlabelled")]
        assert len(teacher.text) == sum(table.num_rows for table in students)


def test_without_a_corpus_of_their_own_teachers_share_the_students(tmp_path):
    ready = prepare(recipe(teachers={"scope": "all"}), Storage(str(tmp_path)))
    assert [teacher.run.corpus_id for teacher in ready.teachers] == [ready.corpus_id]


def test_other_tags_are_refused(tmp_path):
    calls = []

    def other_tags(config):
        corpus = read_corpus(config)
        calls.append(config.cap)
        if config.cap is None:
            return corpus
        fewer_tags = type(corpus.tag_set)(corpus.tag_set.tags[:-4], corpus.tag_set.form)
        return type(corpus)(fewer_tags, corpus.languages, corpus.parts, corpus.report)

    run_recipe = recipe(corpus={"cap": 6}, teacher_corpus={"cap": None})
    with pytest.raises(CorpusError, match="different tags"):
        prepare(run_recipe, Storage(str(tmp_path)), other_tags)
    assert calls == [6, None]


def test_drawn_dev_and_test_do_not_go_with_it():
    split = {"split": {"train": 3, "dev": 1, "test": 1}, "cap": 20}
    drawn = recipe(corpus=split, teacher_corpus={"cap": None})
    assert [path for path, _ in recipe_faults(drawn)] == [("teacher_corpus", "cap")]


def test_word_dropout_needs_an_unknown_piece_of_raykds_own(tmp_path):
    teacher = {"kind": "hf_token_classifier", "path": str(tmp_path)}
    student = {"word_dropout": 0.1, "vocabulary": {"kind": "teacher"}}
    assert not recipe_faults(recipe(student=student))
    (fault,) = recipe_faults(recipe(teachers=teacher, student=student))
    assert fault[0] == ("student", "word_dropout")


def test_given_teachers_have_no_training(tmp_path):
    teacher = {"kind": "hf_token_classifier", "path": str(tmp_path)}
    run_recipe = recipe(teachers=teacher, teacher_corpus={"cap": None})
    assert ("teacher_corpus",) in [path for path, _ in recipe_faults(run_recipe)]


def test_text_without_labels_that_turns_out_to_be_missing(tmp_path):
    """`unlabelled: rest` is asked for, and the cap leaves nothing."""
    for part, words in (("train", "abcd"), ("dev", "ef"), ("test", "gh")):
        (tmp_path / f"{part}.txt").write_text("".join(f"{word} B-LOC\n\n" for word in words))
    parts = {part: f"{part}.txt" for part in ("train", "dev", "test")}
    corpus = {
        "source": "conll",
        "root": str(tmp_path),
        "languages": ("en",),
        "cap": 100,
        "unlabelled": "rest",
        **parts,
    }
    gold, hidden = {"kind": "gold"}, {"kind": "representation", "layer": 1}
    tree = {key: value for key, value in TREE.items() if key not in ("objective", "corpus")}
    mix = {"kind": "mix", "parts": ({"objective": gold}, {"objective": hidden, "text": "unlabelled"})}
    for stages in (({"objective": hidden, "text": "unlabelled"},), ({"objective": mix},)):
        run_recipe = Recipe.model_validate({**tree, "corpus": corpus, "stages": stages})
        assert not recipe_faults(run_recipe)
        ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
        with pytest.raises(
            CorpusError,
            match=r"trained on unlabelled text, .*none of en; name the text in corpus\.unlabelled",
        ):
            student_runs(run_recipe, ready)
