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


def matching_rows(source: Vocabulary, target: Vocabulary) -> Int[np.ndarray, " piece"]:
    """The row in `other` of each piece of `own`, -1 where it lacks the piece.

    Pieces of a checkpoint are the same by their ids in the checkpoint, of which both may have others; words and
    WordPieces by their text. Padding and unknown are pieces too. A vocabulary of another kind lacks all of them.
    """
    if type(source) is not type(target):
        return np.full(target.size, -1)
    rows = {key: row for row, key in enumerate(_piece_keys(source))}
    return np.array([rows.get(key, -1) for key in _piece_keys(target)])


def checkpoint_rows(vocabulary: HFVocabulary) -> Int[np.ndarray, " piece"]:
    """The row of each piece in the checkpoint's own embedding."""
    return (
        np.arange(vocabulary.size)
        if vocabulary.checkpoint_ids is None
        else np.array(vocabulary.checkpoint_ids)
    )


def piece_texts(vocabulary: Vocabulary) -> list[str]:
    """The text of each piece without its mark; empty where it has none."""
    if isinstance(vocabulary, WordVocabulary):
        return ["", "", *vocabulary.words]
    if isinstance(vocabulary, WordPieceVocabulary):
        return [_without_mark(entry) for entry in vocabulary.entries]
    if isinstance(vocabulary, HFVocabulary):
        tokenizer = Tokenizer.from_str(vocabulary.definition)
        tokens = [tokenizer.id_to_token(row) or "" for row in range(vocabulary.size)]
        if '"ByteLevel"' in vocabulary.definition:
            # Each character of such a piece stands for a byte, and the space is one of them.
            return [decoders.ByteLevel().decode([token]).strip() for token in tokens]
        return [_without_mark(token) for token in tokens]
    raise TypeError(f"{type(vocabulary).__name__} has no pieces with a text")


def _piece_keys(vocabulary: Vocabulary) -> Sequence[Hashable]:
    if isinstance(vocabulary, HFVocabulary):
        return checkpoint_rows(vocabulary).tolist()
    if isinstance(vocabulary, WordVocabulary):
        return (0, 1, *vocabulary.words)
    if isinstance(vocabulary, WordPieceVocabulary):
        return vocabulary.entries
    raise TypeError(f"{type(vocabulary).__name__} has no pieces of its own")


def _without_mark(piece: str) -> str:
    for mark in MARKS:
        if piece.startswith(mark):
            return piece.removeprefix(mark)
    return piece
