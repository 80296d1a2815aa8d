"""Encoded text: a corpus as flat numbers, and padded batches without a Python loop over sentences.

Shapes: B sentences of a batch, P pieces, T words, C characters, S steps; N sentences of the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import torch

from raykd.forms.ragged import Ragged, RaggedBlocks, flatten_lists, table_column
from raykd.structures.device import to_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxtyping import Float, Int64
    from torch import Tensor

    from raykd.corpora.vocabulary import CharacterVocabulary
    from raykd.corpora.word_pieces import Special, Vocabulary


@dataclass(frozen=True)
class TokenBatch:
    """B sentences as input of a model; all tensors of numbers are int64.

    After the end of a sentence, pieces are the vocabulary's padding id and everything else is 0, also
    the lengths of characters. Inputs from frozen encoders are either stored vectors of words (`features_BTD`), or the
    same sentences in the pieces of the encoders (`context`).

    Attributes:
        pieces_BP: Pieces.
        piece_lengths_B: Number of pieces.
        first_BT: Place of the first piece of each word in `pieces_BP`.
        lengths_B: Number of words.
        characters_BTC: Characters of words; None without a character vocabulary.
        character_lengths_BT: Number of characters; None without a character vocabulary.
        context: The sentences in the pieces of each frozen encoder, unless features are stored.
        features_BTD: Stored vectors of words from frozen encoders.
        steps_BS: Steps of a target sequence, given to a decoder; None lets it generate its own.
        step_lengths_B: Number of steps.
    """

    pieces_BP: Int64[Tensor, "batch piece"]
    piece_lengths_B: Int64[Tensor, " batch"]
    first_BT: Int64[Tensor, "batch time"]
    lengths_B: Int64[Tensor, " batch"]
    characters_BTC: Int64[Tensor, "batch time character"] | None = None
    character_lengths_BT: Int64[Tensor, "batch time"] | None = None
    context: tuple[TokenBatch, ...] = ()
    features_BTD: Float[Tensor, "batch time size"] | None = None
    steps_BS: Int64[Tensor, "batch step"] | None = None
    step_lengths_B: Int64[Tensor, " batch"] | None = None

    def __len__(self) -> int:
        return len(self.lengths_B)

    def to(self, device: torch.device | str) -> TokenBatch:
        """Return the batch on a device."""
        return self.map(lambda part: to_device(part, device))

    def map(self, function: Callable[[Tensor], Tensor]) -> TokenBatch:
        """Return the batch with `function` applied to all tensors."""
        parts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "context"}
        tensors = {name: function(part) for name, part in parts.items() if part is not None}
        return TokenBatch(**tensors, context=tuple(text.map(function) for text in self.context))


class Features(Protocol):
    """Stored vectors of words, by the rows of a text."""

    def gather(self, rows: np.ndarray) -> Float[Tensor, "batch time size"]:
        """Return the vectors of the sentences at `rows` (one or more), padded with zeros; float16."""
        ...


Rows = Ragged | RaggedBlocks


@dataclass(frozen=True)
class EncodedText:
    """N sentences as flat int32 values with int64 offsets.

    Attributes:
        pieces: Pieces of each sentence.
        first: Place of each word's first piece.
        words: Number of each word among the distinct words of the corpus.
        characters: Characters of each distinct word, stored once; None without a character vocabulary.
        padding: Padding id of the vocabulary.
        context: The sentences in the pieces of each frozen encoder, unless `features` are stored.
        features: Stored vectors of words from frozen encoders.
    """

    pieces: Rows
    first: Rows
    words: Rows
    characters: Rows | None
    padding: int
    context: tuple[EncodedText, ...] = ()
    features: Features | None = None

    @staticmethod
    def concatenate(texts: Sequence[EncodedText], *, padding: int) -> EncodedText:
        """Concatenate texts in the pieces of the same vocabularies.

        Args:
            texts: The texts.
            padding: Padding id of the vocabulary.
        """

        def rows(name: str) -> Any:
            parts = [getattr(text, name) for text in texts]
            if any(part is None for part in parts):
                return None
            return RaggedBlocks(tuple(b for part in parts for b in getattr(part, "blocks", (part,))))

        columns = {name: rows(name) for name in ("pieces", "first", "words", "characters")}
        return EncodedText(**columns, padding=padding)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence, int64 [N]."""
        return self.first.lengths

    @property
    def piece_lengths(self) -> np.ndarray:
        """Pieces of each sentence, special tokens included, int64 [N]."""
        return self.pieces.lengths

    def gather(self, indices: np.ndarray) -> TokenBatch:
        """Return the sentences at `indices`, in order, padded to the longest; no index gives an empty batch."""
        indices = np.asarray(indices, dtype=np.int64)
        pieces_BP, piece_lengths_B = self.pieces.pad(indices, fill=self.padding)
        first_BT, lengths_B = self.first.pad(indices)
        batch = {
            "pieces_BP": pieces_BP,
            "piece_lengths_B": piece_lengths_B,
            "first_BT": first_BT,
            "lengths_B": lengths_B,
        }
        if self.characters is not None:
            batch |= self._characters(self.characters, indices)
        return TokenBatch(
            **{name: torch.from_numpy(array) for name, array in batch.items()},
            context=tuple(text.gather(indices) for text in self.context),
            features_BTD=None if self.features is None else self.features.gather(indices),
        )

    def _characters(self, characters: Rows, indices: np.ndarray) -> dict[str, np.ndarray]:
        words_BT, lengths_B = self.words.pad(indices)
        if isinstance(characters, RaggedBlocks) and isinstance(self.words, RaggedBlocks):
            # Each block numbers its own distinct words.
            words_BT = words_BT + characters.starts[self.words.block_of(indices)][:, None]
        inside_BT = np.arange(words_BT.shape[1]) < lengths_B[:, None]
        letters_WC, letter_counts_W = characters.pad(words_BT[inside_BT])
        characters_BTC = np.zeros((*words_BT.shape, letters_WC.shape[1]), dtype=np.int64)
        character_lengths_BT = np.zeros(words_BT.shape, dtype=np.int64)
        characters_BTC[inside_BT] = letters_WC
        character_lengths_BT[inside_BT] = letter_counts_W
        return {"characters_BTC": characters_BTC, "character_lengths_BT": character_lengths_BT}


def encode_text(
    sentences: pa.Table | Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    characters: CharacterVocabulary | None = None,
    *,
    context: Sequence[Vocabulary] = (),
    features: Features | None = None,
) -> EncodedText:
    """Encode sentences.

    Args:
        sentences: Table with a column `tokens`, or lists of words.
        vocabulary: Vocabulary of pieces.
        characters: Character vocabulary; None leaves characters out.
        context: Vocabularies of frozen encoders; sentences are encoded in the pieces of each too, unless `features` are
            given.
        features: Stored vectors from the frozen encoders.

    Raises:
        ValueError: A sentence has no words.
    """
    column = table_column(sentences, "tokens")
    if column is None:
        column = pa.array(sentences, pa.list_(pa.string()))
    flat, offsets = flatten_lists(column)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise ValueError(f"sentence {empty[0]} (counted from 0) has no words; remove empty sentences")
    distinct = flat.dictionary_encode()
    distinct_words = distinct.dictionary.to_pylist()
    words = Ragged(distinct.indices.to_numpy().astype(np.int32, copy=False), offsets)
    pieces, first = _sentence_pieces(vocabulary.pieces(distinct_words), words, vocabulary.special)
    return EncodedText(
        pieces=pieces,
        first=first,
        words=words,
        characters=None if characters is None else characters.pieces(distinct_words),
        padding=vocabulary.special.padding,
        context=() if features is not None else tuple(encode_text(sentences, encoder) for encoder in context),
        features=features,
    )


def _sentence_pieces(pieces: Ragged, words: Ragged, special: Special) -> tuple[Ragged, Ragged]:
    """Return the pieces of sentences, with prefix and suffix, and the places of the first pieces of words."""
    pieces_of_words = pieces.take(words.values)
    bounds = pieces_of_words.offsets[words.offsets]
    before, around = len(special.prefix), len(special.prefix) + len(special.suffix)
    starts = pieces_of_words.offsets[:-1] - np.repeat(bounds[:-1], words.lengths) + before
    # A word without pieces takes the place of the piece before it. Only the first word of a sentence may have none, and
    # only with a prefix (`HFVocabulary.pieces`), so no place is negative.
    starts -= pieces_of_words.lengths == 0
    first = Ragged(starts.astype(np.int32), words.offsets)
    if not around:
        return Ragged(pieces_of_words.values, bounds), first
    offsets = bounds + around * np.arange(len(bounds))
    values = np.empty(offsets[-1], dtype=np.int32)
    for i, piece in enumerate(special.prefix):
        values[offsets[:-1] + i] = piece
    for i, piece in enumerate(reversed(special.suffix), start=1):
        values[offsets[1:] - i] = piece
    sentence = np.repeat(np.arange(len(words)), np.diff(bounds))
    values[np.arange(len(pieces_of_words.values)) + before + around * sentence] = pieces_of_words.values
    return Ragged(values, offsets), first
