"""Rows of embeddings for the pieces of two vocabularies of one kind."""

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
"""Signs before pieces: WordPiece marks pieces that continue a word, SentencePiece those that begin one."""


def matching_rows(source: Vocabulary, target: Vocabulary) -> Int[np.ndarray, " piece"]:
    """Return the rows in the vocabulary `source` of the pieces of `target`, -1 for a missing piece.

    Pieces of a checkpoint are equal if their ids in the checkpoint are; both vocabularies may be pruned from it.
    Words and WordPieces are equal if their texts are. Padding and unknown are pieces too. Vocabularies of different
    kinds have no piece in common.

    Args:
        source: Vocabulary of an existing embedding.
        target: Vocabulary of the embedding to be filled.
    """
    if type(source) is not type(target):
        return np.full(target.size, -1)
    rows = {key: row for row, key in enumerate(_piece_keys(source))}
    return np.array([rows.get(key, -1) for key in _piece_keys(target)])


def checkpoint_rows(vocabulary: HFVocabulary) -> Int[np.ndarray, " piece"]:
    """Return the rows of a vocabulary's pieces in the embedding of the checkpoint.

    Args:
        vocabulary: Vocabulary of a checkpoint, pruned or whole.
    """
    return (
        np.arange(vocabulary.size)
        if vocabulary.checkpoint_ids is None
        else np.array(vocabulary.checkpoint_ids)
    )


def piece_texts(vocabulary: Vocabulary) -> list[str]:
    """Return the texts of a vocabulary's pieces without marks; empty for a piece without a text.

    Args:
        vocabulary: Vocabulary of words, WordPieces or a checkpoint.

    Raises:
        TypeError: The vocabulary has no pieces with a text.
    """
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
