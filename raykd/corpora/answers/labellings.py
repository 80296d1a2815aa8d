"""An answer about one sentence: labellings with weights, or a distribution over labels for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class AnswerError(ValueError):
    """An answer that cannot be used, with the reason."""


class UnmappedError(AnswerError):
    """A label that is no label of the corpus, and has no other name.

    Attributes:
        label: The label.
    """

    def __init__(self, label: str):
        super().__init__(f"label {label!r} is none of the corpus")
        self.label = label


class Labelling(NamedTuple):
    """One labelling of a sentence.

    Attributes:
        tags: BIOES tags or flat tags, one per word; for a sentence with one label this label.
        log_weight: Logarithm of its weight, in nats; weights need not sum to one.
        heads: Head of each word in a tree, whose relations are `tags`: 0 is the root, h the word h − 1.
    """

    tags: tuple[str, ...]
    log_weight: float = 0.0
    heads: tuple[int, ...] = ()


@dataclass
class Answer:
    """The answer of an annotator about one sentence of T words.

    Attributes:
        labellings: Distinct labellings, those of the largest weight first; empty where `probabilities` are given.
        probabilities: For each word the probability of each of its labels, in the annotator's own tags.
        unusable: Reasons of the samples that could not be used, where others could.
        notes: Number of changes by kind: mentions that are not in the text, spans inside others, repaired tags.
        examples: An example for each kind of note.
    """

    labellings: Sequence[Labelling] = ()
    probabilities: Sequence[Mapping[str, float]] | None = None
    unusable: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, example: str) -> None:
        """Count a change.

        Args:
            kind: A key of `NOTES`.
            example: What was changed.
        """
        self.notes[kind] += 1
        self.examples.setdefault(kind, example)


NOTES: Mapping[str, str] = {
    "invented": "mentions that are not in their text, left out",
    "inner": "spans that overlap a longer one, left out",
    "widened": "spans that cut a word, read as whole words",
    "repaired": "tags that could not continue a span, read as the beginning of one",
}
"""Kind of a note → its words behind a number."""
