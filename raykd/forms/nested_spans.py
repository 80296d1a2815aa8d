"""Nested spans: words with several labels, `B-ORG|B-LOC`, of which the outermost ones are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from raykd.forms.tag_schemes import ReadScheme, SpanScheme, has_span_form, with_bioes_letters, write_spans
from raykd.forms.tag_spellings import NESTED_SEPARATOR
from raykd.metrics.bioes import OUTSIDE, Span, split_tag


class OutermostSpans(NamedTuple):
    """The outermost spans of a sentence."""

    tags: list[str]
    """Tags in the scheme that was read."""
    left_out: int
    """Number of spans left out: inside another span, or overlapping a longer one."""


def is_nested(tag: str) -> bool:
    """Return True if a tag has several labels, as in `B-ORG|B-LOC`.

    Args:
        tag: Tag in the usual spelling.
    """
    pieces = tag.split(NESTED_SEPARATOR)
    return len(pieces) > 1 and all(piece == OUTSIDE or has_span_form(piece) for piece in pieces)


def split_labels(tag: str) -> list[str]:
    """Return the labels of a tag, one by one.

    Args:
        tag: Tag with one label, or several separated by `|`.
    """
    return tag.split(NESTED_SEPARATOR) if is_nested(tag) else [tag]


def nested_scheme(tags: Iterable[str]) -> SpanScheme:
    """Return the scheme of nested tags, judged by their letters alone.

    The positions of the letters tell nothing: begins and ends of nested spans are not in one row.

    Args:
        tags: Distinct tags of a language.
    """
    letters = {label[0] for tag in tags for label in split_labels(tag) if has_span_form(label)}
    if "M" in letters:
        return "bmewo" if "W" in letters else "bmes"
    if letters & set("LU"):
        return "bilou"
    return "bioes" if letters & set("ES") else "iob2"


def keep_outermost(tags: Sequence[str], scheme: ReadScheme) -> OutermostSpans:
    """Remove nested spans. Of two overlapping spans the longer one is kept, of equally long ones the first.

    Args:
        tags: Tags of one sentence, each with one label or several.
        scheme: Scheme of the labels, each a letter and a type.
    """
    spans_kept: list[Span] = []
    span_scheme = cast("SpanScheme", scheme)
    spans = _all_spans(tags, span_scheme)
    for start, end, kind in sorted(spans, key=lambda span: span[0] - span[1]):
        if all(end <= kept_start or start >= kept_end for kept_start, kept_end, _ in spans_kept):
            spans_kept.append((start, end, kind))
    return OutermostSpans(
        write_spans(sorted(spans_kept), len(tags), span_scheme), len(spans) - len(spans_kept)
    )


def _all_spans(tags: Sequence[str], scheme: SpanScheme) -> list[Span]:
    """All spans, nested ones too. A label that continues belongs to the span of its type that began first."""
    spans: list[Span] = []
    open_spans: list[tuple[int, str]] = []  # (first word, type), in the order of first words
    for place, tag in enumerate(tags):
        labels = [
            split_tag(label) for label in with_bioes_letters(split_labels(tag), scheme) if label != OUTSIDE
        ]
        # I before E: of two spans of one type the outer one began first and is continued, the inner one ends.
        continuations = sorted(
            (label for label in labels if label[0] in "IE"), key=lambda label: label[0] == "E"
        )
        previous, open_spans = open_spans, []
        for letter, kind in continuations:
            span = next((candidate for candidate in previous if candidate[1] == kind), (place, kind))
            if span in previous:
                previous.remove(span)
            if letter == "E":
                spans.append((span[0], place + 1, kind))
            else:
                open_spans.append(span)
        spans += [(start, place, kind) for start, kind in previous]
        open_spans += [(place, kind) for letter, kind in labels if letter == "B"]
        spans += [(place, place + 1, kind) for letter, kind in labels if letter == "S"]
        open_spans.sort(key=lambda span: span[0])
    return spans + [(start, len(tags), kind) for start, kind in open_spans]
