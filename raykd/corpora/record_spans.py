"""The spans of a record, as annotation tools write them: their key and their parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from raykd.corpora.span_alignment import CharacterSpan, SpanError
from raykd.corpora.span_offsets import Offsets, locate_span
from raykd.forms.tag_schemes import has_span_form
from raykd.identity import PlainObject

SPANS = (
    "spans", "entities", "ents", "label", "labels", "annotations", "annotation", "instances",
    "textSegmentAnnotations",
)  # fmt: skip
STARTS = ("start", "start_offset", "startOffset", "start_char", "start_position", "begin", "offset")
ENDS = ("end", "end_offset", "endOffset", "end_char", "end_position")
LABELS = (
    "label", "labels", "entity_group", "className", "class", "tag", "category", "displayName", "display_name",
    "label_name", "entityLabel", "entity_type", "type", "entity",
)  # fmt: skip
SURFACES = ("text", "entity_value")
"""Keys of a span's text."""
NO_SPANS = ("tokens", "relations", "sents")
"""Keys of lists that look like spans."""
NESTED = ("value", "points", "text_extraction", "text_segment", "textSegment", "location")
"""Keys of objects, inside a span, that contain its ends."""
FORMS = (
    'write {"text": "…", "spans": [{"start": 0, "end": 3, "label": "PER"}]}, or name the keys in corpus.columns (text, '
    "spans)"
)
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]").search


class SpanParts(NamedTuple):
    """The parts of a span in a record."""

    start: Any
    end: Any
    label: Any
    surface: Any = None


def checked_text(text: str) -> str:
    """Return the text unchanged, after a check of the characters.

    Args:
        text: Text of a record.

    Raises:
        SpanError: A character cannot be in any text.
    """
    if sign := _NO_CHARACTER(text):
        description = "a zero byte" if sign[0] == "\0" else "half of a surrogate pair, which is no character,"
        problem = f"character {sign.start()} of the text is {description} (\\u{ord(sign[0]):04x})"
        raise SpanError(problem, "correct the text")
    return text


def find_spans_key(record: PlainObject) -> str | None:
    """Find the key of the spans in a record.

    Usual names come before others, keys with spans before those with an empty list.

    Args:
        record: Record of an annotation tool.

    Returns:
        The key, or None where the record has no spans.

    Raises:
        SpanError: Several keys have spans.
    """
    usual = [key for key in SPANS if isinstance(record.get(key), list)]
    unusual = [key for key in record if key not in (*SPANS, *NO_SPANS) and not key.startswith("predict")]
    unusual += ["tokens"] if _is_filled(record.get("tokens"), "entityLabel") else []
    filled = [key for key in usual if _is_filled(record[key])]
    filled = filled or [key for key in unusual if not usual and _is_filled(record[key])]
    if len(filled) > 1:
        raise SpanError(
            f"{' and '.join(map(repr, filled[:3]))} have spans", "set corpus.columns.spans to one of them"
        )
    return next(iter(filled + usual), None) or next(
        (key for key in SPANS if record.get(key) is not None), None
    )


def _is_filled(value: object, needed: str = "") -> bool:
    """True for a list with a labelled span at its beginning; with `needed`, the span must have this key."""
    first = value[0] if isinstance(value, list) and value else None
    parts = None if first is None else span_parts(first)
    return (
        first is not None
        and parts is not None
        and parts.label is not None
        and (not needed or needed in first)
    )


def span_parts(span: Any) -> SpanParts | None:
    """Return the parts of a span; None without two ends.

    Args:
        span: List or object of a record.
    """
    if isinstance(span, list):
        if len(span) < 3:
            return None
        if not isinstance(span[0], str):
            return SpanParts(*span[:3])
        # The text of the span, its ends and its label; or the label and its ends.
        surface_first = len(span) > 3 and isinstance(span[3], str)
        return (
            SpanParts(span[1], span[2], span[3], span[0])
            if surface_first
            else SpanParts(span[1], span[2], span[0])
        )
    if not isinstance(span, dict):
        return None
    for key in NESTED:
        inside = span.get(key)
        inside = inside[0] if isinstance(inside, list) and len(inside) == 1 else inside
        span = {**span, **inside} if isinstance(inside, dict) else span
    start, end = _first(span, STARTS), _first(span, ENDS)
    if end is None and isinstance(start, int) and isinstance(length := span.get("length"), int):
        end = start + length
    return (
        None
        if start is None or end is None
        else SpanParts(start, end, _first(span, LABELS), _first(span, SURFACES))
    )


def _first(values: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)


def read_span(span: Any, text: str, offsets: Offsets, *, inclusive: bool) -> CharacterSpan:
    """Convert a span of a record to characters of the text.

    Args:
        span: Span as the record has it.
        text: Text of the record.
        offsets: Unit in which offsets are counted.
        inclusive: True if the end is that of the last unit.

    Raises:
        SpanError: The span lacks an end or a label, or is not inside the text.
    """
    if (parts := span_parts(span)) is None:
        raise SpanError(
            f'expected a span, [0, 3, "PER"] or {{start, end, label}}, got {str(span)[:60]}', FORMS
        )
    label = _label(parts)
    placed = locate_span(
        text, parts.start, parts.end, label, surface=parts.surface, offsets=offsets, inclusive=inclusive
    )
    if not text[placed.start : placed.end].strip():
        problem = f"the span [{parts.start}, {parts.end}] {label} has nothing but white space in it"
        raise SpanError(problem, "remove it, or correct it")
    return placed


def _label(parts: SpanParts) -> str:
    labels = parts.label if isinstance(parts.label, list) else [parts.label]
    ends = f"[{parts.start}, {parts.end}]"
    if len(labels) > 1:
        problem = f"the span {ends} has {len(labels)} labels ({', '.join(map(str, labels[:5]))})"
        raise SpanError(problem, "give every span one label")
    label = labels[0] if labels else None
    if isinstance(label, bool) or not isinstance(label, str | int) or not str(label).strip():
        raise SpanError(f"the span {ends} has no label", "give every span one label")
    if has_span_form(str(label), "BI"):
        problem = f"the span {ends} has the tag of a word, {label}"
        raise SpanError(problem, "join words into spans (Transformers: aggregation_strategy='simple')")
    return checked_text(str(label).strip())
