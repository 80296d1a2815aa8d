"""Labels as spans: words and spans of a text with their probabilities, and the intent and slots of an utterance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .lattice import Lattice
from .signs import Places

INTENT = "intent:"
"""The beginning of the label of the word in front of an utterance."""


@dataclass(frozen=True)
class Span:
    """A word of a text with its label, or a span of words. `start` and `end` count characters of the text.

    `probability`, between 0 and 1, is under the model, of a CRF over all labellings: of a word its label's marginal, of
    a span that of exactly its words, its label and its two ends. Of a word of a parse `label` is its relation, and
    `probability` that of its head and its relation.
    """

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class Labelled:
    """A text with what the model says of it: words and spans, words and their heads where the model parses (0 the root,
    h the h-th word), or one label where the task labels whole texts. Of an utterance the label is its intent, and its
    spans are its slots.
    """

    text: str
    words: tuple[Span, ...] = ()
    spans: tuple[Span, ...] = ()
    label: str | None = None
    probability: float | None = None
    heads: tuple[int, ...] | None = None


def decode_spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """(first word, last word, name) of each span in BIOES labels, in order. A span begins at B or S, after O, E or S,
    and where the name changes; it ends before the next beginning, at O, and after E or S.
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
    """A text with its one label."""
    label = best_T[0]
    return Labelled(text, label=labels[label], probability=float(lattice.marginals()[0, label]))


def describe_words(
    text: str, places: Places, labels: tuple[str, ...], best_T: np.ndarray, lattice: Lattice, *, spans: bool
) -> Labelled:
    """A text with the labels of its words and, with `spans`, the spans that these say. `best_T` has one label more than
    there are words where the text is an utterance: its intent, the first.
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
