"""Utterances: the label of their first place is the intent, the others are the slots of their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.entities import entity_f1

if TYPE_CHECKING:
    from collections.abc import Sequence

    Labels = Sequence[Sequence[str]]


def exact_match(gold: Labels, predicted: Labels) -> float:
    """The share of sentences whose every label is right: of utterances their intent and all of their slots; 0 when
    there are none.

    Raises ValueError when the sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    return share([list(labels) == list(answer) for labels, answer in zip(gold, predicted, strict=True)])


def intent_accuracy(gold: Labels, predicted: Labels) -> float:
    """The share of utterances whose intent is right; 0 when there are none. Raises what `exact_match` raises."""
    check_aligned(gold, predicted)
    return share([labels[0] == answer[0] for labels, answer in zip(gold, predicted, strict=True)])


def slot_f1(gold: Labels, predicted: Labels) -> float:
    """Micro-averaged F1 of exact slots and types, in BIOES tags. Raises what `entity_f1` raises of these."""
    return entity_f1([labels[1:] for labels in gold], [labels[1:] for labels in predicted]).f1


def share(right: Sequence[bool]) -> float:
    """The share of what is right; 0 when there is nothing."""
    return sum(right) / len(right) if right else 0.0
