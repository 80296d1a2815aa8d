"""Reading answers in the forms in which annotators write them."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.answers import (
    AnswerError,
    AnswerReading,
    LabelNames,
    read_answer,
    record_text,
    text_key,
    visible_text,
    word_places,
)
from raykd.corpora.answers.labellings import UnmappedError

WORDS = ["Ada", "Lovelace", "met", "Ada", "in", "Londonderry", ",", "London", "."]
TEXT = "Ada Lovelace met Ada in Londonderry, London."
BOTH = "B-PER E-PER O S-PER O O O S-LOC O"
NAMES = {"PERSON": "PER", "MISC": "O", "SECRET": None}


def reading(labels=("PER", "LOC"), names=NAMES, *, bioes=True, **settings) -> AnswerReading:
    return AnswerReading(LabelNames.of(labels, names), bioes, **settings)


def read(record, words=WORDS, **settings):
    """The labellings of an answer as text → weight, and its notes."""
    answer = read_answer(record, words, reading(**settings))
    weights = {" ".join(item.tags): math.exp(item.log_weight) for item in answer.labellings}
    return weights, dict(answer.notes)


SPANS = [[0, 12, "PERSON"], [17, 20, "PER"], [37, 43, "LOC"]]
FORMS = {
    "raykd": {"text": TEXT, "spans": [{"start": a, "end": b, "label": x, "score": 0.5} for a, b, x in SPANS]},
    "doccano": {"id": 1, "text": TEXT, "label": SPANS, "Comments": []},
    "prodigy": {
        "text": TEXT, "answer": "accept",
        "spans": [{"start": a, "end": b, "label": x, "token_start": 0, "token_end": 1} for a, b, x in SPANS],
    },
    "label studio": {
        "id": 1, "data": {"text": TEXT},
        "annotations": [
            {"result": [
                {"type": "labels", "from_name": "label", "value": {"start": a, "end": b, "labels": [x]}}
                for a, b, x in SPANS
            ]}
        ],
    },
    "transformers": {
        "text": TEXT,
        "entities": [
            {"entity_group": x, "score": 0.99, "word": TEXT[a:b], "start": a, "end": b} for a, b, x in SPANS
        ],
    },
    "gliner": {
        "text": TEXT,
        "entities": [{"start": a, "end": b, "text": TEXT[a:b], "label": x, "score": 0.9} for a, b, x in SPANS],
    },
    "gliner's data": {"tokenized_text": WORDS, "ner": [[0, 1, "PERSON"], [3, 3, "PER"], [7, 7, "LOC"]]},
    "spacy 2": [TEXT, {"entities": SPANS}],
    "words": {"tokens": WORDS, "labels": ["B-PER", "I-PER", "O", "B-PERSON", "O", "O", "O", "B-LOC", "O"]},
    "bioes": {"tokens": WORDS, "ner_tags": BOTH.split()},
    "other words": {
        "tokens": ["Ada Lovelace", "met", "Ada", "in", "London", "derry,", "London", "."],
        "labels": ["PER", "O", "PER", "O", "O", "O", "LOC", "O"],
    },
    "mentions": {"text": TEXT, "mentions": [{"text": x, "label": y} for x, y in (
        ("London", "LOC"), ("Ada", "PER"), ("Ada Lovelace", "PERSON"))]},
    "mentions by type": {"text": TEXT, "mentions": {"PER": ["Ada Lovelace", "Ada"], "LOC": "London"}},
    "pairs": {"text": TEXT, "mentions": [["Ada  Lovelace", "PER"], ["ADA", "PER"], ["london", "LOC"]]},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read_as_it_is_written(form):
    record = json.loads(json.dumps(FORMS[form]))
    assert text_key(record_text(record)) == text_key(WORDS)
    weights, notes = read(record)
    assert weights == {BOTH: 1.0}
    assert not notes.keys() - {"widened"}


def test_samples_are_merged_sorted_and_their_repeats_add_up():
    samples = [
        {"PER": ["Ada"]},
        {"spans": [[37, 43, "LOC"]], "weight": 3},
        [["London", "LOC"]],
        {"mentions": [], "log_weight": math.log(1.5)},
        {"labels": ["B-PER", "O", "O", "B-PER", "O", "O", "O", "O", "O"]},
        [[0, 3, "PER"], [17, 20, "PERSON"]],
    ]
    weights, _ = read({"text": TEXT, "samples": samples})
    assert list(weights.items()) == [
        ("O O O O O O O S-LOC O", pytest.approx(4)),
        ("S-PER O O S-PER O O O O O", pytest.approx(3)),
        ("O O O O O O O O O", pytest.approx(1.5)),
    ]


def test_probabilities_of_long_answers_do_not_underflow():
    samples = [{"mentions": [["Ada", "PER"]], "log_weight": -901}] * 2 + [
        {"mentions": [], "log_weight": -900}
    ]
    first, second = read_answer({"text": TEXT, "samples": samples}, WORDS, reading()).labellings
    assert first.log_weight == -900
    assert second.log_weight == pytest.approx(-901 + math.log(2))


def test_offsets_count_in_the_text_where_there_are_words_too():
    text = "Ada  Lovelace   met Ada in Londonderry, London."
    weights, _ = read(
        {"text": text, "tokens": WORDS, "spans": [[0, 13, "PER"], [20, 23, "PER"], [40, 46, "LOC"]]}
    )
    assert weights == {BOTH: 1.0}


def test_an_unusable_sample_is_dropped_and_the_reason_kept():
    samples = [[["Ada", "PER"]], "no idea", {"labels": ["O"]}, {"spans": [[0, 99, "PER"]]}, {"weight": -1}]
    answer = read_answer({"text": TEXT, "samples": samples}, WORDS, reading())
    assert len(answer.labellings) == 1
    assert len(answer.unusable) == 4
    assert "1 labels for 9 words" in answer.unusable[1]
    with pytest.raises(AnswerError, match="sample 1"):
        read_answer({"text": TEXT, "samples": samples[1:]}, WORDS, reading())
    with pytest.raises(AnswerError, match="weight 0"):
        read_answer({"text": TEXT, "samples": [{"spans": [], "weight": 0}]}, WORDS, reading())


def test_invented_mentions_are_counted_and_the_others_kept():
    weights, notes = read({"text": TEXT, "mentions": [["Bob", "PER"], ["London", "LOC"], ["Paris", "LOC"]]})
    assert weights == {"O O O O O O O S-LOC O": 1.0}
    assert notes == {"invented": 2}


def test_a_mention_takes_the_next_free_place_at_whole_words():
    weights, _ = read({"text": TEXT, "mentions": [["Ada", "PER"], ["Ada", "LOC"]]}, repeat="first")
    assert [*weights] == ["S-PER O O S-LOC O O O O O"]
    weights, notes = read({"text": TEXT, "mentions": [["Ada", "PER"]] * 5}, repeat="first")
    assert [*weights] == ["S-PER O O S-PER O O O O O"]
    assert not notes  # listed more often than it occurs, but not invented
    weights, notes = read({"text": TEXT, "mentions": [["derry", "LOC"]]})
    assert [*weights] == ["O O O O O S-LOC O O O"]
    assert notes == {"widened": 1}


def test_without_spaces_every_word_of_the_corpus_is_a_whole_word():
    words = ["北京", "和", "北京"]
    weights, _ = read({"text": "北京和北京", "mentions": [["北京", "LOC"]]}, words)
    assert [*weights] == ["S-LOC O S-LOC"]


def test_labels_of_other_names_are_none_or_leave_the_labelling_out():
    assert read({"text": TEXT, "spans": [[0, 3, "MISC"]]})[0] == {"O O O O O O O O O": 1.0}
    with pytest.raises(UnmappedError) as caught:
        read({"text": TEXT, "samples": [[["Ada", "DATE"]], []]})
    assert caught.value.label == "DATE"
    assert read({"text": TEXT, "spans": [[0, 3, "DATE"]]}, names={"*": "O"})[0] == {"O O O O O O O O O": 1.0}
    # null: the labelling is impossible, and the rest renormalised
    assert read({"text": TEXT, "samples": [[["Ada", "SECRET"]], [["London", "LOC"]]]})[0] == {
        "O O O O O O O S-LOC O": 1.0
    }
    with pytest.raises(AnswerError, match="left out"):
        read({"text": TEXT, "spans": [[0, 3, "SECRET"]]})
    assert LabelNames.of(["PER"], {"X": "PERS"}).faults() == ["'PERS' is no label of the corpus (PER)"]


def test_a_document_answers_for_each_of_its_sentences():
    document = "Bob slept.\n" + TEXT + " Ada left."
    record = {"text": document, "spans": [[0, 3, "PER"], [48, 54, "LOC"], [56, 59, "PER"]]}
    start = len(visible_text("Bob slept."))
    answer = read_answer(record, WORDS, reading(), start=start)
    assert " ".join(answer.labellings[0].tags) == "O O O O O O O S-LOC O"
    assert read_answer(record, ["Bob", "slept", "."], reading()).labellings[0].tags == ("S-PER", "O", "O")


def test_one_label_of_a_sentence():
    settings = {"labels": ("good", "bad"), "names": {"fine": "good"}, "bioes": False, "unit": "sentence"}
    assert read({"text": "not bad", "label": "fine"}, ["not", "bad"], **settings)[0] == {"good": 1.0}
    samples = ["good", "bad", {"label": "good", "weight": 2}]
    weights = read({"text": "not bad", "samples": samples}, ["not", "bad"], **settings)[0]
    assert weights == {"good": pytest.approx(3), "bad": pytest.approx(1)}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": TEXT}, "no spans"),
        ({"text": "other", "spans": []}, "no 'Ada'"),
        ({"text": TEXT, "spans": "none"}, "no list of spans"),
        ({"text": TEXT, "mentions": [["Ada"]]}, "expected a mention"),
        ({"text": TEXT, "mentions": [["Ada", 3]]}, "a text and a label"),
        ({"text": TEXT, "probabilities": [{"O": 1}]}, "1 distributions for 9 words"),
        ({"text": TEXT, "probabilities": [{"O": "x"}] * 9}, "a probability for each label"),
        ({"tokens": WORDS, "labels": ["O"] * 8}, "8 labels for 9 words"),
        ({"tokens": WORDS, "labels": ["B-PER", *["PER"] * 8]}, "'PER' is no tag"),
        ({"text": TEXT, "samples": []}, "no samples"),
        (7, "no text"),
    ],
)
def test_what_cannot_be_used_says_why(record, words):
    with pytest.raises(AnswerError, match=words):
        read_answer(record, WORDS, reading())


def test_a_tree_has_the_head_and_the_relation_of_each_word():
    settings = {"labels": ("root", "obj"), "names": {"dobj": "obj"}, "bioes": False, "trees": True}
    record = {"tokens": ["see", "it", "now"], "heads": [0, 1, 0], "labels": ["root", "dobj", "root"]}
    (tree,) = read_answer(record, record["tokens"], reading(**settings)).labellings
    assert tree.heads == (0, 1, 0)  # with two roots, as a parser that splits sentences gives them
    assert tree.tags == ("root", "obj", "root")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heads": None}, "no tree"),
        ({"labels": None}, "no tree"),
        ({"heads": [0, 1]}, "2 heads and 3 labels for 3 words"),
        ({"heads": [0, 4, 1]}, "the head of word 2 is 4"),
        ({"heads": [0, 2, 1]}, "the head of word 2 is 2"),
        ({"heads": [0, "1", 1]}, "the head of word 2 is '1'"),
        ({"heads": [0, 3, 2]}, "words 2, 3 are each other's heads"),
        ({"labels": ["root", "nsubj", "obj"]}, "'nsubj' is none of the corpus"),
        ({"tokens": ["se", "eit", "now"]}, "its words are others"),
    ],
)
def test_what_is_no_tree_says_why(changes, words):
    record = {"tokens": ["see", "it", "now"], "heads": [0, 1, 1], "labels": ["root", "obj", "obj"]} | changes
    settings = {"labels": ("root", "obj"), "names": {}, "bioes": False, "trees": True}
    with pytest.raises(AnswerError, match=words):
        read_answer(record, ["see", "it", "now"], reading(**settings))


@given(
    st.lists(st.text("ab\u00ad\u200b é", min_size=1, max_size=4), min_size=1, max_size=6),
    st.text(" \n\u00ad"),
)
def test_words_find_their_places_whatever_is_invisible(words, between):
    text = between.join(words)
    places = word_places(text, words)
    assert text_key(words) == text_key(text)
    for word, (first, behind) in zip(words, places, strict=True):
        assert visible_text(text[first:behind]) == visible_text(word)
