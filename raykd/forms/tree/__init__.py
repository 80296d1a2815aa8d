"""Dependency trees: a head and a relation for each word.

A parser predicts arcs. A student predicts labels, each of which says where a word's head is (`codes.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from typing_extensions import override

from raykd.errors import CorpusError
from raykd.forms.form import LabelForm
from raykd.forms.form_types import (
    CorpusFacts,
    ExportedModel,
    LabelledSentence,
    PosLists,
    ScoredWords,
    StringLists,
)
from raykd.forms.labels import Labels
from raykd.forms.tag_set import TagSet
from raykd.forms.targets import ModelOutput
from raykd.forms.tree.codes import READ_POS, SCHEME, Encoding, TreeLabels, encode_part
from raykd.forms.tree.drawing import draw_tree
from raykd.forms.tree.tree_column import GoldTree, TreeColumn
from raykd.identity import PlainObject
from raykd.metrics.by_label import Arc, ScoresByLabel, arcs_by_relation
from raykd.metrics.confusions import Confusion, arc_confusions
from raykd.pluralise import pluralise

if TYPE_CHECKING:
    from raykd.forms.tree.best_parse import Parse
    from raykd.structures.labelled_arcs import ArcsOnLabels, LabelledArcs

_UNLABELLED = pa.schema(
    {"tokens": pa.list_(pa.string()), **{name: pa.list_(pa.int16()) for name in ("tags", "heads", "pos")}}
)


@dataclass(frozen=True)
class Tree(LabelForm):
    """Heads and relations of words."""

    name: ClassVar[str] = "tree"
    scheme: ClassVar[str] = SCHEME
    reads: ClassVar[tuple[str, ...]] = ()
    file_scheme: ClassVar[Literal["auto", "flat"]] = "flat"
    title: ClassVar[str] = "heads and relations"
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language", "heads", "pos")
    calls: ClassVar[tuple[str, ...]] = ("parse", "label")
    reads_heads: ClassVar[bool] = True
    always_known: ClassVar[frozenset[str]] = frozenset()
    has_student_labels: ClassVar[bool] = True

    @override
    def labels_from(self, plain: PlainObject) -> TreeLabels:
        return TreeLabels.from_plain(plain)

    @override
    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        """Return one line per word, with its branch of the tree."""
        width = max(map(len, sentence.tokens))
        rows = [f"{token:{width}}  {tag}" for token, tag in zip(sentence.tokens, sentence.tags, strict=True)]
        return "\n".join(draw_tree(sentence.heads or (), rows))

    @override
    def fault(self, corpus: CorpusFacts, task: str) -> tuple[str, str] | None:
        if corpus.pos:
            return None
        hint = "set corpus.source: conllu and corpus.tag: tree, or another task"
        return f"it has no trees, and task {task!r} predicts them", hint

    @override
    def student_labels(self, corpus: CorpusFacts, encoding: Encoding, source: str) -> TreeLabels:
        """Return a student's labels for the trees in train: one label for each word's head and relation.

        Raises:
            CorpusError: Sentences lack the parts of speech that the encoding reads.
        """
        if encoding in READ_POS:
            missing = {part: table["pos"].null_count for part, table in corpus.parts.items()}
            sentences_by_part = ", ".join(
                f"{pluralise(count, 'sentence')} of {part}" for part, count in missing.items() if count
            )
            if sentences_by_part:
                problem = (
                    f"{sentences_by_part} without parts of speech, which student.encoding: {encoding} reads"
                )
                hint = "set corpus.predicted_pos, or student.encoding: relative_position"
                raise CorpusError(source, None, problem, hint)
        names = {"pos": corpus.pos, "relations": corpus.tag_set.tags}
        sentences = encode_part(corpus.parts["train"], **names, encoding=encoding)
        return TreeLabels.from_sentences(sentences, **names, encoding=encoding)

    @override
    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: Labels) -> TreeColumn:
        return TreeColumn.from_table(table, pos, labels)

    def unlabelled_column(
        self,
        sentences: Sequence[Sequence[str]],
        pos: Sequence[Sequence[str]] | None,
        labels: Labels,
    ) -> TreeColumn:
        """Return the column of sentences without trees.

        Args:
            sentences: Words of each sentence.
            pos: Parts of speech of each sentence, read by labels that name them; None without any.
            labels: Labels of the model.

        Raises:
            ValueError: The labels name parts of speech, but `pos` is missing, differs in length from the words, or
                has an unknown one. UPOS is known wherever all parts of speech of the treebank are universal.
        """
        names: Sequence[str] = labels.known_pos if isinstance(labels, TreeLabels) else ()
        if isinstance(labels, TreeLabels) and labels.encoding in READ_POS and pos is None:
            raise ValueError("its labels name parts of speech: give pos, one for every word")
        pos_rows = pos if pos is not None and names else [None] * len(sentences)
        rows = []
        for words, sentence_pos in zip(sentences, pos_rows, strict=True):
            if sentence_pos is not None and len(sentence_pos) != len(words):
                raise ValueError(
                    f"expected {pluralise(len(words), 'part')} of speech, one for each of {list(words)}, "
                    f"got {list(sentence_pos)}"
                )
            unknown = [name for name in sentence_pos or () if name not in names]
            if unknown:
                raise ValueError(f"unknown part of speech {unknown[0]!r} ({', '.join(names)})")
            numbers = None if sentence_pos is None else [names.index(name) for name in sentence_pos]
            rows.append({"tokens": list(words), "tags": None, "heads": None, "pos": numbers})
        return self.targets(pa.Table.from_pylist(rows, schema=_UNLABELLED), pos=names, labels=labels)

    @override
    def best_labellings(self, gold: TreeColumn, output: ModelOutput, rows: np.ndarray) -> list[Parse]:
        """Return the best trees of a batch of sentences.

        The best head of each word is taken if these heads are a tree with one root. Otherwise the tree with the
        highest sum of scores is searched (`best_trees`). Parts of speech are read from `gold` at `rows`.
        """
        from raykd.forms.tree.best_parse import parses_of_arcs, parses_of_labels
        from raykd.structures import Chain

        distribution: Any = output.distribution
        chain = Chain(distribution.emissions_BTY.cpu(), distribution.lengths_B.cpu())
        if isinstance(gold.labels, TreeLabels):
            return parses_of_labels(chain, gold.labels, gold.codes(rows))
        return parses_of_arcs(chain)

    @override
    def no_labels_reason(self, labels: Labels) -> str | None:
        is_student = isinstance(labels, TreeLabels)
        return None if is_student else "a parser gives heads and relations, not labels; call parse"

    def relation_names(self, labels: Labels) -> tuple[str, ...]:
        """Return the names of relations, by their numbers in the parses of `best_labellings`."""
        return labels.relations if isinstance(labels, TreeLabels) else labels.tags

    @override
    def arcs_on_labels(self, gold: TreeColumn, arcs: LabelledArcs, rows: np.ndarray) -> ArcsOnLabels:
        """Return the distribution of a parser's arcs over a student's labels."""
        import torch

        from raykd.structures.device import to_device
        from raykd.structures.labelled_arcs import ArcsOnLabels

        device = arcs.lengths_B.device
        relation_Y = to_device(torch.from_numpy(gold.student_labels.relations_Y), device)
        return ArcsOnLabels(arcs, to_device(torch.from_numpy(gold.label_heads(rows)), device), relation_Y)

    @override
    def gold(self, sentence: LabelledSentence) -> GoldTree:
        """Return the gold tree of a sentence, with the names of relations."""
        heads_T, relations_T = np.array(sentence.heads), np.array(sentence.tags, object)
        return GoldTree(heads_T, relations_T, sentence.tokens, sentence.pos or ())

    @override
    def metric_inputs(
        self, gold: TreeColumn, predicted: Sequence[Parse], tag_set: TagSet
    ) -> tuple[list[GoldTree], Sequence[Parse]]:
        return list(gold.trees()), predicted

    @override
    def most_frequent(self, gold: StringLists) -> None:
        """Return None: a tree is not a list of labels."""

    @override
    def by_label(
        self, gold: Sequence[GoldTree], predicted: Sequence[Parse], scored_words: ScoredWords
    ) -> ScoresByLabel:
        """Return the scores by relation; a word is right where head and relation are."""
        return arcs_by_relation(_arcs(gold), _arcs(predicted), scored_words or _all_words(gold))

    @override
    def confusions(
        self,
        gold: Sequence[GoldTree],
        predicted: Sequence[Parse],
        scored_words: ScoredWords,
        *,
        examples: int,
    ) -> list[Confusion]:
        return arc_confusions(
            _arcs(gold), _arcs(predicted), scored_words or _all_words(gold), examples=examples
        )

    @override
    def run_exported(
        self, model: ExportedModel, sentences: StringLists, pos: PosLists | None, *, batch: int
    ) -> list[Parse]:
        """Return the trees predicted by an exported parser, with the names of relations."""
        from raykd.forms.tree.best_parse import Parse

        predictions = model.arcs(sentences, pos, batch=batch)
        return [
            Parse(
                np.array([head for head, *_ in arcs]),
                np.array([relation for _, relation, *_ in arcs], object),
                np.array([repaired for *_, repaired in arcs]),
            )
            for arcs in predictions
        ]

    @override
    def exported_labels(self, model: ExportedModel) -> Collection[str]:
        """Return the relations."""
        return model.trees.relations if model.trees else ()


def _arcs(trees: Sequence[GoldTree] | Sequence[Parse]) -> list[list[Arc]]:
    return [
        [(int(head), str(relation)) for head, relation in zip(tree.heads_T, tree.relations_T, strict=True)]
        for tree in trees
    ]


def _all_words(gold: Sequence[GoldTree]) -> list[list[bool]]:
    return [[True] * len(tree.heads_T) for tree in gold]


TREE = Tree()
