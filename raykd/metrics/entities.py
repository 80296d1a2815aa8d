"""Entity F1 as the papers report it: exact spans and types, micro-averaged, counted as seqeval counts.

Only well-formed BIOES spans count (seqeval's strict mode): a B without its E, or an I after neither B nor I, is
not an entity. Source: Nakayama, seqeval, `mode="strict", scheme=IOBES` (its v1), with which the tests compare; here all
words are looked at together, since dev is scored after every epoch.

Shapes: N words of all sentences, one after the other.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from raykd.metrics.accuracy import check_aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Int

PREFIXES = ("B-", "I-", "E-", "S-")
_NONE = -1


class F1(NamedTuple):
    """Precision, recall and their harmonic mean, each in 0..1."""

    precision: float
    recall: float
    f1: float


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> F1:
    """Micro-averaged precision, recall and F1 of entities in BIOES tags.

    Precision is 0 where nothing is predicted and recall 0 where there is nothing to find. Raises ValueError
    when the sentences differ in number or length, and for a tag that is not BIOES.
    """
    check_aligned(gold, predicted)
    check_bioes(gold)
    check_bioes(predicted)
    tags = sorted(set().union(*gold, *predicted))
    lengths = np.fromiter(map(len, gold), np.int64, len(gold))
    first_N = np.zeros(int(lengths.sum()) + 1, dtype=bool)
    first_N[np.cumsum(lengths) - lengths] = True
    sides = [_numbers(side, tags, len(first_N) - 1) for side in (gold, predicted)]
    (wanted_N, own_N), (found_N, said_N) = (_entities(side, tags, first_N[:-1]) for side in sides)
    right = int(((wanted_N == found_N) & (own_N == said_N) & (wanted_N != _NONE)).sum())
    found, wanted = int((found_N != _NONE).sum()), int((wanted_N != _NONE).sum())
    precision, recall = right / found if found else 0.0, right / wanted if wanted else 0.0
    return F1(precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0)


def _numbers(sentences: Sequence[Sequence[str]], tags: Sequence[str], words: int) -> Int[np.ndarray, " word"]:
    number = {tag: place for place, tag in enumerate(tags)}
    return np.fromiter(map(number.__getitem__, chain.from_iterable(sentences)), np.int64, words)


def _entities(
    numbers_N: Int[np.ndarray, " word"], tags: Sequence[str], first_N: Bool[np.ndarray, " word"]
) -> tuple[Int[np.ndarray, " word"], Int[np.ndarray, " word"]]:
    """At the last word of each entity where it begins and the number of its type; elsewhere `_NONE` and any type."""
    kinds = sorted({tag[2:] for tag in tags})
    letter_N = np.array([tag[0] for tag in tags], dtype="U1")[numbers_N]
    kind_N = np.array([kinds.index(tag[2:]) for tag in tags], dtype=np.int64)[numbers_N]
    goes_on_N = np.isin(letter_N, ("I", "E")) & ~first_N
    goes_on_N[1:] &= np.isin(letter_N[:-1], ("B", "I")) & (kind_N[1:] == kind_N[:-1])
    begin_N = np.maximum.accumulate(np.where(goes_on_N, 0, np.arange(len(letter_N))))
    whole_N = (letter_N == "E") & goes_on_N & (letter_N[begin_N] == "B")
    return np.where(whole_N | (letter_N == "S"), begin_N, _NONE), kind_N


def check_bioes(sentences: Sequence[Sequence[str]]) -> None:
    """Raise ValueError for a tag that is not BIOES."""
    for tag in set().union(*sentences):
        if tag != "O" and not tag.startswith(PREFIXES):
            raise ValueError(f"entity F1 is defined for BIOES tags (O, B-…, I-…, E-…, S-…), got {tag!r}")
