"""Dependency parsing: the share of words with the right head and relation (LAS), beside it with the right head (UAS),
and the share of words that had another head before trees were repaired.

Which words are scored changes these by points, so there is a task for each rule in `PARSING`, and what its score is
called states the rule. `parsing` scores every word, as CoNLL-2018 scores Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from raykd.forms import TREE
from raykd.metrics.attachment import Punctuation, attachment, is_punctuation
from raykd.tasks.task import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from raykd.forms.tree import GoldTree
    from raykd.forms.tree.best_parse import Parse

PUNCT = "PUNCT"
"""The part of speech of punctuation in Universal Dependencies."""


def _task(name: str, score_label: str, punctuation: Punctuation) -> Task:
    return Task(
        name=name,
        form=TREE,
        score_name="las",
        score_label=score_label,
        metric=partial(_share, "las", punctuation),
        other_metrics=MappingProxyType({"uas": partial(_share, "uas", punctuation), "repairs": _repaired}),
        scored_words=partial(_scored, punctuation),
        pos=PUNCT if punctuation == "by_tag" else "",
    )


def _scored(punctuation: Punctuation, gold: GoldTree) -> np.ndarray:
    """Which words are scored, bool [T]."""
    if punctuation == "by_tag":
        return np.array([name != PUNCT for name in gold.pos], bool)
    if punctuation == "by_characters":
        return np.array([not is_punctuation(word) for word in gold.words], bool)
    return np.ones(len(gold.heads_T), bool)


def _share(
    score: Literal["las", "uas"],
    punctuation: Punctuation,
    gold: Sequence[GoldTree],
    predicted: Sequence[Parse],
) -> float:
    found = attachment(
        [(tree.heads_T, tree.relations_T) for tree in gold],
        [(parse.heads_T, parse.relations_T) for parse in predicted],
        [_scored(punctuation, tree) for tree in gold],
    )
    return found.uas if score == "uas" else found.las


def _repaired(gold: Sequence[GoldTree], predicted: Sequence[Parse]) -> float:
    words = sum(len(parse.repaired_T) for parse in predicted)
    return sum(int(parse.repaired_T.sum()) for parse in predicted) / words if words else 0.0


PARSING: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            _task("parsing", "LAS", "scored"),
            _task("parsing_without_punct", "LAS without PUNCT", "by_tag"),
            _task("parsing_without_punctuation_words", "LAS without punctuation", "by_characters"),
        )
    }
)
"""A task for each rule of which words are scored."""
