"""Trees of intents and slots, each as what opens and closes its brackets and the words between them; what is predicted
may be no tree at all.

That words are compared, and not their places, is how mTOP's trees are compared: of two equal words either will do.
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
    """The share of sentences whose tree is right: brackets, words, and their order; 0 when there are none."""
    return share([tree == answer for tree, answer in zip(gold, predicted, strict=True)])


def root_accuracy(gold: Sequence[Parse], predicted: Sequence[Parse]) -> float:
    """The share of sentences whose first step, which opens the root, is right, whatever follows; 0 when there are
    none.
    """
    return share([tree.steps[:1] == answer.steps[:1] for tree, answer in zip(gold, predicted, strict=True)])


def well_formed(_: Sequence[Parse], predicted: Sequence[Parse]) -> float:
    """The share of predictions that are trees; 0 when there are none."""
    return share([parse.is_tree for parse in predicted])
