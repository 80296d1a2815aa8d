"""Attachment scores on counts done by hand."""

import numpy as np
import pytest

from raykd.metrics.attachment import attachment, is_punctuation

GOLD = [(np.array([2, 0, 2]), np.array([1, 0, 2])), (np.array([0]), np.array([0]))]


def test_heads_and_relations_are_counted_over_all_words():
    predicted = [(np.array([2, 0, 1]), np.array([2, 0, 2])), (np.array([0]), np.array([0]))]
    scores = attachment(GOLD, predicted)
    assert (scores.words, scores.heads, scores.labelled) == (4, 3, 2)
    assert (scores.uas, scores.las) == (0.75, 0.5)


def test_words_that_are_not_scored_do_not_count():
    predicted = [(np.array([3, 0, 1]), np.array([1, 0, 2])), (np.array([0]), np.array([1]))]
    scores = attachment(GOLD, predicted, [np.array([False, True, True]), np.array([True])])
    assert (scores.words, scores.heads, scores.labelled) == (3, 2, 1)


def test_without_a_scored_word_the_scores_are_zero():
    scores = attachment(GOLD[1:], GOLD[1:], [np.array([False])])
    assert (scores.uas, scores.las) == (0.0, 0.0)


def test_sentences_that_differ_are_refused():
    with pytest.raises(ValueError, match="2 gold sentences but 1"):
        attachment(GOLD, GOLD[:1])
    with pytest.raises(ValueError, match=r"sentence 0 .* 3 gold but 1"):
        attachment(GOLD[:1], GOLD[1:])


@pytest.mark.parametrize(
    ("word", "expected"), [("...", True), ("«", True), ("$", False), ("a.", False), ("", False)]
)
def test_punctuation_by_characters(word, expected):
    assert is_punctuation(word) is expected
