"""Entity F1 as in papers: exact spans and types, micro-averaged, counted as conlleval and seqeval count.

A malformed span is a span (`bioes.py`). A predicted one counts as a prediction, so that the score is that of the spans
in the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.bioes import count_spans

if TYPE_CHECKING:
    from collections.abc import Sequence


class F1(NamedTuple):
    """Precision, recall and their harmonic mean, in 0..1."""

    precision: float
    recall: float
    f1: float


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> F1:
    """Return micro-averaged precision, recall and F1 of the spans in BIOES tags.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags of each sentence.

    Returns:
        Scores in 0..1; precision is 0 without predicted spans, and recall is 0 without gold spans.

    Raises:
        ValueError: The sentences differ in number or length, or a tag is not BIOES.
    """
    check_aligned(gold, predicted)
    counts = count_spans(gold, predicted).values()
    right, predicted_count, gold_count = (sum(count[place] for count in counts) for place in range(3))
    precision, recall = (
        right / predicted_count if predicted_count else 0.0,
        right / gold_count if gold_count else 0.0,
    )
    return F1(precision, recall, 2 * right / (predicted_count + gold_count) if right else 0.0)
