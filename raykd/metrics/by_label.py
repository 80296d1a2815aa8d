"""Precision, recall, F1 and support of all labels, with their micro and macro averages.

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


class LabelScores(NamedTuple):
    """Precision, recall and F1, in 0..1, and the number of gold occurrences (support)."""

    precision: float
    recall: float
    f1: float
    support: int


NOTHING = LabelScores(0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class ScoresByLabel:
    """Scores of all labels in the gold labels or the predictions.

    Attributes:
        labels: Label → scores, in alphabetical order.
        micro: Scores over all entities, or words, together; for words all three are the accuracy.
        macro: Mean over labels.
    """

    labels: Mapping[str, LabelScores]
    micro: LabelScores
    macro: LabelScores


def entities_by_label(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ScoresByLabel:
    """Score exact spans and types in BIOES tags, by type.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags of each sentence.

    Returns:
        Scores of each type; 0 where a score is not defined.

    Raises:
        ValueError: The sentences differ in number or length, or a tag is not BIOES.
    """
    check_aligned(gold, predicted)
    counts = count_spans(gold, predicted)
    right, predicted_count, support = (
        Counter({name: count[place] for name, count in counts.items()}) for place in range(3)
    )
    return _scores_by_label(right, predicted_count, support)


def words_by_label(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ScoresByLabel:
    """Score labels of words, or of whole sentences, by label.

    Args:
        gold: Gold labels of each sentence.
        predicted: Predicted labels of each sentence.

    Returns:
        Scores of each label; 0 where a score is not defined.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    pairs = (pair for sides in zip(gold, predicted, strict=True) for pair in zip(*sides, strict=True))
    return _score_words((label, answer, label == answer) for label, answer in pairs)


def arcs_by_relation(
    gold: Sequence[Sequence[Arc]], predicted: Sequence[Sequence[Arc]], scored: Sequence[Sequence[bool]]
) -> ScoresByLabel:
    """Score dependency arcs by relation; an arc is right if head and relation are.

    Args:
        gold: (head, relation) of each word of each sentence.
        predicted: The same, predicted.
        scored: Mask of the words that count, for each sentence.

    Returns:
        Scores of each relation; the micro average is LAS. 0 where a score is not defined.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    words = (word for sides in zip(gold, predicted, scored, strict=True) for word in zip(*sides, strict=True))
    return _score_words((arc[1], answer[1], arc == answer) for arc, answer, counted in words if counted)


def _score_words(words: Iterable[tuple[str, str, bool]]) -> ScoresByLabel:
    """Score words given as (gold label, predicted label, is right)."""
    right_counts, gold_counts, predicted_counts = Counter[str](), Counter[str](), Counter[str]()
    for label, answer, is_right in words:
        gold_counts[label] += 1
        predicted_counts[answer] += 1
        right_counts[label] += is_right
    return _scores_by_label(right_counts, predicted_counts, gold_counts)


def _scores_by_label(right: Counter[str], predicted: Counter[str], gold: Counter[str]) -> ScoresByLabel:
    rows = {
        name: _label_scores(right[name], predicted[name], gold[name]) for name in sorted({*gold, *predicted})
    }
    micro = _label_scores(right.total(), predicted.total(), gold.total())
    return ScoresByLabel(rows, micro, _macro_average(rows, gold.total()))


def _label_scores(right: int, predicted: int, gold: int) -> LabelScores:
    precision, recall = right / predicted if predicted else 0.0, right / gold if gold else 0.0
    return LabelScores(precision, recall, 2 * right / (predicted + gold) if predicted + gold else 0.0, gold)


def _macro_average(rows: Mapping[str, LabelScores], support: int) -> LabelScores:
    if not rows:
        return NOTHING
    precision, recall, f1 = (fmean(row[place] for row in rows.values()) for place in range(3))
    return LabelScores(precision, recall, f1, support)
