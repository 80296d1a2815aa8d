"""The base class of label forms, with the methods of the simplest form: flat tags.

A label form says what labels look like. It reads and writes the tags of files, describes and counts labels, makes
targets, says which labels may follow each other, decodes, and says how its labels are evaluated and served.

Shapes: Y tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, SupportsIndex

import numpy as np
from typing_extensions import override

from raykd.forms.form_types import (
    AllowedTransitions,
    CorpusFacts,
    ExportedModel,
    LabelledSentence,
    PosLists,
    ScoredWords,
    StringLists,
)
from raykd.forms.tag_set import TagSet
from raykd.identity import PlainObject
from raykd.metrics.bioes import OUTSIDE
from raykd.metrics.by_label import ScoresByLabel, words_by_label
from raykd.metrics.confusions import Confusion, label_confusions

if TYPE_CHECKING:
    import pyarrow as pa
    from jaxtyping import Bool, Int16

    from raykd.forms.labels import Labels
    from raykd.forms.targets import LabelColumn, ModelOutput, TargetColumn
    from raykd.structures.labelled_arcs import ArcsOnLabels, LabelledArcs


@dataclass(frozen=True)
class LabelForm:
    """One label form. It has no state: two instances of one class are equal."""

    name: ClassVar[str]
    """Key in `FORMS`."""
    scheme: ClassVar[str]
    """Name of the internal tags in messages and stored labels."""
    reads: ClassVar[tuple[str, ...]]
    """Schemes of files whose tags are converted to this form; tags are written to files in the first."""
    file_scheme: ClassVar[Literal["auto", "flat"]] = "auto"
    """Scheme of files that do not state one."""
    title: ClassVar[str]
    """The labels in words, for messages."""
    scheme_hint: ClassVar[str] = "set corpus.scheme"
    """Hint for a user whose files were read as another form."""
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language")
    """Columns of a corpus part that the form reads."""
    words_in_front: ClassVar[int] = 0
    """Number of artificial words in front of each sentence, which no file contains."""
    constrained: ClassVar[bool] = False
    """True if some labels may not follow others."""
    calls: ClassVar[tuple[str, ...]] = ("label",)
    """Methods of a loaded model for this form, the usual one first."""
    labels_text: ClassVar[bool] = True
    """True if models of the form label text for users."""
    bioes: ClassVar[bool] = False
    """True if all tags are BIOES."""
    hides_pieces: ClassVar[bool] = False
    """True if the targets are pieces of the text itself, hidden from the model."""
    reads_heads: ClassVar[bool] = False
    """True if gold labels have heads."""
    always_known: ClassVar[frozenset[str]] = frozenset({OUTSIDE})
    """Labels of a file that count as known even where no model predicts them."""
    has_student_labels: ClassVar[bool] = False
    """True if a student predicts labels made from those of the corpus (`student_labels`)."""
    generates: ClassVar[bool] = False
    """True if a model generates its labels one after the other, and reads the gold ones while it trains."""

    # Tags

    def check_tags(self, tags: tuple[str, ...]) -> None:
        """Check a whole tag set.

        Args:
            tags: Tags of the set, in the order of their numbers.

        Raises:
            ValueError: The tags are not a complete set of this form.
        """

    def label_of(self, tag: str) -> str | None:
        """Return the label to count for a tag, or None for a tag that is not counted."""
        return tag

    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        """Return the labels in the tags of a file; `tag_set` makes a tag set of them.

        Args:
            tags: Distinct tags of a file.
            scheme: Scheme of the file.
        """
        return set(tags)

    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """Return the tag set over `labels`: O first where it occurs, then alphabetical order."""
        return TagSet(tuple(sorted(set(labels), key=lambda tag: (tag != OUTSIDE, tag))), self)

    def labels_from(self, plain: PlainObject) -> Labels:
        """Return the labels written by `to_plain`."""
        return TagSet(tuple(plain["tags"]), self)

    def encode(self, tags: Sequence[str], numbers: Mapping[str, int]) -> Int16[np.ndarray, " token"]:
        """Return the numbers of tags.

        Args:
            tags: Tags of one sentence.
            numbers: Tag → number, of a tag set.

        Raises:
            KeyError: A tag has no number.
        """
        return np.fromiter(map(numbers.__getitem__, tags), np.int16, len(tags))

    def decode(self, numbers: Iterable[SupportsIndex], tags: Sequence[str]) -> list[str]:
        """Return the tags with the given numbers.

        Args:
            numbers: Numbers of tags.
            tags: Tags of a tag set, in the order of their numbers.
        """
        return [tags[int(number)] for number in numbers]

    def allowed_places(self, tags: Sequence[str]) -> Bool[np.ndarray, "2 tag"] | None:
        """Return the tags allowed at the first word and at later words.

        Args:
            tags: Tags of a tag set, Y of them.

        Returns:
            Bool [2, Y]: row 0 for the first word, row 1 for the others. None: all tags are allowed everywhere.
        """
        return None

    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        """Return the legal transitions between tags, and the legal first and last tags."""
        count = len(tags)
        return np.ones((count, count), bool), np.ones(count, bool), np.ones(count, bool)

    # Files

    def read(self, tags: Sequence[str], scheme: str) -> tuple[Sequence[str], int]:
        """Convert the tags of a file to the internal scheme.

        Args:
            tags: Tags of one sentence.
            scheme: Scheme of the file.

        Returns:
            The converted tags, and the number of repaired ones.

        Raises:
            ValueError: A tag does not belong to the scheme.
        """
        return tags, 0

    def write(self, tags: Sequence[str], scheme: str) -> Sequence[str]:
        """Convert internal tags to the scheme of a file; the inverse of `read`.

        Args:
            tags: Tags of one sentence.
            scheme: Scheme of the file.
        """
        return tags

    def unknown_tags(self, tags: Iterable[str], scheme: str) -> set[str]:
        """Return the tags outside a scheme.

        Args:
            tags: Distinct tags of files.
            scheme: Scheme of the files.
        """
        return set()

    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        """Return the beginning of a labelled sentence, for people.

        Args:
            sentence: Sentence with its labels.
            words: Maximum number of words shown.

        Returns:
            `word/TAG word/TAG …`, or the class and the text of a sentence with one label.
        """
        tokens, tags = sentence.tokens[:words], sentence.tags
        more = " …" if len(sentence.tokens) > words else ""
        if sentence.unit == "sentence":
            return f"{tags[0]}: {' '.join(tokens)}{more}"
        return " ".join(f"{token}/{tag}" for token, tag in zip(tokens, tags, strict=False)) + more

    # Training

    def fault(self, corpus: CorpusFacts, task: str) -> tuple[str, str] | None:
        """Check the labels of a corpus against a task of this form.

        Args:
            corpus: Corpus of the run.
            task: Name of the task, for the message.

        Returns:
            The problem and a hint; None where the labels fit.
        """
        corpus_form = corpus.tag_set.form
        if corpus_form == self:
            return None
        tags = corpus.tag_set.tags
        examples = ", ".join((*tags[:4], "…") if len(tags) > 4 else tags)
        problem = (
            f"its tags are {corpus_form.scheme} ({examples}), and task {task!r} needs {self.scheme} tags"
        )
        if self.words_in_front or corpus_form.words_in_front:
            return problem, "set corpus.source, or another task"
        return problem, f"{self.scheme_hint}, or another task"

    def predicted_tags(self, tag_set: TagSet) -> TagSet:
        """Return the predicted tag set for a corpus with the tags `tag_set`."""
        return tag_set

    def student_labels(self, corpus: CorpusFacts, encoding: str, source: str) -> Labels:
        """Return the labels of a student, for forms with `has_student_labels`.

        Args:
            corpus: Corpus with the training sentences.
            encoding: Name of the encoding (`student.encoding`).
            source: Name of the corpus, for errors.

        Raises:
            CorpusError: The corpus lacks what the labels are made of.
        """
        raise TypeError(f"students of {self.name} predict the labels of their corpus")

    def arcs_on_labels(self, gold: TargetColumn, arcs: LabelledArcs, rows: np.ndarray) -> ArcsOnLabels:
        """Return the distribution of a parser's arcs over a student's labels.

        Args:
            gold: Targets of the corpus part.
            arcs: Arcs of a batch, as the parser scores them.
            rows: Rows in `gold` of the sentences of the batch, int64 [B].
        """
        raise TypeError(f"labels of {self.name} have no arcs")

    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: Labels) -> TargetColumn:
        """Return the targets of a corpus part.

        Args:
            table: Corpus part with the `columns` of the form.
            pos: Parts of speech of the corpus, in the order of their numbers.
            labels: Labels that the model predicts.
        """
        from raykd.forms.targets import LabelColumn

        return LabelColumn.from_table(table)

    def best_labellings(self, gold: TargetColumn, output: ModelOutput, rows: np.ndarray) -> Sequence[object]:
        """Return the best labellings of a batch of sentences.

        Args:
            gold: Targets of the corpus part.
            output: Output of the model for the batch.
            rows: Rows in `gold` of the sentences of the batch, int64 [B].

        Returns:
            One labelling for each sentence, as `metric_inputs` reads it.
        """
        from raykd.forms.targets import best_labels

        return best_labels(output)

    def no_labels_reason(self, labels: Labels) -> str | None:
        """Return the reason why a model does not label words; None for a model that does."""
        return None

    # Evaluation

    def gold(self, sentence: LabelledSentence) -> object:
        """Return the gold labelling of a sentence, as the task's metric reads it."""
        return sentence.tags

    def metric_inputs(
        self, gold: TargetColumn, predicted: Sequence[object], tag_set: TagSet
    ) -> tuple[Sequence[object], Sequence[object]]:
        """Return gold and predicted labellings, as the task's metric reads them.

        Args:
            gold: Targets of the corpus part, N sentences.
            predicted: N labellings from `best_labellings`.
            tag_set: Tags of the corpus.

        Returns:
            N gold labellings and N predicted ones.
        """
        raise NotImplementedError

    def most_frequent(self, gold: StringLists) -> StringLists | None:
        """Return the majority baseline: the most frequent label for each word; None where words have no labels."""
        return most_frequent(gold)

    def by_label(
        self, gold: Sequence[object], predicted: Sequence[object], scored_words: ScoredWords
    ) -> ScoresByLabel:
        """Return the scores by label.

        Args:
            gold: Gold labellings, from `metric_inputs`.
            predicted: Predicted labellings, from `metric_inputs`.
            scored_words: Words that are scored; None: all of them.
        """
        raise TypeError(f"{self.title} are not counted by label")

    def confusions(
        self, gold: Sequence[object], predicted: Sequence[object], scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        """Return the most frequent confusions of labels.

        Args:
            gold: Gold labellings, from `metric_inputs`.
            predicted: Predicted labellings, from `metric_inputs`.
            scored_words: Words that are scored; None: all of them.
            examples: Maximum number of examples of each confusion.
        """
        raise TypeError(f"{self.title} are not counted by label")

    # Serving

    def run_exported(
        self, model: ExportedModel, sentences: StringLists, pos: PosLists | None, *, batch: int
    ) -> Sequence[object]:
        """Return the labellings predicted by an exported model.

        Args:
            model: Opened model.
            sentences: Words of each sentence.
            pos: Parts of speech of each sentence, for models that read them.
            batch: Sentences in one batch.
        """
        return model.label(sentences, batch=batch)

    def exported_labels(self, model: ExportedModel) -> Collection[str]:
        """Return the labels of an exported model."""
        return TagSet(tuple(model.labels), self).labels


class TagForm(LabelForm):
    """A form with lists of tags as labellings."""

    @override
    def metric_inputs(
        self, gold: LabelColumn, predicted: Sequence[np.ndarray], tag_set: TagSet
    ) -> tuple[StringLists, StringLists]:
        return gold.lists(tag_set.tags), [tag_set.decode(path) for path in predicted]

    @override
    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        return words_by_label(gold, predicted)

    @override
    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return label_confusions(gold, predicted, examples=examples)


def most_frequent(gold: StringLists) -> list[list[str]]:
    """Return the most frequent label of all words, once for each word."""
    counts = Counter(label for labels in gold for label in labels)
    best = max(counts, key=counts.__getitem__, default="")
    return [[best] * len(labels) for labels in gold]
