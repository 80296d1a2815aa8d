"""Attachment scores of dependency parses: the share of words with the right head, and with the right head and relation.

Which words count is a convention of its own, and changes scores by points: CoNLL-2017/2018 score every word, the Penn
Treebank's tradition leaves punctuation out. UD says what punctuation is by the tag PUNCT, the relation `punct` hangs it
up; where only characters are known, a word all of whose characters are punctuation (Unicode category P) counts as such.
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
"""Whether punctuation counts: `scored` it does; else words are left out that are punctuation by their gold
part of speech, PUNCT, or by their characters."""


@dataclass(frozen=True)
class Attachment:
    """Counts over words that are scored, and the scores in 0..1; 0 where no word is scored."""

    words: int
    heads: int
    """Words with the right head."""
    labelled: int
    """Words with the right head and relation."""

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
    """Compare (heads, relations) of sentences, each int [T] with head 0 for the root; micro-averaged over words.

    `scored`: which words count, bool [T] of each sentence; None counts all. Raises ValueError where sentences differ in
    number or length.
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
    """Whether all characters of a word are punctuation (Unicode's categories P…), as evaluations on PTB ask."""
    return bool(word) and all(unicodedata.category(character).startswith("P") for character in word)
