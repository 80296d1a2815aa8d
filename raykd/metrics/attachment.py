"""Attachment scores of dependency parses: shares of words with the right head, and with the right head and relation.

The words that count are a convention, and the choice changes scores by points: CoNLL-2017/2018 score all words, while
the tradition of the Penn Treebank leaves punctuation out. UD marks punctuation by the tag PUNCT and attaches it by the
relation `punct`. Where only characters are known, a word counts as punctuation if all its characters are punctuation
(Unicode category P).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from raykd.metrics.accuracy import check_aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

Punctuation = Literal["scored", "by_tag", "by_characters"]
"""Treatment of punctuation: `scored` counts it. The others leave out words that are punctuation by their gold part
of speech (PUNCT) or by their characters."""


@dataclass(frozen=True)
class Attachment:
    """Counts over scored words, and the scores in 0..1; 0 where no word is scored.

    Attributes:
        words: Scored words.
        heads: Words with the right head.
        labelled: Words with the right head and relation.
    """

    words: int
    heads: int
    labelled: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score."""
        return self.heads / self.words if self.words else 0.0

    @property
    def las(self) -> float:
        """Labelled attachment score."""
        return self.labelled / self.words if self.words else 0.0


def attachment(
    gold: Sequence[tuple[np.ndarray, np.ndarray]],
    predicted: Sequence[tuple[np.ndarray, np.ndarray]],
    scored: Sequence[np.ndarray] | None = None,
) -> Attachment:
    """Compare dependency trees; scores are micro-averaged over words.

    Args:
        gold: (heads, relations) of each sentence, each int [T]; head 0 is the root.
        predicted: The same, predicted.
        scored: Mask of the words that count, bool [T] for each sentence; None counts all words.

    Returns:
        Counts of words, right heads, and right heads with right relations.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned([heads_T for heads_T, _ in gold], [heads_T for heads_T, _ in predicted], "words")
    words = heads = labelled = 0
    for number, ((heads_T, relations_T), (predicted_heads_T, predicted_relations_T)) in enumerate(
        zip(gold, predicted, strict=True)
    ):
        counted_T = np.ones(len(heads_T), bool) if scored is None else scored[number]
        right_T = (heads_T == predicted_heads_T) & counted_T
        words += int(counted_T.sum())
        heads += int(right_T.sum())
        labelled += int((right_T & (relations_T == predicted_relations_T)).sum())
    return Attachment(words, heads, labelled)


def is_punctuation(word: str) -> bool:
    """Return True if all characters of a word are punctuation (Unicode categories P…), as evaluations on PTB require.

    Args:
        word: A word; the empty word is no punctuation.
    """
    return bool(word) and all(unicodedata.category(character).startswith("P") for character in word)
