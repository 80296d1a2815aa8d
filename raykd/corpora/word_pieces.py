"""What all vocabularies share: they split words into pieces, and a sentence is the pieces of its words."""

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
"""Before the pieces that continue a word, in WordPiece."""


@dataclass(frozen=True)
class Special:
    """The ids that are no piece of a word: padding fills a batch, unknown replaces what has no piece, prefix and suffix
    are put around every sentence, separator between the texts of a pair, and the mask hides a piece (vocabularies of
    words and of WordPieces alone have none of these four; the separator is a word of theirs).
    """

    padding: int = 0
    unknown: int = 1
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    separator: tuple[int, ...] = ()
    mask: int | None = None


class Vocabulary(Protocol):
    """What every vocabulary can do."""

    @property
    def size(self) -> int:
        """One more than the largest id: the rows an embedding needs."""
        ...

    @property
    def special(self) -> Special:
        """The ids that are no piece of a word."""
        ...

    def pieces(self, words: Sequence[str]) -> Ragged:
        """One row of int32 ids for each word; one that has no piece is read at the last of the prefix."""
        ...

    def to_json(self) -> str:
        """All of it as JSON; `raykd.corpora.vocabulary.from_json` reads it."""
        ...


def split_words(
    tokenizer: Tokenizer, words: Sequence[str], unknown: int, separator: Sequence[int] = ()
) -> Ragged:
    """The pieces of each word alone, without special tokens; a word without any piece is unknown. Those of what is
    between two texts are `separator`, where it is given.
    """
    encodings = tokenizer.encode_batch([[w] for w in words], is_pretokenized=True, add_special_tokens=False)
    rows = [encoding.ids or [unknown] for encoding in encodings]
    if separator:
        rows = [[*separator] if word == SEPARATOR else row for word, row in zip(words, rows, strict=True)]
    offsets = offsets_from_lengths(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
    return Ragged(np.fromiter((i for row in rows for i in row), np.int32, int(offsets[-1])), offsets)
