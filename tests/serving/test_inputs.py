"""Input other than text is refused in a sentence; iterables are read once."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

import raykd
from raykd.serving.labeller import LabellerError, load
from raykd.serving.server import create_app
from tests.serving.trained import get, of_texts, post, served

SENTENCES = [["Ada", "lives", "in", "London"], ["Paris"], ["New", "York", "!"]]


def once(sentences):
    """The sentences as iterators of iterators."""
    return (iter(words) for words in sentences)


@pytest.fixture(scope="module")
def label(names):
    return raykd.load(names)


def test_generators_give_what_lists_give(label):
    expected, shares = label.label(SENTENCES), label.probabilities(SENTENCES)
    assert [len(labels) for labels in expected] == [4, 1, 3]
    for inputs in (
        once(SENTENCES),
        map(tuple, SENTENCES),
        np.array([["Ada", "lives"]]),
        [map(str, ["Ada", "lives"])],
    ):
        actual = label.label(inputs)
        assert actual == expected if len(actual) > 1 else label.label([["Ada", "lives"]])
    for first, second in zip(label.probabilities(once(SENTENCES)), shares, strict=True):
        np.testing.assert_array_equal(first, second)
    assert list(label(once(SENTENCES))) == list(label(SENTENCES))


def test_so_do_they_of_a_parser(by_pos):
    parser = raykd.load(by_pos[1])
    words, pos = [["the", "old", "dog", "sees"]], [["DET", "ADJ", "NOUN", "VERB"]]
    assert parser.parse(once(words), once(pos)) == parser.parse(words, pos)
    pairs = [list(zip(*both, strict=True)) for both in zip(words, pos, strict=True)]
    assert list(parser(once(pairs))) == list(parser(pairs))


@pytest.mark.parametrize(
    ("sentences", "kind", "problem"),
    [
        ([["a", None]], TypeError, r"a word is a string, got None in \['a', None\]"),
        ([["a", math.nan]], TypeError, "a word is a string, got nan"),
        ([[b"a"]], TypeError, "a word is a string, got b'a'"),
        ([[1]], TypeError, "a word is a string, got 1"),
        ([["a"], ["b", "\ud83d"]], ValueError, r"'b \\ud83d' is not Unicode: it has half of a surrogate pair at"),
        ([["a"], []], ValueError, "a sentence has no words; remove it"),
        ([None], TypeError, "a sentence is a list of words, got None"),
        ([b"Ada"], TypeError, r"a sentence is a list of words, got b'Ada'; decode it: text.decode\('utf-8'\)"),
        ("London", TypeError, "sentences are lists of words, got the string 'London'; call the labeller itself"),
        (["London"], TypeError, "a sentence is a list of words, got the string 'London'; call the labeller itself"),
        ({"tokens": []}, TypeError, "sentences are lists of words, got {'tokens'"),
        (None, TypeError, "sentences are lists of words, got None"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_are_no_words_is_refused(label, sentences, kind, problem):
    for call in (label.label, label.probabilities):
        with pytest.raises(kind, match=problem):
            call(sentences)


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        ("broken \ud83d emoji", ValueError, "half of a surrogate pair at character 7; remove it, or decode"),
        (["ok", None], TypeError, "a text is a string, or a list of its words, got None"),
        (["ok", math.nan], TypeError, "a text is a string, or a list of its words, got nan"),
        (["ok", b"no"], TypeError, r"or a list of its words, got b'no'; decode it: text.decode\('utf-8'\)"),
        ([["a", None]], TypeError, "a word is a string, got None"),
        ([[("a", "DET", "x")]], TypeError, "a word is a string, or a pair of a word and its part of speech"),
        (b"Ada", TypeError, r"give a text \(a string\), or a list of texts; got b'Ada'; decode it"),
        (None, TypeError, r"give a text \(a string\), or a list of texts; got None"),
        ({"text": "Ada"}, TypeError, "or a list of texts; got {'text': 'Ada'}"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_text_is_refused(label, names, text, kind, problem):
    with pytest.raises(kind, match=problem):
        list(label(text))
    if not isinstance(text, dict):  # which is a pair of texts there
        with pytest.raises(kind, match=problem):
            raykd.pipeline("ner", names)(text)


def test_a_server_refuses_it_too(names):
    bodies = (
        {"texts": ["broken \ud83d emoji"]}, {"tokens": [["a"], ["\ud83d"]]}, {"texts": [None]},
        {"texts": [math.nan]}, {"tokens": [["a", None]]}, {"\ud83d": ["a"]}, {"tokens": [["a"]], "pos": [["\ud83d"]]},
    )  # fmt: skip
    with served(create_app(names)) as at:
        for body in bodies:
            status, answer = post(f"{at}/predict", body)
            assert (status, type(answer["detail"])) == (422, str), body
        assert "half of a surrogate pair" in post(f"{at}/predict", bodies[0])[1]["detail"]


def test_the_forms_of_unicode_get_the_same_labels_and_offsets_of_the_text_as_it_came(label):
    text = "Zoë Müller lives in São Paulo, Zu\u00adrich."
    composed, apart = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    first, second = label([composed, apart])
    assert len(apart) > len(composed)
    assert [(word.label, word.probability) for word in first.words] == [
        (word.label, word.probability) for word in second.words
    ]
    for labelled in (first, second):
        assert all(
            labelled.text[word.start : word.end] == word.text for word in (*labelled.words, *labelled.spans)
        )
    assert [unicodedata.normalize("NFC", word.text) for word in second.words] == [
        word.text for word in first.words
    ]


def test_probabilities_add_up_and_are_the_same_alone_and_together(label, names):
    draw = random.Random(1)
    vocabulary = [
        "Ada",
        "Marie",
        "works",
        "for",
        "Arden",
        "Energy",
        "in",
        "London",
        ".",
        "Jürgen",
        "3.5",
        "東",
        "αβγ",
    ]
    sentences = [draw.choices(vocabulary, k=draw.randint(1, 60)) for _ in range(60)]
    sentences.append(draw.choices(vocabulary, k=3000))
    together, labels = label.probabilities(sentences), label.label(sentences)
    for words, shares, sentence_labels in zip(sentences, together, labels, strict=True):
        assert shares.sum(1) == pytest.approx(1, abs=1e-9)
        assert 0 <= shares.min() <= shares.max() <= 1
        assert label.label([words]) == [sentence_labels]
        np.testing.assert_allclose(label.probabilities([words])[0], shares, atol=1e-6)
    for labelled in label(" ".join(words) for words in sentences):
        assert all(0 < span.probability <= 1 for span in (*labelled.words, *labelled.spans))
    script = "import json, sys, raykd; print(raykd.load(sys.argv[1]).label(json.loads(sys.argv[2])))"
    for seed in ("0", "7"):
        command = [sys.executable, "-c", script, str(names), json.dumps(sentences[:9])]
        variables = {**os.environ, "PYTHONHASHSEED": seed}
        process = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        assert process.stdout.strip() == str(labels[:9])


def test_a_split_at_white_space_keeps_words_whole(names):
    text = " @ada met\u00a0O'Neill, COVID-19! \u200b\n"
    assert [word.text for word in raykd.load(names, split="whitespace")(text).words] == [
        "@ada", "met", "O'Neill,", "COVID-19!",
    ]  # fmt: skip
    assert "@" in [word.text for word in raykd.load(names, split="signs")(text).words]
    with pytest.raises(LabellerError, match="split: 'space' is unknown; use 'signs' or 'wh"):
        raykd.load(names, split="space")


def test_a_server_splits_as_its_environment_says(names, monkeypatch):
    text = {"texts": ["@ada lives"]}
    for split, words in ((None, ["@", "ada", "lives"]), ("whitespace", ["@ada", "lives"])):
        if split is not None:
            monkeypatch.setenv("RAYKD_SPLIT", split)
        with served(create_app(names)) as at:
            labelled = post(f"{at}/predict", text)[1]["results"][0]
            assert [word["text"] for word in labelled["words"]] == words
            assert json.loads(get(f"{at}/health"))["split"] == (split or "signs")


def test_an_export_of_an_earlier_version_is_split_at_signs(names, tmp_path):
    folder = shutil.copytree(names, tmp_path / "earlier")
    card = json.loads((folder / "export.json").read_text())
    (folder / "export.json").write_text(
        json.dumps({key: card[key] for key in card.keys() - {"split", "splitting"}})
    )
    assert load(folder).split == "signs"


def test_a_labeller_is_sent_to_other_processes(by_pos, tagger):
    label = load(by_pos[1], pos=tagger, split="whitespace")
    sent = pickle.loads(pickle.dumps(label))
    assert (sent.split, sent.tagger.folder) == ("whitespace", tagger)
    assert sent("the old dog sees") == label("the old dog sees")


def test_whole_texts_are_split_as_in_training(tmp_path):
    folder = of_texts(tmp_path)
    assert raykd.load(folder).split == "whitespace"
    with pytest.raises(LabellerError, match=r"labels whole texts.*leave split out"):
        raykd.load(folder, split="signs")
