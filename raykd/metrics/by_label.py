"""Precision, recall, F1 and support of every label, with their micro and macro averages.

Entities are counted as in `entities.py`: the micro average is the F1 there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.bioes import count_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Arc = tuple[int, str]
"""A word's head, 0 the root, and its relation."""


class Counted(NamedTuple):
    """Precision, recall and F1, each in 0..1, and how many there are to find."""

    precision: float
    recall: float
    f1: float
    support: int


NOTHING = Counted(0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class ByLabel:
    """The figures of every label that is in the gold labels or was predicted, in alphabetical order."""

    labels: Mapping[str, Counted]
    micro: Counted
    """Over all entities, or words, together; of words all three are the accuracy."""
    macro: Counted
    """The mean over labels."""


def entities_by_label(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ByLabel:
    """Of exact spans and types in BIOES tags; 0 where a figure is not defined.

    Raises ValueError when the sentences differ in number or length, and for a tag that is not BIOES.
    """
    check_aligned(gold, predicted)
    counts = count_spans(gold, predicted)
    right, predicted_count, support = (
        Counter({name: own[place] for name, own in counts.items()}) for place in range(3)
    )
    return _by_counts(right, predicted_count, support)


def words_by_label(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ByLabel:
    """Of one label for each word, or for each sentence; 0 where a figure is not defined.

    Raises ValueError when the sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    pairs = (pair for sides in zip(gold, predicted, strict=True) for pair in zip(*sides, strict=True))
    return _of_words((label, answer, label == answer) for label, answer in pairs)


def arcs_by_relation(
    gold: Sequence[Sequence[Arc]], predicted: Sequence[Sequence[Arc]], scored: Sequence[Sequence[bool]]
) -> ByLabel:
    """Of the (head, relation) of each word, by relation, over the words that are `scored`: right where both are. The
    micro average is LAS. 0 where a figure is not defined.

    Raises ValueError when the sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    words = (word for sides in zip(gold, predicted, scored, strict=True) for word in zip(*sides, strict=True))
    return _of_words((arc[1], answer[1], arc == answer) for arc, answer, counted in words if counted)


def _of_words(words: Iterable[tuple[str, str, bool]]) -> ByLabel:
    """Of the gold and the predicted label of each word, and whether it is right."""
    right, there, said = Counter[str](), Counter[str](), Counter[str]()
    for label, answer, is_right in words:
        there[label] += 1
        said[answer] += 1
        right[label] += is_right
    return _by_counts(right, said, there)


def _by_counts(right: Counter[str], said: Counter[str], there: Counter[str]) -> ByLabel:
    rows = {name: _of_counts(right[name], said[name], there[name]) for name in sorted({*there, *said})}
    micro = _of_counts(right.total(), said.total(), there.total())
    return ByLabel(rows, micro, _macro(rows, there.total()))


def _of_counts(right: int, said: int, there: int) -> Counted:
    precision, recall = right / said if said else 0.0, right / there if there else 0.0
    return Counted(precision, recall, 2 * right / (said + there) if said + there else 0.0, there)


def _macro(rows: Mapping[str, Counted], support: int) -> Counted:
    if not rows:
        return NOTHING
    precision, recall, f1 = (fmean(row[place] for row in rows.values()) for place in range(3))
    return Counted(precision, recall, f1, support)
