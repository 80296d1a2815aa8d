"""A task: a label form and a metric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from raykd.errors import CorpusError
from raykd.figures.table import AGREEMENT
from raykd.forms import LabelForm
from raykd.metrics import entity_f1, score_metrics

if TYPE_CHECKING:
    import numpy as np

    from raykd.corpora.corpus import Corpus
    from raykd.figures.results import Group, Score
    from raykd.forms import TagSet
    from raykd.forms.targets import TargetColumn
    from raykd.metrics.languages import Metric


WITHOUT_GOLD = f"_{AGREEMENT}"
"""Ending of the names of tasks without gold labels."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A label form with a metric, and the names of the score."""

    name: str
    form: LabelForm
    """Form of the labels."""
    one_label_per: Literal["word", "sentence", "pair"] = "word"
    """Unit with one label: a word, a sentence, or a pair of texts."""
    score_name: str
    """The metric's name in sweep files, MLflow and CSV."""
    score_label: str
    """The metric's name in tables and messages."""
    metric: Metric
    other_metrics: Mapping[str, Metric] = field(default_factory=dict, hash=False)
    """Further metrics of the same labels by name, shown beside the score."""
    scored_words: Callable[..., np.ndarray] | None = None
    """From a gold labelling to a mask of the words that the metric counts, bool [T]; None: it counts all of them."""
    pos: str = ""
    """Part of speech whose words the metric leaves out, so that the corpus must have it; empty: none."""

    @property
    def with_gold(self) -> str:
        """Name of the task where there are gold labels."""
        return self.name.removesuffix(WITHOUT_GOLD)

    @property
    def has_gold(self) -> bool:
        """False if the labels of dev and test are a teacher's own."""
        return self.name == self.with_gold

    @property
    def without_gold(self) -> Task:
        """The task where a teacher's own labels stand in for gold labels, so that the score is its agreement."""
        return replace(
            self,
            name=self.with_gold + WITHOUT_GOLD,
            score_name=AGREEMENT,
            score_label=AGREEMENT,
            other_metrics={},
        )

    @property
    def unit(self) -> Literal["word", "sentence"]:
        """The unit of one label; a pair of texts is one sentence."""
        return "word" if self.one_label_per == "word" else "sentence"

    @property
    def reads_pairs(self) -> bool:
        """True if a sentence is a pair of texts."""
        return self.one_label_per == "pair"

    def check(self, corpus: Corpus, source: str) -> None:
        """Check the labels of a corpus against the task.

        Args:
            corpus: the corpus.
            source: file or name that it was read from, for the error.

        Raises:
            CorpusError: the labels have another unit or form, or a part of speech is missing.
        """
        if corpus.unit != self.unit and not self.form.hides_pieces:
            other_hint = "set another task, or source: tsv"
            hint = "set task: classification" if corpus.unit == "sentence" else other_hint
            problem = (
                f"it has one label per {corpus.unit}, and task {self.name!r} predicts one per {self.unit}"
            )
            raise CorpusError(source, None, problem, hint)
        fault = self.form.fault(corpus, self.name)
        if fault is None and self.pos and self.pos not in corpus.pos:
            problem = (
                f"no word has the part of speech {self.pos}, by which task {self.name!r} leaves words out"
            )
            fault = problem, "set corpus.pos: upos, or another task"
        if fault is not None:
            raise CorpusError(source, None, *fault)

    def score(
        self,
        gold: TargetColumn,
        predicted: Sequence[object],
        *,
        tag_set: TagSet,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """Score predictions over the source languages and, where there are any, over the targets.

        Args:
            gold: the targets of the sentences.
            predicted: the result of the form's `best` for each sentence.
            tag_set: the tags of the corpus.
            languages: the language of each sentence.
            targets: languages that form a separate group.

        Returns:
            The score of each group, with the other metrics.

        Raises:
            ValueError: sentences differ in number or length.
        """
        gold_labels, predicted_labels = self.form.metric_inputs(gold, predicted, tag_set)
        return score_metrics(
            self.metric, self.other_metrics, gold_labels, predicted_labels, languages, targets=targets
        )


def span_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the micro-averaged F1 of exact spans and types.

    Args:
        gold: BIOES tags of each sentence.
        predicted: BIOES tags of each sentence.
    """
    return entity_f1(gold, predicted).f1
