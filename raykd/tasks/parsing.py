"""Dependency parsing: the share of words with the right head and relation (LAS), beside it with the right head (UAS).

Which words are scored changes these by points, so there is a task for each rule in `PARSING`, and what its score is
called states the rule. `parsing` scores every word, as CoNLL-2018 scores Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from raykd.corpora.tree_targets import TreeColumn
from raykd.errors import CorpusError
from raykd.metrics import score_languages
from raykd.metrics.attachment import Punctuation, attachment, is_punctuation

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.corpora.corpus import Corpus
    from raykd.corpora.tags import TagSet
    from raykd.results import Group, Score

PUNCT = "PUNCT"
"""The part of speech of punctuation in Universal Dependencies."""
Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Heads, relations and whether each word is scored, each [T], of one sentence."""


@dataclass(frozen=True, kw_only=True)
class ParsingTask:
    """Dependency parsing, with one rule of which words are scored."""

    name: str
    score_label: str
    """What people read."""
    punctuation: Punctuation
    score_name: str = "las"
    unit: Literal["word", "sentence"] = "word"
    scheme: Literal["bioes", "flat"] = "flat"

    def check(self, corpus: Corpus, where: str) -> None:
        """Raise CorpusError where a corpus, read from `where`, has no trees, or does not say what punctuation is."""
        if not corpus.pos:
            hint = "set corpus.source: conllu and corpus.tag: tree, or another task"
            raise CorpusError(where, None, f"it has no trees, and task {self.name!r} predicts them", hint)
        if self.punctuation == "by_tag" and PUNCT not in corpus.pos:
            problem = f"no word has the part of speech {PUNCT}, by which task {self.name!r} leaves words out"
            raise CorpusError(where, None, problem, "set corpus.pos: upos, or another task")

    def targets(self, table: pa.Table, pos: Sequence[str]) -> TreeColumn:
        """The trees of a corpus part; `pos` are the names of the corpus' parts of speech."""
        return TreeColumn.of(table, pos)

    def score(
        self,
        gold: TreeColumn,
        predicted: Sequence[np.ndarray],
        *,
        tag_set: TagSet,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """LAS over source languages and, where there are any, over the `targets`; UAS of the same words is `beside` it.

        `predicted` has of each sentence the head of every word (0 the root, h the word h − 1) and the number of its
        relation in the tag set, int [T, 2]. Raises ValueError where sentences differ in number or length.
        """
        words = [(*tree, scored) for tree, scored in zip(gold.trees(), self._scored(gold), strict=True)]
        las, uas = (
            score_languages(partial(_share, metric), words, predicted, languages, targets=targets)
            for metric in ("las", "uas")
        )
        return {group: replace(score, beside={"uas": uas[group]}) for group, score in las.items()}

    def _scored(self, gold: TreeColumn) -> Iterator[np.ndarray]:
        """Which words are scored, bool [T] of each sentence."""
        if self.punctuation == "scored":
            return (np.ones(len(heads_T), bool) for heads_T, _ in gold.trees())
        if self.punctuation == "by_tag":
            punct = gold.names.index(PUNCT) if PUNCT in gold.names else None
            return (pos_T != punct for pos_T in gold.parts_of_speech())
        return (np.array([not is_punctuation(word) for word in words], bool) for words in gold.texts())


def _share(metric: Literal["las", "uas"], gold: Sequence[Words], predicted: Sequence[np.ndarray]) -> float:
    found = attachment(
        [(heads_T, relations_T) for heads_T, relations_T, _ in gold],
        [(tree_T2[:, 0], tree_T2[:, 1]) for tree_T2 in predicted],
        [scored_T for _, _, scored_T in gold],
    )
    return found.uas if metric == "uas" else found.las


PARSING: Mapping[str, ParsingTask] = MappingProxyType(
    {
        task.name: task
        for task in (
            ParsingTask(name="parsing", score_label="LAS", punctuation="scored"),
            ParsingTask(name="parsing_without_punct", score_label="LAS without PUNCT", punctuation="by_tag"),
            ParsingTask(
                name="parsing_without_punctuation_words",
                score_label="LAS without punctuation",
                punctuation="by_characters",
            ),
        )
    }
)
"""A task for each rule of which words are scored."""
