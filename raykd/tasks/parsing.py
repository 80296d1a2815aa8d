"""Dependency parsing: the share of words with the right head and relation (LAS), beside it with the right head (UAS).

Which words are scored changes these by points, so there is a task for each rule in `PARSING`, and what its score is
called states the rule. `parsing` scores every word, as CoNLL-2018 scores Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from raykd.corpora.head_codes import NONE, READ_POS, Encoding, TreeLabels, encoded_part
from raykd.counted import counted
from raykd.errors import CorpusError
from raykd.forms import TREE, LabelForm
from raykd.metrics import score_beside
from raykd.metrics.attachment import Punctuation, attachment, is_punctuation

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.corpora.corpus import Corpus
    from raykd.corpora.tags import TagSet
    from raykd.corpora.tree_targets import TreeColumn
    from raykd.figures.results import Group, Score
    from raykd.layers.model import Output
    from raykd.structures import Chain

PUNCT = "PUNCT"
"""The part of speech of punctuation in Universal Dependencies."""
Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Heads, relations and whether each word is scored, each [T], of one sentence."""
_UNLABELLED = pa.schema(
    {"tokens": pa.list_(pa.string()), **{name: pa.list_(pa.int16()) for name in ("tags", "heads", "pos")}}
)


class Parse(NamedTuple):
    """The tree that is predicted of one sentence."""

    heads_T: np.ndarray
    """0 the root, h the word h − 1."""
    relations_T: np.ndarray
    """By their numbers in the corpus' tag set."""
    repaired_T: np.ndarray
    """Whether the word's best head is another, and the best heads together are no tree."""


@dataclass(frozen=True, kw_only=True)
class ParsingTask:
    """Dependency parsing, with one rule of which words are scored."""

    name: str
    score_label: str
    """What people read."""
    punctuation: Punctuation
    score_name: str = "las"
    unit: Literal["word", "sentence"] = "word"
    scheme: Literal["bioes", "flat", "utterance"] = "flat"
    pairs: ClassVar[bool] = False
    form: ClassVar[LabelForm] = TREE
    structure: ClassVar[Literal["labels", "trees"]] = "trees"
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language", "heads", "pos")

    @property
    def reads_gold_pos(self) -> bool:
        """Whether words are left out by their gold parts of speech."""
        return self.punctuation == "by_tag"

    def check(self, corpus: Corpus, where: str) -> None:
        """Raise CorpusError where a corpus, read from `where`, has no trees, or does not say what punctuation is."""
        if not corpus.pos:
            hint = "set corpus.source: conllu and corpus.tag: tree, or another task"
            raise CorpusError(where, None, f"it has no trees, and task {self.name!r} predicts them", hint)
        if self.punctuation == "by_tag" and PUNCT not in corpus.pos:
            problem = f"no word has the part of speech {PUNCT}, by which task {self.name!r} leaves words out"
            raise CorpusError(where, None, problem, "set corpus.pos: upos, or another task")

    def student_labels(self, corpus: Corpus, encoding: Encoding, where: str) -> TreeLabels:
        """The labels of a student: those of the trees in train, each word's head and relation as one label.

        Raises:
            CorpusError: sentences of the corpus, read from `where`, lack the parts of speech that the encoding reads.
        """
        if encoding in READ_POS:
            without = {part: table["pos"].null_count for part, table in corpus.parts.items()}
            lacking = ", ".join(
                f"{counted(count, 'sentence')} of {part}" for part, count in without.items() if count
            )
            if lacking:
                problem = f"{lacking} without parts of speech, which student.encoding: {encoding} reads"
                hint = "set corpus.predicted_pos, or student.encoding: relative_position"
                raise CorpusError(where, None, problem, hint)
        names = {"pos": corpus.pos, "relations": corpus.tag_set.tags}
        sentences = encoded_part(corpus.parts["train"], **names, encoding=encoding)
        return TreeLabels.of(sentences, **names, encoding=encoding)

    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: TagSet | TreeLabels) -> TreeColumn:
        """The trees of a corpus part; `pos` are the names of the corpus' parts of speech, `labels` what a model
        predicts: a student its own, a parser the corpus' relations."""
        from raykd.corpora.tree_targets import TreeColumn

        return TreeColumn.of(table, pos, labels)

    def unlabelled(
        self,
        sentences: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str]] | None,
        labels: TagSet | TreeLabels,
    ) -> TreeColumn:
        """Sentences without trees, with their parts of speech where these are given.

        Raises:
            ValueError: the labels name parts of speech and `pos` is missing, has another number of them than there are
                words, or one that neither they have nor, where theirs are universal ones, UPOS has.
        """
        names: Sequence[str] = labels.known_pos if isinstance(labels, TreeLabels) else ()
        if isinstance(labels, TreeLabels) and labels.encoding in READ_POS and pos is None:
            raise ValueError("its labels name parts of speech: give pos, one for every word")
        given = pos if pos is not None and names else [None] * len(sentences)
        rows = []
        for words, own in zip(sentences, given, strict=True):
            if own is not None and len(own) != len(words):
                raise ValueError(
                    f"expected {counted(len(words), 'part')} of speech, one for each of {list(words)}, got {list(own)}"
                )
            unknown = [name for name in own or () if name not in names]
            if unknown:
                raise ValueError(f"unknown part of speech {unknown[0]!r} ({', '.join(names)})")
            numbers = None if own is None else [names.index(name) for name in own]
            rows.append({"tokens": list(words), "tags": None, "heads": None, "pos": numbers})
        return self.targets(pa.Table.from_pylist(rows, schema=_UNLABELLED), pos=names, labels=labels)

    def decode(self, gold: TreeColumn, output: Output, rows: np.ndarray) -> list[Parse]:
        """The best tree of every sentence of a batch; `rows` are those of its sentences in `gold`, of which parts of
        speech are read.

        Each word's best head is taken where these are a tree with one root. Else it is the tree whose heads score best
        (`best_trees`).
        """
        from raykd.structures import Chain
        from raykd.structures.labelled_arcs import LabelledArcs

        given: Any = output.distribution
        chain = Chain(given.emissions_BTY.cpu(), given.lengths_B.cpu())
        if isinstance(gold.labels, TreeLabels):
            return _of_labels(chain, gold.labels, gold.codes(rows))
        found = LabelledArcs.of(chain)
        best_BT, heads_BT = _trees(found.arcs_BTH, chain.lengths_B)
        relations_BT = found.relations_BTHR.argmax(3).gather(2, heads_BT[:, :, None])[:, :, 0]
        return _parses(heads_BT, relations_BT, heads_BT != best_BT, chain.lengths_B)

    def score(
        self,
        gold: TreeColumn,
        predicted: Sequence[Parse],
        *,
        tag_set: TagSet,
        languages: Sequence[str],
        targets: Collection[str] = (),
    ) -> Mapping[Group, Score]:
        """LAS over source languages and, where there are any, over the `targets`; UAS of the same words is `beside` it,
        and so is which share of all words had another head before trees were repaired.

        Raises ValueError where sentences differ in number or length.
        """
        words = [(*tree, scored) for tree, scored in zip(gold.trees(), self.scored(gold), strict=True)]
        return score_beside(partial(_share, "las"), BESIDE, words, predicted, languages, targets=targets)

    def scored(self, gold: TreeColumn) -> Iterator[np.ndarray]:
        """Which words are scored, bool [T] of each sentence."""
        if self.punctuation == "scored":
            return (np.ones(len(heads_T), bool) for heads_T, _ in gold.trees())
        if self.punctuation == "by_tag":
            punct = gold.names.index(PUNCT) if PUNCT in gold.names else None
            return (pos_T != punct for pos_T in gold.parts_of_speech())
        return (np.array([not is_punctuation(word) for word in words], bool) for words in gold.texts())


def _of_labels(chain: Chain, labels: TreeLabels, codes_BTH: np.ndarray) -> list[Parse]:
    """The trees that a student's labels say; a head counts by the best label that means it."""
    import torch

    from raykd.structures.labelled_arcs import NEVER

    scores_BTY = chain.emissions_BTY.log_softmax(2).numpy()
    by_code = np.argsort(labels.codes_Y, kind="stable")
    starts_C = np.searchsorted(labels.codes_Y[by_code], np.arange(labels.codes_Y.max() + 1))
    scores_BTC = np.maximum.reduceat(scores_BTY[:, :, by_code], starts_C, axis=2)
    # What has no code is read behind the last one.
    scores_BTC = np.pad(scores_BTC, ((0, 0), (0, 0), (0, 1)), constant_values=NEVER)
    scores_BTH = torch.from_numpy(np.take_along_axis(scores_BTC, codes_BTH, 2))
    _, heads_BT = _trees(scores_BTH, chain.lengths_B)
    codes_BT1 = np.take_along_axis(codes_BTH, heads_BT[:, :, None].numpy(), 2)
    best_BT = scores_BTY.argmax(2)
    with_head_BTY = np.where(labels.codes_Y == codes_BT1, scores_BTY, -np.inf)
    labels_BT = np.where(codes_BT1[:, :, 0] == NONE, best_BT, with_head_BTY.argmax(2))
    repaired_BT = labels.codes_Y[best_BT] != codes_BT1[:, :, 0]
    return _parses(heads_BT, labels.relations_Y[labels_BT], repaired_BT, chain.lengths_B)


def _trees(scores_BTH: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """The best head of each word by itself, and those of the best tree [B, T]."""
    from raykd.structures import Arcs, are_trees, best_trees

    arcs = Arcs(scores_BTH, lengths_B)
    best_BT = arcs.possible().argmax(2)
    heads_BT, others = best_BT.clone(), (~are_trees(arcs, best_BT)).nonzero()[:, 0]
    if len(others):
        heads_BT[others] = best_trees(Arcs(scores_BTH[others], lengths_B[others]))[0]
    return best_BT, heads_BT


def _parses(heads_BT: Any, relations_BT: Any, repaired_BT: Any, lengths_B: Tensor) -> list[Parse]:
    parts = [np.asarray(part) for part in (heads_BT, relations_BT, repaired_BT)]
    return [Parse(*(part[b, :length] for part in parts)) for b, length in enumerate(lengths_B.tolist())]


def _share(metric: Literal["las", "uas"], gold: Sequence[Words], predicted: Sequence[Parse]) -> float:
    found = attachment(
        [(heads_T, relations_T) for heads_T, relations_T, _ in gold],
        [(parse.heads_T, parse.relations_T) for parse in predicted],
        [scored_T for _, _, scored_T in gold],
    )
    return found.uas if metric == "uas" else found.las


def _repaired(gold: Sequence[Words], predicted: Sequence[Parse]) -> float:
    words = sum(len(parse.repaired_T) for parse in predicted)
    return sum(int(parse.repaired_T.sum()) for parse in predicted) / words if words else 0.0


BESIDE: Mapping[str, Callable[[Sequence[Words], Sequence[Parse]], float]] = MappingProxyType(
    {"uas": partial(_share, "uas"), "repairs": _repaired}
)
"""What is shown beside LAS: name → its function."""
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
