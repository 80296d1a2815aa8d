"""Vocabularies in the store: built once from a corpus, named by what they were built from."""

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
    VocabularyConfig,
    count_words,
    vocabulary_from_json,
)
from raykd.identity import PlainObject, identity
from raykd.layers.checkpoint import tokenizer_checksum
from raykd.layers.contextual import Part, parts_of
from raykd.progress import report_progress
from raykd.storage.store import Storage


@dataclass(frozen=True)
class StoredVocabulary:
    """Pieces (or words); characters, and the pieces of frozen encoders, where the model reads them."""

    id: str
    pieces: Vocabulary
    characters: CharacterVocabulary | None
    context: tuple[Vocabulary, ...] = ()

    def encode(
        self, sentences: pa.Table | Sequence[Sequence[str]], features: Features | None = None
    ) -> EncodedText:
        """A table with a column `tokens`, or token lists, as the model reads them; `features`: what frozen encoders
        give for them, where it is stored.
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
    """Known before the vocabulary is built. A pinned encoder counts by its checksum, wherever it lies, and so does the
    tokenizer in a folder.
    """
    encoders = [part.checksum or part.shape() for part in parts_of(contextual)] or None
    own = config.model_dump(mode="json")
    if config.of_checkpoint:
        own["path"] = tokenizer_checksum(own["path"]) or own["path"]
    read = {"config": own, "characters": characters, "encoder": encoders, "corpus": corpus_id}
    if characters or not config.of_checkpoint:
        read["normalization"] = NORMALIZATION
    if config.as_sampled and sampling_alpha != 1.0:
        read["sampling_alpha"] = sampling_alpha
    return identity("vocabulary", read)


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
    """Find or build the vocabulary of `config` over the training text (labelled and unlabelled) of `corpus`, whose
    languages are sampled with `sampling_alpha`.
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
            "context": [part.vocabulary().to_json() for part in parts_of(contextual)],
        }
        storage.write_json(vocabulary_file(name), plain)
    return open_vocabulary(storage, name)


def _count_words_as_sampled(text: pa.Table, alpha: float) -> Counter[str]:
    """How often each word occurs where language l with n_l sentences has a share ∝ n_l^alpha of them, at least once."""
    sizes = {each["values"]: each["counts"] for each in text["language"].value_counts().to_pylist()}
    share = len(text) / sum(size**alpha for size in sizes.values())
    found: dict[str, float] = {}
    for language, size in sorted(sizes.items()):
        own = count_words(text.filter(pc.field("language") == language))
        for word, count in own.items():
            found[word] = found.get(word, 0.0) + count * size ** (alpha - 1) * share
    return Counter({word: math.ceil(count) for word, count in found.items()})


def unknown_share(vocabulary: Vocabulary, table: pa.Table) -> float:
    """Which share of the pieces of a table's sentences is unknown, from 0 to 1."""
    counts = count_words(table)
    pieces = vocabulary.pieces(list(counts))
    times_P = np.repeat(np.fromiter(counts.values(), np.int64, len(counts)), np.diff(pieces.offsets))
    return float(times_P[pieces.values == vocabulary.special.unknown].sum() / max(1, times_P.sum()))


def vocabulary_file(name: str) -> str:
    """Where the vocabulary called `name` is stored."""
    return f"vocabularies/{name}.json"


def open_vocabulary(storage: Storage, name: str) -> StoredVocabulary:
    """The stored vocabulary called `name`, read once per process."""
    return _open(storage.uri, name)


@lru_cache(maxsize=8)
def _open(store_uri: str, name: str) -> StoredVocabulary:
    return Storage(store_uri).read_json(vocabulary_file(name), partial(vocabulary_from_json, name))


def vocabulary_from_json(name: str, plain: PlainObject) -> StoredVocabulary:
    """The vocabulary called `name`, from the JSON in which it is stored."""
    characters = CharacterVocabulary.from_json(plain["characters"]) if plain["characters"] else None
    context = tuple(vocabulary_from_json(part) for part in plain["context"])
    return StoredVocabulary(name, vocabulary_from_json(plain["pieces"]), characters, context)
