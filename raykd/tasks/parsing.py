"""Dependency parsing, scored by the share of words with the right head and relation (LAS).

Further metrics are the share of words with the right head (UAS), and the share of words whose head changed when trees
were repaired. Scores with and without punctuation differ by points, so `PARSING` has a task for each rule of the words
that count, and the label of its score states the rule. `parsing` counts every word, as CoNLL-2018 does for Universal
Dependencies.
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
        metric=partial(_attachment_score, "las", punctuation),
        other_metrics=MappingProxyType(
            {"uas": partial(_attachment_score, "uas", punctuation), "repairs": _repaired_share}
        ),
        scored_words=partial(_scored_words, punctuation),
        pos=PUNCT if punctuation == "by_tag" else "",
    )


def _scored_words(punctuation: Punctuation, gold: GoldTree) -> np.ndarray:
    """Return a mask of the counted words, bool [T]."""
    if punctuation == "by_tag":
        return np.array([name != PUNCT for name in gold.pos], bool)
    if punctuation == "by_characters":
        return np.array([not is_punctuation(word) for word in gold.words], bool)
    return np.ones(len(gold.heads_T), bool)


def _attachment_score(
    score: Literal["las", "uas"],
    punctuation: Punctuation,
    gold: Sequence[GoldTree],
    predicted: Sequence[Parse],
) -> float:
    result = attachment(
        [(tree.heads_T, tree.relations_T) for tree in gold],
        [(parse.heads_T, parse.relations_T) for parse in predicted],
        [_scored_words(punctuation, tree) for tree in gold],
    )
    return result.uas if score == "uas" else result.las


def _repaired_share(gold: Sequence[GoldTree], predicted: Sequence[Parse]) -> float:
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
"""Name → task: one for each rule of the words that count."""
