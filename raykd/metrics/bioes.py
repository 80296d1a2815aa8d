"""Spans in BIOES tags, read as conlleval reads them: the same reading for counts, for output and for corpora.

A span begins at B or S, after O, E or S, and where the type changes. A span ends before the next beginning, at O, and
after E or S. So a malformed span (an I without a beginning, a B without its E) is a span like any other. A predicted
malformed span counts as a prediction. seqeval reads tags in this way by default. `serving/labeller/spans.py`, which
ships without raykd, has the same rule, and `tests/conformance/test_span_readers.py` compares all of them.

Shapes: N words of all sentences, one after the other.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Int

OUTSIDE = "O"
LETTERS = "BIES"
Span = tuple[int, int, str]
"""First word, the word after the last one, type."""


class SpanEnds(NamedTuple):
    """The spans of many sentences, each marked at its last word.

    Attributes:
        ends_N: True where a span ends at the word.
        begins_N: First word of the span around the word; meaningful only where a span ends.
    """

    ends_N: Bool[np.ndarray, " word"]
    begins_N: Int[np.ndarray, " word"]


def split_tag(tag: str) -> tuple[str, str]:
    """Split a BIOES tag into letter and type.

    Args:
        tag: For example `B-PER`.

    Returns:
        The letter and the type; ("O", "") for O.

    Raises:
        ValueError: The tag is neither O nor B-, I-, E- or S- with a type.
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) < 3 or tag[0] not in LETTERS or tag[1] != "-":
        raise ValueError(f"tag {tag!r} is neither O nor B-, I-, E- or S- with a type")
    return tag[0], tag[2:]


def read_spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans of one sentence in IOB1, IOB2 or BIOES, in order.

    One reading serves all three schemes, because IOB has no E and no S.

    Args:
        tags: Tags of the sentence, one for each word.

    Returns:
        (first word, word behind the last one, type) of each span.

    Raises:
        ValueError: A tag is neither O nor B-, I-, E- or S- with a type.
    """
    spans: list[Span] = []
    start, open_type = 0, None
    for position, tag in enumerate(tags):
        letter, kind = split_tag(tag)
        if open_type is not None and (letter in "BSO" or kind != open_type):
            spans.append((start, position, open_type))
            open_type = None
        if letter == OUTSIDE:
            continue
        if open_type is None:
            start, open_type = position, kind
        if letter in "ES":
            spans.append((start, position + 1, open_type))
            open_type = None
    if open_type is not None:
        spans.append((start, len(tags), open_type))
    return spans


def count_spans(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, tuple[int, int, int]]:
    """Count the right, predicted and gold spans of each type.

    Args:
        gold: Gold tags of each sentence.
        predicted: Predicted tags; the sentences have the same lengths as in `gold`.

    Returns:
        Type → (right, predicted, gold) spans, for types with at least one span.

    Raises:
        ValueError: A tag is neither O nor B-, I-, E- or S- with a type.
    """
    tags = sorted(set().union(*gold, *predicted))
    if not tags:
        return {}
    types = sorted({split_tag(tag)[1] for tag in tags})
    lengths = np.fromiter(map(len, gold), np.int64, len(gold))
    first_N = np.zeros(int(lengths.sum()) + 1, dtype=bool)
    first_N[np.cumsum(lengths) - lengths] = True
    first_N = first_N[:-1]  # where the last sentences are empty they begin behind the last word
    letter_of = np.array([tag[0] for tag in tags], dtype="U1")
    type_of = np.array([types.index(split_tag(tag)[1]) for tag in tags], dtype=np.int64)
    gold_N, predicted_N = (_tag_numbers(side, tags, len(first_N)) for side in (gold, predicted))
    gold_spans, predicted_spans = (
        _span_ends(letter_of[side_N], type_of[side_N], first_N) for side_N in (gold_N, predicted_N)
    )
    right_N = gold_spans.ends_N & predicted_spans.ends_N & (gold_spans.begins_N == predicted_spans.begins_N)
    right_N &= type_of[gold_N] == type_of[predicted_N]

    def per_type(words_N: np.ndarray, tags_N: np.ndarray) -> list[int]:
        return np.bincount(type_of[tags_N[words_N]], minlength=len(types)).tolist()

    counts = zip(
        per_type(right_N, gold_N),
        per_type(predicted_spans.ends_N, predicted_N),
        per_type(gold_spans.ends_N, gold_N),
        strict=True,
    )
    return {name: count for name, count in zip(types, counts, strict=True) if any(count)}


def _tag_numbers(sentences: Sequence[Sequence[str]], tags: Sequence[str], words: int) -> np.ndarray:
    number = {tag: place for place, tag in enumerate(tags)}
    return np.fromiter(map(number.__getitem__, chain.from_iterable(sentences)), np.int64, words)


def _span_ends(letter_N: np.ndarray, type_N: np.ndarray, first_N: np.ndarray) -> SpanEnds:
    """Read the spans of all sentences at once from the letters and types of words; `first_N` marks first words."""
    inside_N = letter_N != OUTSIDE
    breaks_N = first_N.copy()  # before the word
    breaks_N[1:] |= (type_N[1:] != type_N[:-1]) | np.isin(letter_N[:-1], ("O", "E", "S"))
    breaks_N |= np.isin(letter_N, ("B", "S", "O"))
    begins_N = np.maximum.accumulate(np.where(breaks_N, np.arange(len(letter_N)), 0))
    ends_N = inside_N & np.append(breaks_N[1:], True)
    return SpanEnds(ends_N, begins_N)
