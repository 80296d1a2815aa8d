"""Accuracy of tags: the metric of tasks with one tag for each word or sentence."""

from __future__ import annotations

from itertools import chain
from operator import eq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized


def accuracy(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the share of correct tags over all words of all sentences.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags of each sentence.

    Returns:
        Correct tags / all tags, in 0..1; 0 when there are no words.

    Raises:
        ValueError: The sentences differ in number or in length.
    """
    check_aligned(gold, predicted)
    words = sum(map(len, gold))
    correct = sum(map(eq, chain.from_iterable(gold), chain.from_iterable(predicted)))
    return correct / words if words else 0.0


def check_aligned(gold: Sequence[Sized], predicted: Sequence[Sized], unit: str = "tags") -> None:
    """Refuse labellings of different sizes.

    Args:
        gold: Gold labels of each sentence.
        predicted: Predicted labels of each sentence.
        unit: Plural noun for the labels, used in the message.

    Raises:
        ValueError: The sentences differ in number or in length.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sentences but {len(predicted)} predicted ones")
    for i, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(
                f"sentence {i} (counted from 0): {len(gold_tags)} gold but {len(predicted_tags)} predicted {unit}"
            )
