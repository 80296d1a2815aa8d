"""Metrics of intent-and-slot trees, each a sequence of opening brackets, closing brackets and words.

A prediction may be no tree at all. Words are compared, not their places, as mTOP's evaluation does: of two equal words
either will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from raykd.metrics.intents import share

if TYPE_CHECKING:
    from collections.abc import Sequence


class Parse(NamedTuple):
    """A predicted or gold tree, written out."""

    steps: tuple[str, ...]
    is_tree: bool


def tree_exact_match(gold: Sequence[Parse], predicted: Sequence[Parse]) -> float:
    """Return the share of sentences with the right brackets and words in the right order; 0 without sentences.

    Args:
        gold: Gold trees.
        predicted: Predicted trees, one for each gold tree.
    """
    return share([tree == answer for tree, answer in zip(gold, predicted, strict=True)])


def root_accuracy(gold: Sequence[Parse], predicted: Sequence[Parse]) -> float:
    """Return the share of sentences with the right first step, which opens the root; 0 without sentences.

    Args:
        gold: Gold trees.
        predicted: Predicted trees, one for each gold tree; later steps are ignored.
    """
    return share([tree.steps[:1] == answer.steps[:1] for tree, answer in zip(gold, predicted, strict=True)])


def well_formed(_: Sequence[Parse], predicted: Sequence[Parse]) -> float:
    """Return the share of trees among the predictions; 0 without predictions.

    Args:
        _: Gold trees, ignored.
        predicted: Predicted trees.
    """
    return share([parse.is_tree for parse in predicted])
