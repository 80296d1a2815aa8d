"""Conversion of span offsets to characters, checked against the text of the span.

Offsets count characters, code units of UTF-16 or bytes of UTF-8.
"""

from __future__ import annotations

from typing import Any, Literal

from raykd.corpora.span_alignment import CharacterSpan, SpanError

Offsets = Literal["characters", "utf-16", "utf-8"]
CODECS = {"utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1)}
"""Unit → codec, and bytes per unit; not for characters."""
CORRECT = "correct the span"
LONGEST = 40


def locate_span(
    text: str, start: Any, end: Any, label: str, *, surface: object, offsets: Offsets, inclusive: bool
) -> CharacterSpan:
    """Convert the offsets of a span to characters.

    Args:
        text: The whole text.
        start: First unit, as the record has it.
        end: The unit behind the last one, or with `inclusive` the last one.
        label: Label of the span.
        surface: Text of the span according to the record; ignored if it is no string.
        offsets: Unit in which offsets are counted.
        inclusive: True if `end` is that of the last unit.

    Raises:
        SpanError: The span is not inside the text, or its text differs from `surface`.
    """
    first, behind = _whole_number(start, "start"), _whole_number(end, "end") + inclusive
    ends = f"[{start}, {end}] {label}"
    if first < 0:
        raise SpanError(f"the span {ends} begins before the text", CORRECT)
    if behind < first:
        raise SpanError(f"the ends of the span {ends} are swapped", CORRECT)
    if behind == first:
        raise SpanError(
            f"the span {ends} is empty",
            "remove it, or correct it; for ends that count set corpus.ends: inclusive",
        )
    span = CharacterSpan(_character_at(text, first, offsets), _character_at(text, behind, offsets), label)
    if span.end > len(text):
        problem = f"the span {ends} ends behind the text, which has {len(text)} characters"
        raise SpanError(problem, _hint_of_length(text, behind, offsets))
    piece = text[span.start : span.end]
    if isinstance(surface, str) and _normalize(surface) != _normalize(piece):
        problem = f"the span {ends} says {_shorten(surface)}, and the text has {_shorten(piece)} there"
        raise SpanError(problem, _hint_of_surface(text, first, behind, surface))
    return span


def _whole_number(offset: Any, name: str) -> int:
    if isinstance(offset, str) and offset.isascii() and offset.isdigit() and len(offset) < 10:
        return int(offset)  # as Google's tools write them
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise SpanError(f"the {name} of a span is {_shorten(offset)}, not a whole number", CORRECT)
    return offset


def _character_at(text: str, offset: int, offsets: Offsets) -> int:
    """Character at an offset; for offsets behind the text, as many characters as units."""
    if offsets == "characters" or text.isascii():
        return offset
    codec, width = CODECS[offsets]
    data = text.encode(codec)
    try:
        return len(data[: offset * width].decode(codec)) + max(0, offset - len(data) // width)
    except UnicodeDecodeError:
        problem = f"offset {offset} is inside of a character, counted in {offsets}"
        raise SpanError(problem, "correct it, or set corpus.offsets: characters") from None


def _hint_of_length(text: str, behind: int, offsets: Offsets) -> str:
    for unit, (codec, width) in CODECS.items():
        if offsets == "characters" and behind * width <= len(text.encode(codec)):
            return f"correct it; where offsets count units of {unit.upper()}, set corpus.offsets: {unit}"
    return CORRECT


def _hint_of_surface(text: str, first: int, behind: int, surface: str) -> str:
    for unit, (codec, width) in CODECS.items():
        if surface.encode(codec, "replace") == text.encode(codec)[first * width : behind * width]:
            return f"its offsets count units of {unit.upper()}: set corpus.offsets: {unit}"
    if _normalize(text[first:behind]) != _normalize(surface) == _normalize(text[first : behind + 1]):
        return "its end is its last character: set corpus.ends: inclusive"
    if _normalize(surface) == _normalize(text[first:behind]):
        return "its offsets count characters: set corpus.offsets: characters"
    if first and _normalize(surface) == _normalize(text[first - 1 : behind - 1]):
        return "its offsets count from 1: subtract 1 from all of them"
    return "correct the offsets, or the text: one of them was changed"


def _normalize(piece: str) -> str:
    """Text of a span for comparison: white space, and line ends as Label Studio writes them, become one space."""
    return " ".join(piece.replace("\\n", " ").replace("\\r", " ").split())


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
