"""Labels as spans: words and spans of a text with their probabilities, and the intent and slots of an utterance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .lattice import Lattice
from .signs import Places

INTENT = "intent:"
"""Prefix of an intent's label, that of the word in front of an utterance."""


@dataclass(frozen=True)
class Span:
    """A labelled word of a text, or a labelled span of words.

    Attributes:
        text: The word or words.
        start: First character in the text.
        end: End in the text, in characters.
        label: The label; for a word of a parse its relation.
        probability: Probability under the model, for a CRF over all labellings: of a word its label's marginal, of a
            span that of exactly its words, its label and its two ends. For a word of a parse, that of head and
            relation.
    """

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class Labelled:
    """A labelled text.

    Attributes:
        text: The text.
        words: Words with their labels.
        spans: Spans; for an utterance its slots.
        label: Label of the text if the task labels whole texts; for an utterance its intent.
        probability: Probability of `label`.
        heads: Head of each word if the model parses: 0 the root, h the h-th word.
        given_by: Of a cascade, the model that answered: `student`, `teacher`, or `away`, the student because the
            teacher is away.
    """

    text: str
    words: tuple[Span, ...] = ()
    spans: tuple[Span, ...] = ()
    label: str | None = None
    probability: float | None = None
    heads: tuple[int, ...] | None = None
    given_by: str | None = None


def decode_spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (first word, last word, name) of each span in BIOES labels, in order.

    A span begins at B or S, after O, E or S, and where the name changes; it ends before the next beginning, at O, and
    after E or S.

    Args:
        labels: BIOES labels of the words.
    """
    spans: list[tuple[int, int, str]] = []
    first, open_name = 0, None
    for t, label in enumerate(labels):
        letter, _, name = label.partition("-")
        if open_name is not None and (letter in "BSO" or name != open_name):
            spans.append((first, t - 1, open_name))
            open_name = None
        if letter == "O":
            continue
        if open_name is None:
            first, open_name = t, name
        if letter in "ES":
            spans.append((first, t, open_name))
            open_name = None
    if open_name is not None:
        spans.append((first, len(labels) - 1, open_name))
    return spans


def describe_sentence(text: str, labels: tuple[str, ...], best_T: np.ndarray, lattice: Lattice) -> Labelled:
    """Return a text with the one label."""
    label = best_T[0]
    return Labelled(text, label=labels[label], probability=float(lattice.marginals()[0, label]))


def describe_words(
    text: str, places: Places, labels: tuple[str, ...], best_T: np.ndarray, lattice: Lattice, *, spans: bool
) -> Labelled:
    """Return a text with the words' labels and, with `spans`, the spans of these labels.

    `best_T` has one label more than there are words if the text is an utterance: its intent, the first.
    """
    marginals_TY = lattice.marginals()
    front = len(best_T) - len(places)
    words = [
        Span(text[a:b], a, b, labels[y], float(marginals_TY[t, y]))
        for t, ((a, b), y) in enumerate(zip(places, best_T[front:], strict=True), start=front)
    ]
    described: list[Span] = []
    for first, last, name in decode_spans([word.label for word in words]) if spans else ():
        probability = lattice.probability(first + front, best_T[first + front : last + front + 1])
        start, end = words[first].start, words[last].end
        described.append(Span(text[start:end], start, end, name, probability))
    if not front:
        return Labelled(text, tuple(words), tuple(described))
    intent, probability = labels[best_T[0]].removeprefix(INTENT), float(marginals_TY[0, best_T[0]])
    return Labelled(text, tuple(words), tuple(described), intent, probability)
