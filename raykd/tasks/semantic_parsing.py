"""Semantic parsing: the tree of intents and slots of an utterance, written step by step (`corpora/semantic_trees.py`).

Trees are those of mTOP's files, or are made of intents and slots. The score is the share of trees that are right (exact
match); beside it the share of right intents at the root, and how much of what is generated is a tree at all. What is
none is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from raykd.corpora.semantic_trees import steps_of_slots, tree_of, written
from raykd.errors import CorpusError
from raykd.forms import STEPS, LabelForm
from raykd.metrics import score_beside
from raykd.metrics.brackets import Parse, root_accuracy, tree_exact_match, well_formed
from raykd.tasks.labels import best_labels

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.corpora.corpus import Corpus
    from raykd.corpora.step_targets import StepColumn
    from raykd.corpora.tags import TagSet
    from raykd.figures.results import Group, Score
    from raykd.layers.model import Output

BESIDE: Mapping[str, Callable[[Sequence[Parse], Sequence[Parse]], float]] = MappingProxyType(
    {"intent_accuracy": root_accuracy, "well_formed": well_formed}
)


@dataclass(frozen=True, kw_only=True)
class SemanticParsingTask:
    """Predicts trees of intents and slots."""

    name: str = "semantic_parsing"
    score_name: str = "exact_match"
    score_label: str = "exact match"
    unit: Literal["word"] = "word"
    scheme: Literal["parse"] = "parse"
    pairs: ClassVar[bool] = False
    form: ClassVar[LabelForm] = STEPS
    structure: ClassVar[Literal["steps"]] = "steps"
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language")
    """The columns of a corpus part that it reads."""

    def check(self, corpus: Corpus, where: str) -> None:
        """Raise CorpusError where a corpus, read from `where`, has neither trees nor intents and slots."""
        if corpus.tag_set.scheme not in ("parse", "utterance"):
            problem = f"its tags are {corpus.tag_set.scheme}, and task {self.name!r} needs trees, or intents and slots"
            raise CorpusError(where, None, problem, "set corpus.source: mtop, atis, xsid or multiatis")

    def labels(self, tag_set: TagSet) -> TagSet:
        """What a model generates besides words, where the corpus' tags are `tag_set`."""
        return tag_set if tag_set.scheme == "parse" else steps_of_slots(tag_set)

    def targets(self, table: pa.Table, *, pos: Sequence[str] = (), labels: TagSet) -> StepColumn:
        """The trees of a corpus part; `labels` are the corpus' tags, `pos` is not read."""
        from raykd.corpora.step_targets import StepColumn

        return StepColumn.of(table, labels)

    def decode(self, gold: StepColumn, output: Output, rows: np.ndarray) -> list[np.ndarray]:
        """The steps of every sentence of a batch, as numbers; neither `gold` nor `rows` is read."""
        return best_labels(output)

    def score(
        self,
        gold: StepColumn,
        predicted: Sequence[np.ndarray],
        *,
        tag_set: Any,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """Exact match over source languages and, where there are any, over the `targets`, with `BESIDE`; the corpus'
        `tag_set` is not read."""
        wanted = self.parses(gold, gold.lists())
        found = self.parses(gold, (gold.labels.decode(steps) for steps in predicted))
        return score_beside(tree_exact_match, BESIDE, wanted, found, languages, targets=targets)

    def parses(self, text: StepColumn, steps: Iterable[Sequence[str]]) -> list[Parse]:
        """The steps of every sentence of `text`, written out with its words."""
        return [
            Parse(tuple(written(own, words).split(" ")), tree_of(own, len(words)) is not None)
            for own, words in zip(steps, text.texts(), strict=True)
        ]


SEMANTIC_PARSING = SemanticParsingTask()
