"""Heads written as labels: dependency parsing as sequence labelling (Strzyz et al., NAACL 2019).

A label is a head code and a relation, `+1@NOUN@nsubj`: the head is the first noun to the right. A head code is an
offset (`+1`) and a mark (`NOUN`, ROOT or ANY). As one number the two are the *key* of the code; the number of a code is
the place of its key among those of all codes, in ascending order. To add an encoding, add its function to `ENCODINGS`.

Shapes: B sentences, T words of the longest, H = T + 1 heads that a word may have (0 the root, h the word h − 1), C
codes, Y labels, R relations, M parts of speech.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from raykd.identity import PlainObject

if TYPE_CHECKING:
    import pyarrow as pa

_UPOS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
UPOS = frozenset(_UPOS.split())
"""The parts of speech of Universal Dependencies."""
ROOT = "ROOT"
"""Mark of the root."""
ANY = ""
"""Mark of any word, in encodings that do not read parts of speech."""
SEPARATOR = "@"
NUMBER = re.compile(r"[+-][0-9]+")
SCHEME = "heads"
"""Name of the labels in the store."""
NONE = -1
"""Number for a missing code, head or label."""


def relative_position(marks_BT: np.ndarray, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Encode a head by the distance from its word: −1 is the word before. The root has offset 0 and a special mark.

    Args:
        marks_BT: Parts of speech, which are not read.
        root: Number of the root's mark; the next number is the mark of any word.

    Returns:
        Offset and mark of each possible head, both [B, T, H].
    """
    batch, words = marks_BT.shape
    offsets_TH = np.arange(-1, words)[None, :] - np.arange(words)[:, None]
    offsets_TH[:, 0] = 0
    marks_H = np.array([root, *[root + 1] * words])
    shape = (batch, words, words + 1)
    return np.broadcast_to(offsets_TH, shape), np.broadcast_to(marks_H, shape)


def relative_pos(marks_BT: np.ndarray, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Encode heads as the n-th word of a part of speech to the right (+n) or left (−n); the root has offset −1.

    Source: Strzyz et al., §3.1, encoding 3; Eq. 1.

    Args:
        marks_BT: Parts of speech by number, −1 on padding.
        root: Number of the root's mark.

    Returns:
        Offset and mark of each possible head, both [B, T, H].
    """
    batch, words = marks_BT.shape
    is_mark_BTM = marks_BT[:, :, None] == np.arange(marks_BT.max(initial=0) + 1)
    counts_BTM = is_mark_BTM.cumsum(1)  # up to and including the word
    # In the arrays of this function that end in H the root is still missing: H = T.
    head_marks_BTH = np.broadcast_to(np.where(marks_BT < 0, 0, marks_BT)[:, None, :], (batch, words, words))
    at_word_BTH = np.take_along_axis(counts_BTM, head_marks_BTH, 2)
    at_head_B1H = np.take_along_axis(counts_BTM, head_marks_BTH[:, 0, :, None], 2)[:, None, :, 0]
    word_counts_BTH = np.take_along_axis(is_mark_BTM, head_marks_BTH, 2)  # True if the word counts itself
    right_TH = np.arange(words)[None, :] > np.arange(words)[:, None]
    # Words of the head's part of speech in (word, head], or in [head, word).
    offsets_BTH = np.where(
        right_TH, at_head_B1H - at_word_BTH, at_head_B1H - 1 - (at_word_BTH - word_counts_BTH)
    )
    rooted_BTH = np.concatenate([np.full((batch, words, 1), -1), offsets_BTH], 2)
    marks_BTH = np.concatenate(
        [np.full((batch, words, 1), root), np.broadcast_to(marks_BT[:, None], (batch, words, words))], 2
    )
    return rooted_BTH, marks_BTH


def extend_with_upos(pos: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of speech of a treebank, extended by the rest of UPOS if all of them are universal.

    A model of several languages knows parts of speech that a single treebank lacks.

    Args:
        pos: Parts of speech of the treebank.
    """
    names = tuple(pos)
    return (*names, *sorted(UPOS.difference(names))) if UPOS.issuperset(names) else names


Encoding = Literal["relative_pos", "relative_position"]
ENCODINGS: Mapping[Encoding, Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]] = MappingProxyType(
    {"relative_pos": relative_pos, "relative_position": relative_position}
)
"""Name → encoding function.

It maps parts of speech [B, T] (numbers, −1 on padding) and the root's number to the offset and the mark of each
possible head, both [B, T, H]. Two heads of one word never have equal offset and mark."""

READ_POS: Collection[Encoding] = ("relative_pos",)
"""Encodings that need parts of speech."""


def possible_heads(lengths_B: np.ndarray, words: int) -> np.ndarray:
    """Return the possible heads of words, bool [B, T, H]: the root and the other words of the sentence.

    Args:
        lengths_B: Words of each sentence.
        words: T, the padded length.
    """
    inside_BT = np.arange(words) < lengths_B[:, None]
    heads_BTH = np.concatenate([inside_BT[:, :, None], inside_BT[:, :, None] & inside_BT[:, None, :]], 2)
    words_T = np.arange(words)
    heads_BTH[:, words_T, words_T + 1] = False
    return heads_BTH


@dataclass(frozen=True)
class TreeLabels:
    """The labels of a parsing student: Y pairs of a head code and a relation, each a tag `offset@POS@relation`.

    Attributes:
        tags: The labels, in the order of their numbers.
        pos: Parts of speech of the treebank, in the order of their numbers.
        relations: Relations of the treebank, in the order of their numbers.
        encoding: Name in `ENCODINGS`.

    Raises:
        ValueError: A tag has another form, or an unknown part of speech or relation.
    """

    tags: tuple[str, ...]
    pos: tuple[str, ...]
    relations: tuple[str, ...]
    encoding: Encoding

    def __post_init__(self) -> None:
        _ = self._parsed

    def __len__(self) -> int:
        return len(self.tags)

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """Return the labels with the given numbers."""
        return [self.tags[number] for number in numbers]

    def allowed_places(self) -> None:
        """None: any word may have any label."""

    def legal(self) -> None:
        """None: any label may follow any other."""

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        pos: Sequence[str],
        relations: Sequence[str],
        encoding: Encoding,
    ) -> TreeLabels:
        """Return the labels of encoded sentences, in alphabetical order.

        Args:
            sentences: Labels of each sentence, from `encode_part`.
            pos: Parts of speech of the treebank, in the order of their numbers.
            relations: Relations of the treebank, in the order of their numbers.
            encoding: Name in `ENCODINGS`.
        """
        labels = {label for sentence in sentences for label in sentence}
        return cls(tuple(sorted(labels)), tuple(pos), tuple(relations), encoding)

    @classmethod
    def from_plain(cls, plain: PlainObject) -> TreeLabels:
        """Return the labels written by `to_plain`."""
        lists = {name: tuple(plain[name]) for name in ("tags", "pos", "relations")}
        return cls(**lists, encoding=plain["encoding"])

    def to_plain(self) -> PlainObject:
        """Return a JSON-able object, read by `from_plain`."""
        return {
            "scheme": SCHEME, "encoding": self.encoding, "tags": list(self.tags), "pos": list(self.pos),
            "relations": list(self.relations),
        }  # fmt: skip

    @cached_property
    def _parsed(self) -> tuple[np.ndarray, list[str]]:
        """Keys of the labels' head codes, int64 [Y], and the names of their relations."""
        marks = {name: number for number, name in enumerate(self.pos)} | {
            ROOT: self._root,
            ANY: self._root + 1,
        }
        codes, relations = [], []
        for tag in self.tags:
            offset, _, rest = tag.partition(SEPARATOR)
            mark, separator, relation = rest.rpartition(SEPARATOR)
            if not (NUMBER.fullmatch(offset) and separator and relation in self.relations and mark in marks):
                raise ValueError(
                    f"expected offset@POS@relation with a known part of speech and relation, got {tag!r}"
                )
            codes.append((int(offset), marks[mark]))
            relations.append(relation)
        offsets_Y, marks_Y = np.array(codes, np.int64).reshape(-1, 2).T
        return self._keys(offsets_Y, marks_Y), relations

    @cached_property
    def known_pos(self) -> tuple[str, ...]:
        """Parts of speech allowed in sentences, in the order of their numbers.

        They begin with `pos`. Universal ones that the treebank lacks follow (`extend_with_upos`); no label names
        these.
        """
        return extend_with_upos(self.pos)

    @property
    def _root(self) -> int:
        return len(self.known_pos)

    @cached_property
    def _keys_C(self) -> np.ndarray:
        """Keys of all codes, ascending and distinct."""
        return np.unique(self._parsed[0])

    @cached_property
    def codes_Y(self) -> np.ndarray:
        """Numbers of the labels' head codes, int64 [Y]."""
        return np.searchsorted(self._keys_C, self._parsed[0])

    @cached_property
    def relations_Y(self) -> np.ndarray:
        """Numbers of the labels' relations, int64 [Y]."""
        numbers = {name: number for number, name in enumerate(self.relations)}
        return np.array([numbers[relation] for relation in self._parsed[1]], np.int64)

    def codes(self, pos_BT: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        """Return the numbers of the codes of possible heads, int64 [B, T, H]; NONE without a label, and on padding.

        Args:
            pos_BT: Parts of speech by their numbers in `known_pos`.
            lengths_B: Words of each sentence.
        """
        inside_BT = np.arange(pos_BT.shape[1]) < lengths_B[:, None]
        offsets_BTH, marks_BTH = ENCODINGS[self.encoding](np.where(inside_BT, pos_BT, NONE), self._root)
        keys_BTH = self._keys(offsets_BTH, marks_BTH)
        places_BTH = np.minimum(np.searchsorted(self._keys_C, keys_BTH), len(self._keys_C) - 1)
        has_label_BTH = (self._keys_C[places_BTH] == keys_BTH) & possible_heads(lengths_B, pos_BT.shape[1])
        return np.where(has_label_BTH, places_BTH, NONE)

    def heads(self, pos_BT: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        """Return the heads meant by labels, for all words, int64 [B, T, Y]; NONE where the sentence has no such word.

        Args:
            pos_BT: Parts of speech by their numbers in `known_pos`.
            lengths_B: Words of each sentence.
        """
        codes_BTH = self.codes(pos_BT, lengths_B)
        heads_BTC = np.full((*pos_BT.shape, len(self._keys_C) + 1), NONE)
        # Heads without a code are written to the extra column behind the last code, which is not read.
        np.put_along_axis(heads_BTC, codes_BTH, np.arange(codes_BTH.shape[2])[None, None], 2)
        return heads_BTC[:, :, self.codes_Y]

    def label_numbers(self, codes_BT: np.ndarray, relations_BT: np.ndarray) -> np.ndarray:
        """Return the labels of pairs of a code and a relation, int64; NONE without one, and for the code NONE.

        Args:
            codes_BT: Numbers of head codes, from `codes`.
            relations_BT: Numbers of relations.
        """
        numbers = self._numbers_CR[codes_BT, relations_BT]
        return np.where(codes_BT == NONE, NONE, numbers)

    @cached_property
    def _numbers_CR(self) -> np.ndarray:
        numbers_CR = np.full((len(self._keys_C), len(self.relations)), NONE)
        numbers_CR[self.codes_Y, self.relations_Y] = np.arange(len(self))
        return numbers_CR

    def _keys(self, offsets: np.ndarray, marks: np.ndarray) -> np.ndarray:
        return offsets * (self._root + 2) + marks


def encode_tree(
    heads: Sequence[int], relations: Sequence[str], pos: Sequence[str], encoding: Encoding
) -> list[str]:
    """Return the labels of one sentence.

    Args:
        heads: Head of each word, 0 for the root.
        relations: Relation of each word.
        pos: Part of speech of each word.
        encoding: Name in `ENCODINGS`.
    """
    names = sorted(set(pos))
    numbers = np.array([[names.index(name) for name in pos]]).reshape(1, len(pos))
    offsets_BTH, marks_BTH = ENCODINGS[encoding](numbers, len(names))
    marks = [*names, ROOT, ANY]
    return [
        SEPARATOR.join((f"{offsets_BTH[0, word, head]:+d}", marks[marks_BTH[0, word, head]], relation))
        for word, (head, relation) in enumerate(zip(heads, relations, strict=True))
    ]


def encode_part(
    table: pa.Table, *, pos: Sequence[str], relations: Sequence[str], encoding: Encoding
) -> Iterator[list[str]]:
    """Return the labels of the sentences of a treebank's part.

    Sentences without a tree are skipped, and sentences without the parts of speech that the encoding reads.

    Args:
        table: Part with the columns `heads`, `tags` and `pos`.
        pos: Parts of speech in the order of their numbers.
        relations: Relations in the order of their numbers.
        encoding: Name in `ENCODINGS`.
    """
    for batch in table.select(["heads", "tags", "pos"]).to_batches(max_chunksize=1000):
        rows: list[dict[str, list[int]]] = batch.to_pylist()
        for row in rows:
            if row["heads"] is None or (row["pos"] is None and encoding in READ_POS):
                continue
            sentence_pos = (
                [ANY] * len(row["heads"]) if row["pos"] is None else [pos[number] for number in row["pos"]]
            )
            yield encode_tree(
                row["heads"], [relations[number] for number in row["tags"]], sentence_pos, encoding
            )
