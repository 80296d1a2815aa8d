"""Pipelines in the form of Transformers', beside Transformers' own on the same checkpoint."""

from __future__ import annotations

import numbers

import pytest
import transformers

import raykd
from raykd.serving.labeller import LabellerError
from tests.serving.trained import of_texts, of_words
from tests.teachers.checkpoints import make_checkpoint

TEXTS = ["Ada Lovelace lives in London.", "", "New York, New York!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pipelines")


@pytest.fixture(scope="module")
def texts(folder):
    (folder / "texts").mkdir()
    return of_texts(folder / "texts")


def form(entry):
    """Keys in order, with the kinds of their values: number, whole number or string."""
    kinds = (int, numbers.Real, str)
    return {key: next(kind for kind in kinds if isinstance(value, kind)) for key, value in entry.items()}


def theirs(task, checkpoint, **options):
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = {
        "token-classification": transformers.AutoModelForTokenClassification,
        "text-classification": transformers.AutoModelForSequenceClassification,
    }[task].from_pretrained(checkpoint)
    return transformers.pipeline(task, model=model, tokenizer=tokenizer, **options)


@pytest.mark.parametrize("strategy", ["none", "simple"])
def test_the_form_is_that_of_transformers(folder, names, strategy):
    raykd_pipeline = raykd.pipeline("token-classification", names, aggregation_strategy=strategy)
    their_pipeline = theirs(
        "token-classification",
        make_checkpoint(folder / f"c-{strategy}", seed=2),
        aggregation_strategy=strategy,
    )
    their_entries, raykd_entries = their_pipeline("abc dbo j"), raykd_pipeline(TEXTS[0])
    assert their_entries
    assert raykd_entries
    assert {tuple(form(entry).items()) for entry in raykd_entries} == {
        tuple(form(entry).items()) for entry in their_entries
    }
    both = (raykd_pipeline(TEXTS), their_pipeline(["abc dbo j", "j"]))
    assert [[type(entry) for entry in actual] for actual in both] == [[list] * 3, [list] * 2]
    assert raykd_pipeline(iter(TEXTS)) == raykd_pipeline(TEXTS)


def test_of_one_label_for_a_text_too(folder, texts):
    raykd_pipeline = raykd.pipeline("text-classification", texts)
    checkpoint = make_checkpoint(folder / "sentences", labels=("good", "bad"), head="sequence")
    their_pipeline = theirs("text-classification", checkpoint)
    assert form(raykd_pipeline("a dull film")[0]) == form(their_pipeline("abc")[0])
    assert len(raykd_pipeline("a dull film")) == len(their_pipeline("abc")) == 1
    assert (
        [type(entry) for entry in raykd_pipeline(["a", "b"])]
        == [type(entry) for entry in their_pipeline(["abc", "j"])]
        == [dict] * 2
    )


def test_a_text_with_one_label_is_split_at_white_space_as_in_training(texts):
    label = raykd.load(texts)
    (labelled,) = label(["a dull,film !"])
    as_trained, apart = (
        label.probabilities([words])[0].max()
        for words in (["a", "dull,film", "!"], ["a", "dull", ",", "film", "!"])
    )
    assert labelled.probability == pytest.approx(as_trained, abs=1e-5)
    assert labelled.probability != pytest.approx(apart, abs=1e-5)


def test_entries_are_those_of_the_labeller(names):
    label = raykd.load(names)
    words = raykd.pipeline("token-classification", names)(TEXTS)
    spans = raykd.pipeline("ner", names, aggregation_strategy="simple", batch_size=2)(TEXTS)
    for labelled, entries, groups in zip(label(TEXTS), words, spans, strict=True):
        labelled_words = [
            (number, word) for number, word in enumerate(labelled.words, start=1) if word.label != "O"
        ]
        assert [(e["index"], e["word"], e["entity"], e["start"], e["end"]) for e in entries] == [
            (number, word.text, word.label, word.start, word.end) for number, word in labelled_words
        ]
        assert [(g["entity_group"], g["word"], g["start"], g["end"]) for g in groups] == [
            (span.label, span.text, span.start, span.end) for span in labelled.spans
        ]
        assert [e["score"] for e in entries] == pytest.approx(
            [word.probability for _, word in labelled_words], rel=1e-4
        )
        assert [g["score"] for g in groups] == pytest.approx(
            [s.probability for s in labelled.spans], rel=1e-4
        )


def test_labels_of_single_words_are_groups_of_one_word(tmp_path):
    actual = raykd.pipeline("token-classification", of_words(tmp_path), aggregation_strategy="simple")(
        "the dog"
    )
    assert [(entry["word"], entry["start"], entry["end"]) for entry in actual] == [
        ("the", 0, 3),
        ("dog", 4, 7),
    ]
    assert all(entry["entity_group"] in ("DET", "NOUN", "NUM", "PUNCT", "VERB") for entry in actual)


def test_what_does_not_fit_is_refused(names, texts, tmp_path):
    with pytest.raises(LabellerError, match=r"one label for each word.*use 'token-classification'"):
        raykd.pipeline("text-classification", names)
    with pytest.raises(LabellerError, match=r"one label for each sentence.*use 'text-classification'"):
        raykd.pipeline("ner", texts)
    with pytest.raises(ValueError, match=r"unknown task 'translation' \(token-classification, ner"):
        raykd.pipeline("translation", names)
    with pytest.raises(ValueError, match=r"unknown aggregation_strategy 'mean' \(none, simple\)"):
        raykd.pipeline("ner", names, aggregation_strategy="mean")
    for strategy in ("first", "average", "max"):
        with pytest.raises(
            ValueError, match=rf"aggregation_strategy '{strategy}' joins the labels of.*'simple'"
        ):
            raykd.pipeline("ner", names, aggregation_strategy=strategy)
    with pytest.raises(TypeError, match="unexpected keyword argument 'device'"):
        raykd.pipeline("ner", names, device=-1)
    with pytest.raises(ValueError, match=r"a pair of texts is .*, got \{'txt': 'Ada'\}"):
        raykd.pipeline("ner", names)({"txt": "Ada"})
    with pytest.raises(LabellerError, match="there is no such file"):
        raykd.pipeline("ner", tmp_path)
