"""Nested spans: words with several labels, `B-ORG|B-LOC`, of which the outermost ones are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from raykd.forms.tag_schemes import ReadScheme, SpanScheme, has_span_form, with_bioes_letters, write_spans
from raykd.forms.tag_spellings import NESTED_SEPARATOR
from raykd.metrics.bioes import OUTSIDE, Span, split_tag


class OutermostSpans(NamedTuple):
    """The spans of a sentence that are inside no other one."""

    tags: list[str]
    """In the scheme that was read."""
    left_out: int
    """Spans that are left out: they are inside another one, or overlap a longer one."""


def is_nested(tag: str) -> bool:
    """Whether a tag has several labels."""
    pieces = tag.split(NESTED_SEPARATOR)
    return len(pieces) > 1 and all(piece == OUTSIDE or has_span_form(piece) for piece in pieces)


def split_labels(tag: str) -> list[str]:
    """The labels of a tag, one by one."""
    return tag.split(NESTED_SEPARATOR) if is_nested(tag) else [tag]


def nested_scheme(tags: Iterable[str]) -> SpanScheme:
    """The scheme of tags of which some have several labels: by their letters, as their ends are not in one row."""
    letters = {label[0] for tag in tags for label in split_labels(tag) if has_span_form(label)}
    if "M" in letters:
        return "bmewo" if "W" in letters else "bmes"
    if letters & set("LU"):
        return "bilou"
    return "bioes" if letters & set("ES") else "iob2"


def keep_outermost(tags: Sequence[str], scheme: ReadScheme) -> OutermostSpans:
    """The spans that are inside no other one. Of two that overlap the longer one is kept, of equals the first.

    Args:
        tags: of one sentence, each with one label or several.
        scheme: that of the labels, each a letter and a type.
    """
    kept: list[Span] = []
    span_scheme = cast("SpanScheme", scheme)
    spans = _all_spans(tags, span_scheme)
    for start, end, kind in sorted(spans, key=lambda span: span[0] - span[1]):
        if all(end <= first or start >= last for first, last, _ in kept):
            kept.append((start, end, kind))
    return OutermostSpans(write_spans(sorted(kept), len(tags), span_scheme), len(spans) - len(kept))


def _all_spans(tags: Sequence[str], scheme: SpanScheme) -> list[Span]:
    """All spans, those inside others too. A label that goes on does so in the span of its type that began first."""
    spans: list[Span] = []
    running: list[tuple[int, str]] = []
    for place, tag in enumerate(tags):
        labels = [
            split_tag(label) for label in with_bioes_letters(split_labels(tag), scheme) if label != OUTSIDE
        ]
        # Of two spans of one type the inner one ends first.
        going = sorted((label for label in labels if label[0] in "IE"), key=lambda label: label[0] == "E")
        before, running = running, []
        for letter, kind in going:
            begun = next((span for span in before if span[1] == kind), (place, kind))
            if begun in before:
                before.remove(begun)
            if letter == "E":
                spans.append((begun[0], place + 1, kind))
            else:
                running.append(begun)
        spans += [(start, place, kind) for start, kind in before]
        running += [(place, kind) for letter, kind in labels if letter == "B"]
        spans += [(place, place + 1, kind) for letter, kind in labels if letter == "S"]
        running.sort(key=lambda span: span[0])
    return spans + [(start, len(tags), kind) for start, kind in running]
