"""What is taken for what: gold labels beside the predicted ones that stand in their place, by kind of error.

Of spans, which are read as in `bioes.py`, every error is of one kind:

    type       the same words, another label
    boundary   the same label, other words (one word in common at least)
    both       other words and another label
    missed     no predicted span has a word of it
    spurious   a predicted span that has no word of a gold one

So all errors but `spurious` add up to the gold spans that were not found. Of several predicted spans that share words
with a gold one, the one with its label counts, then the one that shares most words, then the first. Of words (and of
sentences with one label) every error is of the kind `label`; of the arcs of a parse:

    head       the same relation to another head
    relation   another relation to the same head
    arc        another relation to another head
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from raykd.metrics.accuracy import check_aligned
from raykd.metrics.bioes import OUTSIDE, read_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from raykd.metrics.by_label import Arc

Kind = Literal["type", "boundary", "both", "missed", "spurious", "label", "head", "relation", "arc"]


class Place(NamedTuple):
    """Words of a sentence, `end` not included."""

    start: int
    end: int


class Example(NamedTuple):
    """Where a confusion is: the sentence, counted from 0, the gold span and the predicted one; None where there is
    none.
    """

    sentence: int
    gold: Place | None
    predicted: Place | None
    heads: tuple[int, int] | None = None
    """Of a word of a parse, its gold head and the predicted one."""


@dataclass(frozen=True)
class Confusion:
    """One gold label that was predicted as another, or in other words."""

    gold: str
    """`O` where there is none."""
    predicted: str
    kind: Kind
    count: int
    examples: tuple[Example, ...]
    """The first ones."""


def span_confusions(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, examples: int
) -> list[Confusion]:
    """The errors of spans in BIOES tags, the most frequent first; `examples` of each.

    Raises ValueError when the sentences differ in number or length.
    """
    check_aligned(gold, predicted)
    errors = []
    for number, sides in enumerate(zip(gold, predicted, strict=True)):
        gold_spans, predicted_spans = (read_spans(tags) for tags in sides)
        errors += [(number, *error) for error in _span_errors(gold_spans, predicted_spans)]
    return _group_errors(errors, examples)


def label_confusions(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, examples: int
) -> list[Confusion]:
    """The errors of one label for each word, or for each sentence; see `span_confusions`."""
    check_aligned(gold, predicted)
    errors = [
        (number, label, answer, "label", Place(place, place + 1), Place(place, place + 1))
        for number, (gold_labels, predicted_labels) in enumerate(zip(gold, predicted, strict=True))
        for place, (label, answer) in enumerate(zip(gold_labels, predicted_labels, strict=True))
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
    """The errors in the (head, relation) of each word that is `scored`; see `span_confusions`."""
    check_aligned(gold, predicted)
    errors: list[Any] = []
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
                errors.append((number, arc[1], answer[1], kind, place, place, (arc[0], answer[0])))
    return _group_errors(errors, examples)


_Span = tuple[int, int, str]
_Error = tuple[str, str, Kind, Place | None, Place | None]


def _span_errors(gold: list[_Span], predicted: list[_Span]) -> Iterator[_Error]:
    right = set(gold) & set(predicted)
    for start, end, label in gold:
        if (start, end, label) in right:
            continue
        near = [span for span in predicted if span[0] < end and start < span[1]]
        if not near:
            yield label, OUTSIDE, "missed", Place(start, end), None
            continue
        first, last, predicted_label = max(
            near, key=lambda span: (span[2] == label, min(span[1], end) - max(span[0], start), -span[0])
        )
        same = (first, last) == (start, end)
        kind: Kind = "type" if same else "boundary" if predicted_label == label else "both"
        yield label, predicted_label, kind, Place(start, end), Place(first, last)
    for first, last, predicted_label in predicted:
        if not any(first < end and start < last for start, end, _ in gold):
            yield OUTSIDE, predicted_label, "spurious", None, Place(first, last)


def _group_errors(errors: list[tuple], examples: int) -> list[Confusion]:
    by_kind: dict[tuple[str, str, Kind], list[Example]] = defaultdict(list)
    for number, gold, predicted, kind, *place in errors:
        by_kind[gold, predicted, kind].append(Example(number, *place))
    confusions = [Confusion(*key, len(places), tuple(places[:examples])) for key, places in by_kind.items()]
    return sorted(confusions, key=lambda row: (-row.count, row.gold, row.predicted, row.kind))
