"""Confusions: gold labels and the predicted labels in their place, counted by kind of error.

Spans are read as in `bioes.py`. An error of spans has exactly one kind:

    type       the same words, another label
    boundary   the same label, other words (at least one word in common)
    both       other words and another label
    missed     no predicted span shares a word with the gold one
    spurious   a predicted span that shares no word with a gold one

So all errors but `spurious` add up to the gold spans that were not found. If several predicted spans overlap a gold
span, the one with the gold label counts, then the one with the most words in common, then the first. Errors of words
(and of sentences with one label) are all of the kind `label`. Errors of arcs in a parse:

    head       the same relation to another head
    relation   another relation to the same head
    arc        another relation to another head
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.bioes import OUTSIDE, Span, read_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from raykd.metrics.by_label import Arc

Kind = Literal["type", "boundary", "both", "missed", "spurious", "label", "head", "relation", "arc"]


class Place(NamedTuple):
    """Words `start` to `end` of a sentence, `end` excluded."""

    start: int
    end: int


class Example(NamedTuple):
    """Place of a confusion.

    Attributes:
        sentence: Number of the sentence, from 0.
        gold: The gold span; None where there is none.
        predicted: The predicted span; None where there is none.
        heads: Gold and predicted head of a word in a parse; None for other labels.
    """

    sentence: int
    gold: Place | None
    predicted: Place | None
    heads: tuple[int, int] | None = None


@dataclass(frozen=True)
class Confusion:
    """A gold label predicted as a different label, or on different words.

    Attributes:
        gold: Gold label; `O` where there is none.
        predicted: Predicted label; `O` where there is none.
        kind: Kind of the error.
        count: Number of such errors.
        examples: The first of them.
    """

    gold: str
    predicted: str
    kind: Kind
    count: int
    examples: tuple[Example, ...]


def span_confusions(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, examples: int
) -> list[Confusion]:
    """Count the errors of spans in BIOES tags.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags of each sentence.
        examples: Maximum number of examples of one confusion.

    Returns:
        The confusions, the most frequent first.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    errors = [
        error
        for number, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True))
        for error in _span_errors(number, read_spans(gold_tags), read_spans(predicted_tags))
    ]
    return _group_errors(errors, examples)


def label_confusions(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, examples: int
) -> list[Confusion]:
    """Count the errors of labels of words, or of whole sentences.

    Args:
        gold: Gold labels of each sentence.
        predicted: Predicted labels of each sentence.
        examples: Maximum number of examples of one confusion.

    Returns:
        The confusions, the most frequent first.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    errors: list[_Error] = [
        (label, answer, "label", Example(number, Place(word, word + 1), Place(word, word + 1)))
        for number, (gold_labels, predicted_labels) in enumerate(zip(gold, predicted, strict=True))
        for word, (label, answer) in enumerate(zip(gold_labels, predicted_labels, strict=True))
        if label != answer
    ]
    return _group_errors(errors, examples)


def arc_confusions(
    gold: Sequence[Sequence[Arc]],
    predicted: Sequence[Sequence[Arc]],
    scored: Sequence[Sequence[bool]],
    *,
    examples: int,
) -> list[Confusion]:
    """Count the errors in heads and relations of a parse.

    Args:
        gold: (head, relation) of each word of each sentence.
        predicted: The same, predicted.
        scored: Mask of the words that count, for each sentence.
        examples: Maximum number of examples of one confusion.

    Returns:
        The confusions, the most frequent first.

    Raises:
        ValueError: The sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    errors: list[_Error] = []
    for number, (gold_arcs, predicted_arcs, scored_words) in enumerate(
        zip(gold, predicted, scored, strict=True)
    ):
        for word, (arc, answer, is_scored) in enumerate(
            zip(gold_arcs, predicted_arcs, scored_words, strict=True)
        ):
            if is_scored and arc != answer:
                heads, relations = arc[0] != answer[0], arc[1] != answer[1]
                kind: Kind = "arc" if heads and relations else "head" if heads else "relation"
                place = Place(word, word + 1)
                errors.append((arc[1], answer[1], kind, Example(number, place, place, (arc[0], answer[0]))))
    return _group_errors(errors, examples)


_Error = tuple[str, str, Kind, Example]
"""Gold label, predicted label, kind and place of one error."""


def _span_errors(sentence: int, gold: list[Span], predicted: list[Span]) -> Iterator[_Error]:
    right = set(gold) & set(predicted)
    for start, end, label in gold:
        if (start, end, label) in right:
            continue
        near = [span for span in predicted if span[0] < end and start < span[1]]
        if not near:
            yield label, OUTSIDE, "missed", Example(sentence, Place(start, end), None)
            continue
        near_start, near_end, predicted_label = max(
            near, key=lambda span: (span[2] == label, min(span[1], end) - max(span[0], start), -span[0])
        )
        same_words = (near_start, near_end) == (start, end)
        kind: Kind = "type" if same_words else "boundary" if predicted_label == label else "both"
        yield label, predicted_label, kind, Example(sentence, Place(start, end), Place(near_start, near_end))
    for start, end, predicted_label in predicted:
        if not any(start < gold_end and gold_start < end for gold_start, gold_end, _ in gold):
            yield OUTSIDE, predicted_label, "spurious", Example(sentence, None, Place(start, end))


def _group_errors(errors: list[_Error], examples: int) -> list[Confusion]:
    by_kind: dict[tuple[str, str, Kind], list[Example]] = defaultdict(list)
    for gold, predicted, kind, example in errors:
        by_kind[gold, predicted, kind].append(example)
    confusions = [Confusion(*key, len(places), tuple(places[:examples])) for key, places in by_kind.items()]
    return sorted(confusions, key=lambda row: (-row.count, row.gold, row.predicted, row.kind))
