"""Vocabularies in the store: built once from a corpus, and named by a hash of everything they are built from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.corpora.corpus import Corpus
from raykd.corpora.encoded_text import EncodedText, Features, encode_text
from raykd.corpora.vocabulary import (
    NORMALIZATION,
    CharacterVocabulary,
    Vocabulary,
    count_words,
    vocabulary_from_json,
)
from raykd.corpora.vocabulary_config import VocabularyConfig
from raykd.identity import PlainObject, identity
from raykd.layers.checkpoint import tokenizer_checksum
from raykd.layers.contextual import Part, contextual_parts
from raykd.progress import report_progress
from raykd.storage.store import Storage


@dataclass(frozen=True)
class StoredVocabulary:
    """The vocabulary of one model.

    Attributes:
        pieces: Pieces or words.
        characters: Characters, if the model reads them.
        context: Pieces of each frozen encoder that the model reads.
    """

    id: str
    pieces: Vocabulary
    characters: CharacterVocabulary | None
    context: tuple[Vocabulary, ...] = ()

    def encode(
        self, sentences: pa.Table | Sequence[Sequence[str]], features: Features | None = None
    ) -> EncodedText:
        """Encode sentences for the model.

        Args:
            sentences: A table with a column `tokens`, or lists of tokens.
            features: Stored vectors of frozen encoders for the sentences, if the model reads any.
        """
        return encode_text(sentences, self.pieces, self.characters, context=self.context, features=features)


def vocabulary_id(
    config: VocabularyConfig,
    characters: bool,
    contextual: Part | tuple[Part, ...] | None,
    corpus_id: str,
    *,
    sampling_alpha: float = 1.0,
) -> str:
    """Return the id of a vocabulary, before it is built.

    An encoder with a checksum is identified by the checksum, wherever it is stored; so is a tokenizer in a folder.

    Args:
        config: Kind and size of the vocabulary.
        characters: Whether the model reads characters.
        contextual: Frozen encoders that the model reads.
        corpus_id: The corpus that the vocabulary is built from.
        sampling_alpha: Exponent of smoothed language sampling; 1 takes every sentence once an epoch.
    """
    encoders = [part.checksum or part.shape() for part in contextual_parts(contextual)] or None
    plain_config = config.model_dump(mode="json")
    if config.of_checkpoint:
        plain_config["path"] = tokenizer_checksum(plain_config["path"]) or plain_config["path"]
    hashed = {"config": plain_config, "characters": characters, "encoder": encoders, "corpus": corpus_id}
    if characters or not config.of_checkpoint:
        hashed["normalization"] = NORMALIZATION
    if config.as_sampled and sampling_alpha != 1.0:
        hashed["sampling_alpha"] = sampling_alpha
    return identity("vocabulary", hashed)


def store_vocabulary(
    storage: Storage,
    config: VocabularyConfig,
    corpus: Corpus,
    corpus_id: str,
    *,
    characters: bool,
    contextual: Part | tuple[Part, ...] | None = None,
    sampling_alpha: float = 1.0,
) -> StoredVocabulary:
    """Find or build the vocabulary of the training text (labelled and unlabelled) of a corpus.

    Args:
        storage: The store.
        config: Kind and size of the vocabulary.
        corpus: The corpus to build from.
        corpus_id: Id of the corpus.
        characters: Whether the model reads characters.
        contextual: Frozen encoders that the model reads.
        sampling_alpha: Exponent of smoothed language sampling; it weighs the counts of words.

    Returns:
        The vocabulary, read back from the store.
    """
    name = vocabulary_id(config, characters, contextual, corpus_id, sampling_alpha=sampling_alpha)
    if not storage.exists(vocabulary_file(name)):
        text = pa.concat_tables(
            [
                corpus.parts[part].select(["tokens", "language"])
                for part in ("train", "unlabelled")
                if part in corpus.parts
            ]
        )
        smoothed = config.as_sampled and sampling_alpha != 1.0
        words = _count_words_as_sampled(text, sampling_alpha) if smoothed else count_words(text)
        report_progress(None, f"making a vocabulary of {len(words):,} different words")
        pieces = config.build(words)
        letters = CharacterVocabulary.build(words) if characters else None
        plain = {
            "pieces": pieces.to_json(),
            "characters": letters.to_json() if letters else None,
            "context": [part.vocabulary().to_json() for part in contextual_parts(contextual)],
        }
        storage.write_json(vocabulary_file(name), plain)
    return open_vocabulary(storage, name)


def _count_words_as_sampled(text: pa.Table, alpha: float) -> Counter[str]:
    """Count words as if language l with n_l sentences had a share ∝ n_l^alpha of all; each count is at least 1."""
    sizes = {row["values"]: row["counts"] for row in text["language"].value_counts().to_pylist()}
    share = len(text) / sum(size**alpha for size in sizes.values())
    weighted_counts: dict[str, float] = {}
    for language, size in sorted(sizes.items()):
        word_counts = count_words(text.filter(pc.field("language") == language))
        for word, count in word_counts.items():
            weighted_counts[word] = weighted_counts.get(word, 0.0) + count * size ** (alpha - 1) * share
    return Counter({word: math.ceil(count) for word, count in weighted_counts.items()})


def unknown_share(vocabulary: Vocabulary, table: pa.Table) -> float:
    """Return the share (0 to 1) of the pieces of a table's sentences that are the unknown piece.

    Args:
        vocabulary: Pieces or words.
        table: A table with a column `tokens`.
    """
    counts = count_words(table)
    pieces = vocabulary.pieces(list(counts))
    times_P = np.repeat(np.fromiter(counts.values(), np.int64, len(counts)), np.diff(pieces.offsets))
    return float(times_P[pieces.values == vocabulary.special.unknown].sum() / max(1, times_P.sum()))


def vocabulary_file(name: str) -> str:
    """Return the path of a vocabulary in the store.

    Args:
        name: Id of the vocabulary.
    """
    return f"vocabularies/{name}.json"


def open_vocabulary(storage: Storage, name: str) -> StoredVocabulary:
    """Return a stored vocabulary, read once per process.

    Args:
        storage: The store.
        name: Id of the vocabulary.
    """
    return _open(storage.uri, name)


@lru_cache(maxsize=8)
def _open(store_uri: str, name: str) -> StoredVocabulary:
    return Storage(store_uri).read_json(vocabulary_file(name), partial(stored_vocabulary_from_json, name))


def stored_vocabulary_from_json(name: str, plain: PlainObject) -> StoredVocabulary:
    """Return a vocabulary from stored JSON.

    Args:
        name: Id of the vocabulary.
        plain: The parsed JSON.
    """
    characters = CharacterVocabulary.from_json(plain["characters"]) if plain["characters"] else None
    context = tuple(vocabulary_from_json(part) for part in plain["context"])
    return StoredVocabulary(name, vocabulary_from_json(plain["pieces"]), characters, context)
