"""Types of the arguments and results of label forms: labelled sentences, corpora, exported models.

Shapes: Y tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from raykd.forms.tag_set import TagSet

StringLists = Sequence[Sequence[str]]
"""One list of strings for each sentence: its words or its labels."""
PosLists = Sequence[Sequence[str] | None]
"""The parts of speech of sentences; None for a sentence without known ones."""
ExportedArc = tuple[int, str, float, bool]
"""An exported parser's output for a word: head, relation, their probability, and whether the head was repaired."""
ScoredWords = Sequence[Sequence[bool]] | None
"""Bool for each word of each sentence: whether it is scored; None: all words are."""
AllowedTransitions = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Masks of the tags that may follow each other, bool [from, to], begin a sentence, bool [Y], and end one, bool [Y]."""


class CorpusFacts(Protocol):
    """The parts of a corpus read by label forms."""

    @property
    def tag_set(self) -> TagSet:
        """The tags of the corpus."""
        ...

    @property
    def pos(self) -> tuple[str, ...]:
        """The parts of speech of a treebank; empty for any other corpus."""
        ...

    @property
    def parts(self) -> Mapping[str, pa.Table]:
        """The tables of the parts, by their names."""
        ...


class LabelledSentence(NamedTuple):
    """A sentence with its labels in raykd's internal scheme."""

    tokens: Sequence[str]
    tags: Sequence[str]
    unit: Literal["word", "sentence"] = "word"
    """Unit that one label belongs to."""
    heads: Sequence[int] | None = None
    """Heads of a tree, one for each word: 0 is the root, h the word h − 1."""
    pos: Sequence[str] | None = None
    """Parts of speech, where they are known."""


class ExportedTrees(Protocol):
    """The meaning of an exported parser's labels."""

    @property
    def relations(self) -> Sequence[str]:
        """The names of the relations."""
        ...


class ExportedModel(Protocol):
    """An exported model, as far as label forms call it; `batch` is the number of sentences computed at a time."""

    labels: tuple[str, ...]

    @property
    def trees(self) -> ExportedTrees | None:
        """The meaning of a parser's labels; None for any other model."""
        ...

    def label(self, sentences: StringLists, *, batch: int) -> list[list[str]]:
        """Return the labels of the words of the sentences."""
        ...

    def intents_and_slots(self, sentences: StringLists, *, batch: int) -> list[tuple[str, list[str]]]:
        """Return the intents of utterances and the slots of their words."""
        ...

    def arcs(
        self, sentences: StringLists, pos: PosLists | None, *, batch: int
    ) -> Sequence[Sequence[ExportedArc]]:
        """Return the arcs of the words of the sentences; `pos` for models that read parts of speech."""
        ...
