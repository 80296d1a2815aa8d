"""Conversion of character spans to word spans, and of these to tags.

A word belongs to a span if they have a character in common: a span that cuts a word takes the whole of it. Spans that
overlap in words are refused, or the outermost ones are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from raykd.forms.tag_schemes import write_spans


class CharacterSpan(NamedTuple):
    """A labelled piece of a text: the first character, the character after the last one, and the label."""

    start: int
    end: int
    label: str


class Aligned(NamedTuple):
    """The tags of T words, and the changes to spans."""

    tags: list[str]
    """IOB2 tags [T]."""
    widened: list[CharacterSpan]
    """Spans that cut a word."""
    inner: list[CharacterSpan]
    """Spans left out because they overlap another one."""


class SpanError(ValueError):
    """Spans without a place in the words, with a hint."""

    def __init__(self, problem: str, hint: str):
        super().__init__(problem, hint)
        self.problem, self.hint = problem, hint


def align(
    text: str,
    words: Sequence[tuple[int, int]],
    spans: Sequence[CharacterSpan],
    *,
    keep_outermost: bool = False,
) -> Aligned:
    """Convert spans of characters to tags of words.

    Args:
        text: Text, for messages.
        words: Start and end of each word in characters, in order, without overlap [T].
        spans: Spans inside the text, not empty.
        keep_outermost: Of overlapping spans, read the longest, and of equally long ones the first.

    Raises:
        SpanError: A span has no word, or spans overlap and `keep_outermost` is False.
    """
    starts, ends = [start for start, _ in words], [end for _, end in words]
    by_words: dict[tuple[int, int, str], CharacterSpan] = {}
    widened = []
    for span in dict.fromkeys(spans):
        first, behind = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first >= behind:
            raise SpanError(
                f"{describe_span(text, span)} has no word in it", "remove the span, or correct its ends"
            )
        if starts[first] < span.start or ends[behind - 1] > span.end:
            widened.append(span)
        place = (first, behind, span.label)
        by_words[place] = max(by_words.get(place, span), span, key=_length)
    owners: list[tuple[int, int, str] | None] = [None] * len(words)
    inner = []
    # The longest first: what overlaps one of these is inside of it, or shorter.
    for place in sorted(by_words, key=lambda place: -_length(by_words[place])):
        first, behind, _ = place
        over = next((owner for owner in owners[first:behind] if owner is not None), None)
        if over is None:
            owners[first:behind] = [place] * (behind - first)
        elif keep_outermost:
            inner.append(by_words[place])
        else:
            raise _overlap_error(text, words, by_words[over], by_words[place], max(first, over[0]))
    owners_kept = sorted({owner for owner in owners if owner is not None})
    return Aligned(write_spans(owners_kept, len(words), "iob2"), widened, inner)


def _length(span: CharacterSpan) -> int:
    return span.end - span.start


def _overlap_error(
    text: str,
    words: Sequence[tuple[int, int]],
    first: CharacterSpan,
    second: CharacterSpan,
    shared: int,
) -> SpanError:
    first, second = sorted((first, second))
    problem = f"{describe_span(text, first)} and {describe_span(text, second)} overlap"
    if first.end <= second.start:
        # Both cut one word.
        word = _quoted(text, *words[shared])
        problem = f"{describe_span(text, first)} and {describe_span(text, second)} are in one word, {word}"
    return SpanError(problem, "correct them, or set corpus.nested: outermost to keep the longest of them")


def describe_span(text: str, span: CharacterSpan) -> str:
    """Return a span in the form of messages: `'Ada' [0, 3] PER`."""
    return f"{_quoted(text, span.start, span.end)} [{span.start}, {span.end}] {span.label}"


def _quoted(text: str, start: int, end: int) -> str:
    piece = text[start:end]
    return repr(piece if len(piece) <= 40 else f"{piece[:39]}…")
