"""What every label form has in common, and the answers of the simplest one: flat tags.

A label form says what labels look like. It reads and writes the tags of files, describes and counts them, gives
targets, says which labels may follow each other, decodes, and says how it is evaluated and served.

Shapes: Y tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, SupportsIndex

import numpy as np

from raykd.identity import PlainObject
from raykd.metrics.bioes import OUTSIDE
from raykd.metrics.by_label import ScoresByLabel, words_by_label
from raykd.metrics.confusions import Confusion, label_confusions

if TYPE_CHECKING:
    import pyarrow as pa
    from jaxtyping import Bool, Int16

    from raykd.forms.labels import Labels
    from raykd.forms.targets import LabelColumn, ModelOutput, TargetColumn
    from raykd.structures import LegalTransitions
    from raykd.structures.labelled_arcs import ArcsOnLabels, LabelledArcs

StringLists = Sequence[Sequence[str]]
"""The labels of sentences, as strings."""
PosLists = Sequence[Sequence[str] | None]
"""The parts of speech of sentences; None where those of a sentence are not known."""
ExportedArc = tuple[int, str, float, bool]
"""What an exported parser says of a word: its head, the relation, their probability, and whether it was repaired."""
ScoredWords = Sequence[Sequence[bool]] | None
"""Which words of each sentence count; None: all of them."""
AllowedTransitions = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Which tags may follow which, bool [from, to], begin a sentence, bool [Y], and end it, bool [Y]."""


class CorpusFacts(Protocol):
    """What a form asks of a corpus."""

    @property
    def tag_set(self) -> TagSet: ...

    @property
    def pos(self) -> tuple[str, ...]:
        """Its parts of speech; empty where it is no treebank."""
        ...

    @property
    def parts(self) -> Mapping[str, pa.Table]: ...


class LabelledSentence(NamedTuple):
    """A sentence with its labels as raykd keeps them."""

    tokens: Sequence[str]
    tags: Sequence[str]
    unit: Literal["word", "sentence"] = "word"
    """What one label belongs to."""
    heads: Sequence[int] | None = None
    """Of a tree, one for each word: 0 the root, h the word h − 1."""
    pos: Sequence[str] | None = None
    """Its parts of speech, where they are known."""


class ExportedTrees(Protocol):
    """What an exported parser's labels mean."""

    @property
    def relations(self) -> Sequence[str]: ...


class ExportedModel(Protocol):
    """An exported model."""

    labels: tuple[str, ...]

    @property
    def trees(self) -> ExportedTrees | None:
        """None of a model that is no parser."""
        ...

    def label(self, sentences: StringLists, *, batch: int) -> list[list[str]]: ...

    def intents_and_slots(self, sentences: StringLists, *, batch: int) -> list[tuple[str, list[str]]]: ...

    def arcs(
        self, sentences: StringLists, pos: PosLists | None, *, batch: int
    ) -> Sequence[Sequence[ExportedArc]]: ...


@dataclass(frozen=True)
class LabelForm:
    """One label form. It has no state: two of one class are equal."""

    name: ClassVar[str]
    """Its key in `FORMS`."""
    scheme: ClassVar[str]
    """What messages and stored labels call the tags that raykd keeps."""
    reads: ClassVar[tuple[str, ...]]
    """The schemes of files whose tags become its own; the first is what it writes."""
    file_scheme: ClassVar[Literal["auto", "flat"]] = "auto"
    """How files are read that do not say their scheme."""
    title: ClassVar[str]
    """Its labels in words."""
    scheme_hint: ClassVar[str] = "set corpus.scheme"
    """What to do where the tags of files became those of another form."""
    columns: ClassVar[Sequence[str]] = ("tokens", "tags", "language")
    """The columns of a corpus part that it reads."""
    words_in_front: ClassVar[int] = 0
    """Words of a sentence that no file has, and that stand in front of the others."""
    constrained: ClassVar[bool] = False
    """Whether some labels may not follow others."""
    calls: ClassVar[tuple[str, ...]] = ("label",)
    """What a loaded model of it is asked for, the usual first."""
    labels_text: ClassVar[bool] = True
    """Whether its models label text for others."""
    bioes: ClassVar[bool] = False
    """Whether all its tags are BIOES."""
    hides_pieces: ClassVar[bool] = False
    """Whether its targets are pieces of the text itself, hidden from the model."""
    reads_heads: ClassVar[bool] = False
    """Whether gold labels have heads."""
    always_known: ClassVar[frozenset[str]] = frozenset({OUTSIDE})
    """Labels that every model knows."""
    has_student_labels: ClassVar[bool] = False
    """Whether a student predicts other labels than its corpus has, made of these (`student_labels`)."""
    generates: ClassVar[bool] = False
    """Whether a model writes its labels one after the other, and is given them while it learns."""

    # Tags

    def check_tags(self, tags: tuple[str, ...]) -> None:
        """Raise ValueError where `tags` are no whole set of this form."""

    def label_of(self, tag: str) -> str | None:
        """The label that a tag counts for; None where it counts for none."""
        return tag

    def labels_in(self, tags: Iterable[str], scheme: str) -> set[str]:
        """The labels of which `tag_set` is made, from the distinct tags of a file of `scheme`."""
        return set(tags)

    def tag_set(self, labels: Iterable[str]) -> TagSet:
        """The tags over `labels`: O first where it occurs, then in alphabetical order."""
        return TagSet(tuple(sorted(set(labels), key=lambda tag: (tag != OUTSIDE, tag))), self)

    def labels_from(self, plain: PlainObject) -> Labels:
        """What `to_plain` of its labels wrote."""
        return TagSet(tuple(plain["tags"]), self)

    def encode(self, tags: Sequence[str], numbers: Mapping[str, int]) -> Int16[np.ndarray, " token"]:
        """The number of every tag, given those of the set. KeyError where one has none."""
        return np.fromiter(map(numbers.__getitem__, tags), np.int16, len(tags))

    def decode(self, numbers: Iterable[SupportsIndex], tags: Sequence[str]) -> list[str]:
        """The tags of these numbers."""
        return [tags[int(number)] for number in numbers]

    def allowed_places(self, tags: Sequence[str]) -> Bool[np.ndarray, "2 tag"] | None:
        """Which tags the first word of a sentence may have, and which the others; None: any of them."""
        return None

    def allowed_transitions(self, tags: Sequence[str]) -> AllowedTransitions:
        """Which tags may follow each other, begin a sentence and end it."""
        count = len(tags)
        return np.ones((count, count), bool), np.ones(count, bool), np.ones(count, bool)

    # Files

    def read(self, tags: Sequence[str], scheme: str) -> tuple[Sequence[str], int]:
        """The tags of a file of `scheme` as raykd keeps them, and how many of them were repaired.

        Raises:
            ValueError: a tag does not belong to the scheme.
        """
        return tags, 0

    def write(self, tags: Sequence[str], scheme: str) -> Sequence[str]:
        """The inverse of `read`."""
        return tags

    def unknown_tags(self, tags: Iterable[str], scheme: str) -> set[str]:
        """Those of `tags` that the scheme of a file does not have."""
        return set()

    def format_sentence(self, sentence: LabelledSentence, *, words: int) -> str:
        """The first `words` of a sentence with their labels: `word/TAG …`, or its class and the text."""
        tokens, tags = sentence.tokens[:words], sentence.tags
        more = " …" if len(sentence.tokens) > words else ""
        if sentence.unit == "sentence":
            return f"{tags[0]}: {' '.join(tokens)}{more}"
        return " ".join(f"{token}/{tag}" for token, tag in zip(tokens, tags, strict=False)) + more

    # Training

    def fault(self, corpus: CorpusFacts, task: str) -> tuple[str, str] | None:
        """What is wrong with the labels of a corpus for a task of this form, and a hint."""
        own = corpus.tag_set.form
        if own == self:
            return None
        tags = corpus.tag_set.tags
        some = ", ".join((*tags[:4], "…") if len(tags) > 4 else tags)
        problem = f"its tags are {own.scheme} ({some}), and task {task!r} needs {self.scheme} tags"
        if self.words_in_front or own.words_in_front:
            return problem, "set corpus.source, or another task"
        return problem, f"{self.scheme_hint}, or another task"

    def predicted_tags(self, tag_set: TagSet) -> TagSet:
        """What a model predicts, where the corpus' tags are `tag_set`."""
        return tag_set

    def student_labels(self, corpus: CorpusFacts, encoding: str, source: str) -> Labels:
        """What a student predicts, where that has labels of its own.

        Raises:
            CorpusError: the corpus, read from `where`, lacks what they are made of.
        """
        raise TypeError(f"students of {self.name} predict the labels of their corpus")

    def arcs_on_labels(self, gold: TargetColumn, arcs: LabelledArcs, rows: np.ndarray) -> ArcsOnLabels:
        """A parser's arcs as a student's labels say them, of the sentences at `rows` in `gold`, its targets."""
        raise TypeError(f"labels of {self.name} say nothing of arcs")

    def targets(self, table: pa.Table, *, pos: Sequence[str], labels: Labels) -> TargetColumn:
        """The targets of a corpus part.

        Args:
            table: with the `columns` of the form.
            pos: the corpus' parts of speech, by their numbers.
            labels: what the model predicts.
        """
        from raykd.forms.targets import LabelColumn

        return LabelColumn.from_table(table)

    def best_labellings(self, gold: TargetColumn, output: ModelOutput, rows: np.ndarray) -> Sequence[object]:
        """The best labelling of every sentence of a batch; `rows` are its sentences in `gold`, its targets."""
        from raykd.forms.targets import best_labels

        return best_labels(output)

    def no_labels_reason(self, labels: Labels) -> str | None:
        """Why a model that predicts `labels` gives words no labels; None where it gives some."""
        return None

    # Evaluation

    def gold(self, sentence: LabelledSentence) -> object:
        """The gold labelling of a sentence as a task's metric compares it."""
        return sentence.tags

    def metric_inputs(
        self, gold: TargetColumn, predicted: Sequence[object], tag_set: TagSet
    ) -> tuple[Sequence[object], Sequence[object]]:
        """Gold and predicted labellings of every sentence as a task's metric compares them; those that are predicted
        come from `best`.
        """
        raise NotImplementedError

    def most_frequent(self, gold: StringLists) -> StringLists | None:
        """The labelling that gives every word the most frequent label; None where words have no labels."""
        return most_frequent(gold)

    def by_label(
        self, gold: Sequence[object], predicted: Sequence[object], scored_words: ScoredWords
    ) -> ScoresByLabel:
        """The figures of every label; `scored` says which words count, where not all do."""
        raise TypeError(f"{self.title} are not counted by label")

    def confusions(
        self, gold: Sequence[object], predicted: Sequence[object], scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        """What is taken for what, with `examples` of each."""
        raise TypeError(f"{self.title} are not counted by label")

    # Serving

    def run_exported(
        self, model: ExportedModel, sentences: StringLists, pos: PosLists | None, *, batch: int
    ) -> Sequence[object]:
        """What an exported model says of sentences, whose parts of speech are `pos`."""
        return model.label(sentences, batch=batch)

    def exported_labels(self, model: ExportedModel) -> Collection[str]:
        """The labels that an exported model knows."""
        return TagSet(tuple(model.labels), self).labels


class TagForm(LabelForm):
    """A form whose labelling of a sentence is a list of tags."""

    def metric_inputs(
        self, gold: LabelColumn, predicted: Sequence[np.ndarray], tag_set: TagSet
    ) -> tuple[StringLists, StringLists]:
        return gold.lists(tag_set.tags), [tag_set.decode(path) for path in predicted]

    def by_label(self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords) -> ScoresByLabel:
        return words_by_label(gold, predicted)

    def confusions(
        self, gold: StringLists, predicted: StringLists, scored_words: ScoredWords, *, examples: int
    ) -> list[Confusion]:
        return label_confusions(gold, predicted, examples=examples)


@dataclass(frozen=True)
class TagSet:
    """The tags of a corpus in a fixed order; a tag's number is its place. What they mean its `form` knows.

    Raises:
        ValueError: a tag occurs twice, or the tags are none of the form.
    """

    tags: tuple[str, ...]
    form: LabelForm

    def __post_init__(self) -> None:
        if len(self._numbers) != len(self.tags):
            twice = sorted({tag for tag in self.tags if self.tags.count(tag) > 1})
            raise ValueError(f"tags occur twice: {', '.join(twice)}")
        self.form.check_tags(self.tags)

    def to_plain(self) -> PlainObject:
        """JSON-able form."""
        return {"scheme": self.form.scheme, "tags": list(self.tags)}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What is counted: span types, intents, what opens the brackets of trees, or the tags themselves."""
        found = (self.form.label_of(tag) for tag in self.tags)
        return tuple(dict.fromkeys(label for label in found if label is not None))

    def __len__(self) -> int:
        return len(self.tags)

    def index(self, tag: str) -> int:
        """The number of `tag`; ValueError naming the tags when there is none."""
        number = self._numbers.get(tag)
        if number is None:
            raise ValueError(f"unknown tag {tag!r} ({', '.join(self.tags)})")
        return number

    def encode(self, tags: Sequence[str]) -> Int16[np.ndarray, " token"]:
        """Numbers of `tags`; ValueError names a tag that is not in the set."""
        try:
            return self.form.encode(tags, self._numbers)
        except KeyError as error:
            raise ValueError(f"unknown tag {error.args[0]!r} ({', '.join(self.tags)})") from None

    def decode(self, numbers: Iterable[SupportsIndex]) -> list[str]:
        """The tags of these numbers."""
        return self.form.decode(numbers, self.tags)

    def allowed_places(self) -> Bool[np.ndarray, "2 tag"] | None:
        """Which tags the first word of a sentence may have, and which the others; None where every word may have any of
        them.
        """
        return self.form.allowed_places(self.tags)

    def legal(self) -> LegalTransitions | None:
        """Which tags may follow each other; None where all may."""
        if not self.form.constrained:
            return None
        from raykd.structures import LegalTransitions

        return LegalTransitions.from_masks(*self.form.allowed_transitions(self.tags))


def most_frequent(gold: StringLists) -> list[list[str]]:
    """The most frequent label in the place of every label."""
    counts = Counter(label for labels in gold for label in labels)
    best = max(counts, key=counts.__getitem__, default="")
    return [[best] * len(labels) for labels in gold]
