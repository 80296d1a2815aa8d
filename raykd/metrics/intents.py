"""Metrics of utterances. The first label of an utterance is its intent; the others are the slots of its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.entities import entity_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    Labels = Sequence[Sequence[str]]


def exact_match(gold: Labels, predicted: Labels) -> float:
    """Return the share of sentences with no wrong label; of utterances, with the right intent and all slots right.

    Args:
        gold: Gold labels of each sentence.
        predicted: Predicted labels of each sentence.

    Returns:
        A share in 0..1; 0 without sentences.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    return share([list(labels) == list(answer) for labels, answer in zip(gold, predicted, strict=True)])


def intent_accuracy(gold: Labels, predicted: Labels) -> float:
    """Return the share of utterances with the right intent.

    Args:
        gold: Gold intent and slots of each utterance.
        predicted: Predicted intent and slots of each utterance.

    Returns:
        A share in 0..1; 0 without utterances.

    Raises:
        ValueError: The utterances differ in number or length.
    """
    check_aligned(gold, predicted)
    return share([labels[0] == answer[0] for labels, answer in zip(gold, predicted, strict=True)])


def slot_f1(gold: Labels, predicted: Labels) -> float:
    """Return the micro-averaged F1 of exact slots and types.

    Args:
        gold: Gold intent, then BIOES tags of the words, for each utterance.
        predicted: The same, predicted.

    Raises:
        ValueError: The utterances differ in number or length, or a slot tag is not BIOES.
    """
    return entity_f1([labels[1:] for labels in gold], [labels[1:] for labels in predicted]).f1


def share(right: Sequence[bool]) -> float:
    """Return the share of True values; 0 without values."""
    return sum(right) / len(right) if right else 0.0
