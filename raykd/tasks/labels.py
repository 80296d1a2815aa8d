"""Tasks that predict labels: one for each word, or one for each sentence (a chain of length 1).

A task is data and four functions: the targets of a corpus part, the labels that a model predicts, how they are decoded
from its output, and how they are scored. Another kind of task (trees, sequences) is another class with these four.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from raykd.errors import CorpusError
from raykd.forms import LabelForm
from raykd.metrics import entity_f1, score_beside

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.corpora.corpus import Corpus
    from raykd.corpora.tags import TagSet
    from raykd.corpora.targets import LabelColumn
    from raykd.figures.results import Group, Score
    from raykd.layers.model import Output

Labels = Sequence[Sequence[str]]


def span_f1(gold: Labels, predicted: Labels) -> float:
    """Micro-averaged F1 of exact spans and types, in BIOES tags."""
    return entity_f1(gold, predicted).f1


@dataclass(frozen=True, kw_only=True)
class LabelTask:
    """One task of the table."""

    name: str
    score_name: str
    """The metric's name in sweep files, MLflow and CSV."""
    score_label: str
    """What people read."""
    metric: Callable[[Labels, Labels], float]
    """From gold and predicted labels of every sentence to 0..1."""
    scheme: Literal["bioes", "flat", "utterance"]
    beside: Mapping[str, Callable[[Labels, Labels], float]] = field(default_factory=dict, hash=False)
    """Other metrics of the same labels, by their names: what is shown beside the score."""
    unit: Literal["word", "sentence"] = "word"
    form: LabelForm
    """What its labels look like."""
    pairs: bool = False
    """Whether a sentence is a pair of texts."""
    structure: ClassVar[Literal["labels", "trees"]] = "labels"
    """What is predicted of a sentence."""
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language")
    """The columns of a corpus part that it reads."""

    def check(self, corpus: Corpus, where: str) -> None:
        """Raise CorpusError where the labels of a corpus, read from `where`, are not those of the task."""
        if corpus.unit != self.unit:
            hint = (
                "set task: classification"
                if corpus.unit == "sentence"
                else "set another task, or source: tsv"
            )
            problem = (
                f"it has one label per {corpus.unit}, and task {self.name!r} predicts one per {self.unit}"
            )
            raise CorpusError(where, None, problem, hint)
        if corpus.tag_set.scheme != self.scheme:
            problem = f"its tags are {corpus.tag_set.scheme}, and task {self.name!r} needs {self.scheme} tags"
            utterances = "utterance" in (corpus.tag_set.scheme, self.scheme)
            hint = (
                "set corpus.source, or another task" if utterances else "set corpus.scheme, or another task"
            )
            raise CorpusError(where, None, problem, hint)

    def targets(self, table: pa.Table, *, pos: Sequence[str] = (), labels: Any = None) -> LabelColumn:
        """The labels of a corpus part; neither `pos` nor `labels` is read."""
        from raykd.corpora.targets import LabelColumn

        return LabelColumn.of(table)

    def decode(self, gold: LabelColumn, output: Output, rows: np.ndarray) -> list[np.ndarray]:
        """The best labels of every sentence of a batch, as numbers in the tag set; neither `gold` nor `rows`, those of
        its sentences there, is read."""
        return best_labels(output)

    def score(
        self,
        gold: LabelColumn,
        predicted: Sequence[np.ndarray],
        *,
        tag_set: TagSet,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """The metric over source languages and, where there are any, over the `targets`; others are `beside` it."""
        names, gold_names = [tag_set.decode(path) for path in predicted], gold.lists(tag_set.tags)
        return score_beside(self.metric, self.beside, gold_names, names, languages, targets=targets)


def best_labels(output: Output) -> list[np.ndarray]:
    """The best labelling of every sentence of a batch, among the legal ones where the output says which these are, by
    the numbers of its labels."""
    from raykd.structures import viterbi

    paths_BT = viterbi(output.distribution, output.legal)[0].cpu().numpy()
    lengths_B = output.distribution.lengths_B.tolist()
    return [path[:length] for path, length in zip(paths_BT, lengths_B, strict=True)]
