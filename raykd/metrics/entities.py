"""Entity F1 as the papers report it: exact spans and types, micro-averaged, counted as conlleval and seqeval count.

A malformed span is a span (`bioes.py`): where one is predicted it is a prediction, so that the score is that of the
spans that are delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.bioes import count_spans

if TYPE_CHECKING:
    from collections.abc import Sequence


class F1(NamedTuple):
    """Precision, recall and their harmonic mean, each in 0..1."""

    precision: float
    recall: float
    f1: float


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> F1:
    """Micro-averaged precision, recall and F1 of the spans in BIOES tags.

    Precision is 0 where nothing is predicted and recall 0 where there is nothing to find.

    Raises:
        ValueError: the sentences differ in number or length, or a tag is not BIOES.
    """
    check_aligned(gold, predicted)
    counts = count_spans(gold, predicted).values()
    right, predicted_count, gold_count = (sum(count[place] for count in counts) for place in range(3))
    precision, recall = (
        right / predicted_count if predicted_count else 0.0,
        right / gold_count if gold_count else 0.0,
    )
    return F1(precision, recall, 2 * right / (predicted_count + gold_count) if right else 0.0)
