"""A task: a label form and a metric."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from raykd.errors import CorpusError
from raykd.forms import LabelForm
from raykd.metrics import entity_f1, score_metrics

if TYPE_CHECKING:
    import numpy as np

    from raykd.corpora.corpus import Corpus
    from raykd.figures.results import Group, Score
    from raykd.forms import TagSet
    from raykd.forms.targets import TargetColumn
    from raykd.metrics.languages import Metric


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task of the table."""

    name: str
    form: LabelForm
    """What its labels look like."""
    one_label_per: Literal["word", "sentence", "pair"] = "word"
    """What one label belongs to."""
    score_name: str
    """The metric's name in sweep files, MLflow and CSV."""
    score_label: str
    """What people read."""
    metric: Metric
    other_metrics: Mapping[str, Metric] = field(default_factory=dict, hash=False)
    """Other metrics of the same labels, by their names: what is shown beside the score."""
    scored_words: Callable[..., np.ndarray] | None = None
    """Which words of a gold labelling the metric counts, bool [T]; None: all of them."""
    pos: str = ""
    """A part of speech by which the metric leaves words out: the corpus must have it."""

    @property
    def unit(self) -> Literal["word", "sentence"]:
        """What one label belongs to; a pair of texts is one sentence."""
        return "word" if self.one_label_per == "word" else "sentence"

    @property
    def reads_pairs(self) -> bool:
        """Whether a sentence is a pair of texts."""
        return self.one_label_per == "pair"

    def check(self, corpus: Corpus, source: str) -> None:
        """Raise CorpusError where the labels of a corpus, read from `where`, are not those of the task."""
        if corpus.unit != self.unit and not self.form.hides_pieces:
            other = "set another task, or source: tsv"
            hint = "set task: classification" if corpus.unit == "sentence" else other
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
        """The metric over source languages and, where there are any, over the `targets`; others are `beside` it.

        Args:
            gold: the targets of the sentences.
            predicted: what the form's `best_labellings` gave of each of them.
            tag_set: the tags of the corpus.
            languages: the language of each sentence.
            targets: languages that are a group of their own.

        Raises:
            ValueError: sentences differ in number or length.
        """
        own, found = self.form.metric_inputs(gold, predicted, tag_set)
        return score_metrics(self.metric, self.other_metrics, own, found, languages, targets=targets)


def span_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Micro-averaged F1 of exact spans and types, in BIOES tags."""
    return entity_f1(gold, predicted).f1
