"""Vocabularies, from words to numbers: words, WordPieces, characters, or a pretrained model's tokenizer.

A vocabulary splits *words* into pieces, never running text: a word has the same pieces everywhere, and a corpus is
encoded by splitting each distinct word once. Ids 0 and 1 are padding and unknown in vocabularies built here; a
pretrained one has its own ids. An empty or invisible word is one unknown piece. Only the artificial word of utterances
has no piece, in a checkpoint's vocabulary that puts a special piece before every sentence (`pretrained.py`).
Vocabularies built here look words up in NFC and without invisible signs.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from tokenizers import Tokenizer, models, trainers

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.sentence import SEPARATOR
from raykd.corpora.word_pieces import CONTINUING, Special, Vocabulary, split_words
from raykd.forms.ragged import Ragged, flatten_lists, offsets_from_lengths, table_column
from raykd.serving.labeller.signs import NORMALIZATION, normalize_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa


@dataclass(frozen=True)
class _OwnVocabulary:
    """A vocabulary built here; its JSON is its kind and its fields."""

    kind: ClassVar[str]
    normalization: str | None = field(default=NORMALIZATION, kw_only=True)
    """Unicode form of the words; None in vocabularies of an earlier version: words stay as they come."""

    def normalized(self, words: Iterable[str]) -> list[str]:
        """Return the normalized words."""
        return [*words] if self.normalization is None else [*map(normalize_word, words)]

    def to_json(self) -> str:
        """Return the vocabulary as JSON."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        return json.dumps({"kind": self.kind, **values}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the vocabulary written by `to_json`."""
        plain = {"normalization": None, **json.loads(text)}
        values: Any = {n: tuple(v) if isinstance(v, list) else v for n, v in plain.items() if n != "kind"}
        return cls(**values)


def _count_spellings(words: Iterable[str]) -> Counter[str]:
    """Counts of words in their normalized form."""
    counts: Counter[str] = Counter()
    for word, count in Counter(words).items():
        counts[normalize_word(word)] += count
    del counts[""]  # of words without a visible sign, which are unknown
    return counts


@dataclass(frozen=True)
class WordVocabulary(_OwnVocabulary):
    """One piece per known word, in `words`' order from id 2 on; any other word is unknown."""

    kind = "word"
    words: tuple[str, ...]
    lower_case: bool = False
    """True to look up an unknown word in lower case too."""
    special: Special = field(default=Special(), init=False)

    @classmethod
    def build(cls, words: Iterable[str], *, min_count: int = 1) -> WordVocabulary:
        """Build the vocabulary, the most frequent words first, ties in code point order.

        Args:
            words: Words of a text, with repetitions, or counts of words.
            min_count: Minimum number of occurrences of a word.
        """
        counts = _count_spellings(words)
        frequent = (word for word, count in counts.items() if count >= min_count)
        return cls(tuple(sorted(frequent, key=lambda word: (-counts[word], word))))

    @property
    def size(self) -> int:
        """Number of known words, padding and unknown."""
        return len(self.words) + 2

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, start=2)}

    def pieces(self, words: Sequence[str]) -> Ragged:
        """Return one id per word."""
        words, ids, unknown = self.normalized(words), self._ids, Special.unknown
        if self.lower_case:
            numbers = (ids.get(word) or ids.get(word.lower(), unknown) for word in words)
        else:
            numbers = (ids.get(word, unknown) for word in words)
        return Ragged(np.fromiter(numbers, dtype=np.int32, count=len(words)), np.arange(len(words) + 1))


@dataclass(frozen=True)
class WordPieceVocabulary(_OwnVocabulary):
    """Cased WordPiece, longest match first within a word; pieces after a word's first begin with `##`.

    Attributes:
        entries: The pieces in the order of their ids, `[PAD]` and `[UNK]` first.
    """

    kind = "wordpiece"
    entries: tuple[str, ...]
    special: Special = field(default=Special(), init=False)

    @classmethod
    def build(cls, words: Iterable[str], *, size: int) -> WordPieceVocabulary:
        """Train WordPieces. The same words, in any order, give the same pieces in any process.

        Args:
            words: Words of a text, with repetitions, or counts of words.
            size: Maximum number of pieces.
        """
        counts = _count_spellings(words)
        # At most half of the pieces are single characters: a script of thousands would leave no room for others.
        alphabet = _alphabet(counts, limit=size // 2)
        characters = set(alphabet)
        # The trainer numbers characters in the order of a randomly seeded hash map and breaks ties between
        # merges by these numbers. Given as special tokens they are numbered here, and training becomes
        # deterministic.
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=2,
            show_progress=False,
            special_tokens=["[PAD]", "[UNK]", *alphabet],
        )
        writable = sorted(word for word in counts if characters.issuperset(_letters(word)))
        tokenizer = wordpiece_tokenizer({"[UNK]": 0})
        tokenizer.train_from_iterator((word for word in writable for _ in range(counts[word])), trainer)
        ids = tokenizer.get_vocab()
        return cls(tuple(sorted(ids, key=ids.__getitem__)))

    @property
    def size(self) -> int:
        """Number of pieces, padding and unknown among them."""
        return len(self.entries)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return wordpiece_tokenizer({entry: i for i, entry in enumerate(self.entries)})

    def pieces(self, words: Sequence[str]) -> Ragged:
        """Return one row of ids per word; a word with an unknown character is one unknown piece."""
        return split_words(self._tokenizer, self.normalized(words), Special.unknown)


def wordpiece_tokenizer(ids: dict[str, int]) -> Tokenizer:
    """Return a tokenizer that splits a single word into WordPieces.

    Args:
        ids: Piece → id, with `[UNK]`.
    """
    return Tokenizer(models.WordPiece(ids, unk_token="[UNK]", continuing_subword_prefix=CONTINUING))


def _letters(word: str) -> list[str]:
    """A word as WordPiece's single characters: the first as it is, later ones with `##`."""
    return [*word[:1], *(CONTINUING + character for character in word[1:])]


def _alphabet(counts: Counter[str], *, limit: int) -> list[str]:
    """The `limit` most frequent letters of words, in code point order."""
    letter_counts: Counter[str] = Counter()
    for word, count in counts.items():
        for letter in _letters(word):
            letter_counts[letter] += count
    # A letter seen only at the beginning of words, or only later, is taken in both forms where there is room: a word
    # with an unseen letter would be unknown as a whole.
    both = {form for letter in letter_counts for form in (letter[-1], CONTINUING + letter[-1])}
    # The separator between the texts of pairs is always needed.
    return sorted(sorted(both, key=lambda form: (form != SEPARATOR, -letter_counts[form], form))[:limit])


@dataclass(frozen=True)
class CharacterVocabulary(_OwnVocabulary):
    """The characters of words; a word longer than `longest` keeps its first and its last `longest / 2`."""

    kind = "character"
    characters: tuple[str, ...]
    longest: int = 32
    special: Special = field(default=Special(), init=False)

    @classmethod
    def build(cls, words: Iterable[str], *, min_count: int = 1, longest: int = 32) -> CharacterVocabulary:
        """Build the vocabulary, in code point order.

        Args:
            words: Words of a text, with repetitions, or counts of words.
            min_count: Minimum number of occurrences of a character.
            longest: Maximum number of characters of a word that are read.
        """
        counts: Counter[str] = Counter()
        for word, count in _count_spellings(words).items():
            for character in word:
                counts[character] += count
        return cls(tuple(sorted(c for c, count in counts.items() if count >= min_count)), longest)

    @property
    def size(self) -> int:
        """Number of known characters, padding and unknown."""
        return len(self.characters) + 2

    @cached_property
    def _code_points(self) -> np.ndarray:
        return np.array([*map(ord, self.characters), 0xFFFFFFFF], dtype=np.uint32)

    def pieces(self, words: Sequence[str]) -> Ragged:
        """Return the characters of words, one row per word."""
        tail = self.longest // 2
        head = self.longest - tail
        words = self.normalized(words)
        short = [w if len(w) <= self.longest else w[:head] + w[len(w) - tail :] for w in words]
        # NUL occurs in no text: it makes an empty word one unknown character.
        points = np.frombuffer(
            "".join(w or "\0" for w in short).encode("utf-32-le", "surrogatepass"), np.uint32
        )
        places = np.searchsorted(self._code_points, points)
        ids = np.where(self._code_points[places] == points, places + 2, Special.unknown).astype(np.int32)
        return Ragged(
            ids, offsets_from_lengths(np.fromiter((len(w) or 1 for w in short), np.int64, len(short)))
        )


VOCABULARIES = MappingProxyType(
    {
        "word": WordVocabulary,
        "wordpiece": WordPieceVocabulary,
        "character": CharacterVocabulary,
        "pretrained": HFVocabulary,
    }
)


def vocabulary_from_json(text: str) -> Vocabulary:
    """Return the vocabulary, of any kind, written by `to_json`.

    Args:
        text: JSON of a vocabulary.
    """
    return VOCABULARIES[json.loads(text)["kind"]].from_json(text)


def words_in(sentences: pa.Table | Iterable[Sequence[str]]) -> Iterable[str]:
    """Return all words of a text, in order.

    Args:
        sentences: Table with a column `tokens`, or one list of words for each sentence.
    """
    column = table_column(sentences, "tokens")
    if column is None:
        return chain.from_iterable(sentences)
    return (word for chunk in column.chunks for word in flatten_lists(chunk)[0].to_pylist())


def count_words(sentences: pa.Table | Iterable[Sequence[str]]) -> Counter[str]:
    """Count the words of a text. Builders of vocabularies accept these counts in place of words.

    Args:
        sentences: Table with a column `tokens`, counted chunk by chunk, or one list of words for each sentence.
    """
    column = table_column(sentences, "tokens")
    if column is None:
        return Counter(words_in(sentences))
    counts: Counter[str] = Counter()
    for chunk in column.chunks:
        values = flatten_lists(chunk)[0].value_counts()
        for word, count in zip(values.field(0).to_pylist(), values.field(1).to_pylist(), strict=True):
            counts[word] += count
    return counts
