"""Code duplicated in `serving/`, which ships alone, agrees with the room that the original belongs to."""

from __future__ import annotations

import pytest

from raykd.corpora import sentence
from raykd.forms import utterance_marks
from raykd.forms.tree import codes
from raykd.serving import labeller
from raykd.storage import layout

TWINS = {
    "SEPARATOR": (sentence.SEPARATOR, labeller.SEPARATOR),
    "UTTERANCE": (utterance_marks.UTTERANCE, labeller.UTTERANCE),
    "INTENT": (utterance_marks.INTENT, labeller.INTENT),
    "UPOS": (codes.UPOS, labeller.UPOS),
    "files of an export": (
        (layout.CARD, layout.ONNX, layout.LABELS, layout.VOCABULARY, layout.WEIGHTS),
        (labeller.CARD, labeller.FLOAT32, labeller.LABELS, labeller.VOCABULARY, labeller.WEIGHTS),
    ),
}
PAIRS = (
    ["It", "rains", "\t", "It", "is", "wet"], ["It", "rains"], ["\t"], ["a", "\t"], ["\t", "b"],
    ["a", "\t", "b", "\t", "c"], ["a\tb"], [],
)  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_both_have_the_same(name):
    ours, served = TWINS[name]
    assert ours == served


def said(check, words):
    try:
        check(words)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("words", PAIRS, ids=repr)
def test_both_refuse_the_same_pairs_in_the_same_words(words):
    assert said(sentence.check_pair, words) == said(labeller.check_pair, words)


def test_some_pairs_are_refused_and_some_are_not():
    assert {said(sentence.check_pair, words) is None for words in PAIRS} == {True, False}
