"""Pieces of different vocabularies of one kind: which row of an embedding belongs to which piece."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer, decoders

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import WordPieceVocabulary, WordVocabulary
from raykd.corpora.word_pieces import CONTINUING

if TYPE_CHECKING:
    from jaxtyping import Int

    from raykd.corpora.word_pieces import Vocabulary

MARKS = (CONTINUING, "▁")
"""What stands before pieces: WordPiece marks those that continue a word, SentencePiece those that begin one."""


def rows_in(other: Vocabulary, own: Vocabulary) -> Int[np.ndarray, " piece"]:
    """The row in `other` of each piece of `own`, -1 where it lacks the piece.

    Pieces of a checkpoint are the same by their ids in the checkpoint, of which both may have others; words and
    WordPieces by their text. Padding and unknown are pieces too. A vocabulary of another kind lacks all of them.
    """
    if type(other) is not type(own):
        return np.full(own.size, -1)
    rows = {key: row for row, key in enumerate(_keys(other))}
    return np.array([rows.get(key, -1) for key in _keys(own)])


def checkpoint_rows(own: HFVocabulary) -> Int[np.ndarray, " piece"]:
    """The row of each piece in the checkpoint's own embedding."""
    return np.arange(own.size) if own.kept is None else np.array(own.kept)


def piece_texts(own: Vocabulary) -> list[str]:
    """The text of each piece without its mark; empty where it has none."""
    if isinstance(own, WordVocabulary):
        return ["", "", *own.words]
    if isinstance(own, WordPieceVocabulary):
        return [_unmarked(entry) for entry in own.entries]
    if isinstance(own, HFVocabulary):
        tokenizer = Tokenizer.from_str(own.definition)
        tokens = [tokenizer.id_to_token(row) or "" for row in range(own.size)]
        if '"ByteLevel"' in own.definition:
            # Each character of such a piece stands for a byte, and the space is one of them.
            return [decoders.ByteLevel().decode([token]).strip() for token in tokens]
        return [_unmarked(token) for token in tokens]
    raise TypeError(f"{type(own).__name__} has no pieces with a text")


def _keys(vocabulary: Vocabulary) -> Sequence[Hashable]:
    if isinstance(vocabulary, HFVocabulary):
        return checkpoint_rows(vocabulary).tolist()
    if isinstance(vocabulary, WordVocabulary):
        return (0, 1, *vocabulary.words)
    if isinstance(vocabulary, WordPieceVocabulary):
        return vocabulary.entries
    raise TypeError(f"{type(vocabulary).__name__} has no pieces of its own")


def _unmarked(piece: str) -> str:
    for mark in MARKS:
        if piece.startswith(mark):
            return piece.removeprefix(mark)
    return piece
