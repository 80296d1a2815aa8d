"""The common part of all vocabularies: words are split into pieces, and a sentence is the pieces of its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from raykd.corpora.sentence import SEPARATOR
from raykd.forms.ragged import Ragged, offsets_from_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

CONTINUING = "##"
"""Prefix of WordPieces that continue a word."""


@dataclass(frozen=True)
class Special:
    """The ids of special pieces, which are no part of a word.

    Vocabularies of words and of WordPieces alone have no prefix, suffix, separator or mask; their separator is a
    word.

    Attributes:
        padding: Fills a batch.
        unknown: Replaces a word without a piece.
        prefix: Put before every sentence.
        suffix: Put after every sentence.
        separator: Put between the texts of a pair.
        mask: Hides a piece.
    """

    padding: int = 0
    unknown: int = 1
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    separator: tuple[int, ...] = ()
    mask: int | None = None


class Vocabulary(Protocol):
    """A vocabulary of pieces."""

    @property
    def size(self) -> int:
        """One more than the largest id: the number of rows of an embedding."""
        ...

    @property
    def special(self) -> Special:
        """The ids of special pieces."""
        ...

    def pieces(self, words: Sequence[str]) -> Ragged:
        """Return one row of int32 ids per word; a word without a piece is read at the last piece of the prefix."""
        ...

    def to_json(self) -> str:
        """Return the vocabulary as JSON, read by `raykd.corpora.vocabulary.vocabulary_from_json`."""
        ...


def split_words(
    tokenizer: Tokenizer, words: Sequence[str], unknown: int, separator: Sequence[int] = ()
) -> Ragged:
    """Return the pieces of single words, without special tokens; a word without any piece is unknown.

    Args:
        tokenizer: Tokenizer of the vocabulary.
        words: Words to split.
        unknown: Id of the unknown piece.
        separator: Pieces of the word between two texts; empty: it is split like any word.
    """
    encodings = tokenizer.encode_batch([[w] for w in words], is_pretokenized=True, add_special_tokens=False)
    rows = [encoding.ids or [unknown] for encoding in encodings]
    if separator:
        rows = [[*separator] if word == SEPARATOR else row for word, row in zip(words, rows, strict=True)]
    offsets = offsets_from_lengths(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
    return Ragged(np.fromiter((i for row in rows for i in row), np.int32, int(offsets[-1])), offsets)
