"""Texts with spans of characters, in JSON or JSON Lines of annotation tools (`annotated_records.py`).

A record is one sentence, or a document of several. Its raw text is kept. Words are those of the record's tokens, if
these have offsets; otherwise they are those that a served student sees in the same text (`plain_text.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, ClassVar, Literal

from raykd.corpora.annotated_records import (
    AnnotatedText,
    SpanReading,
    has_spans,
    read_annotated,
    split_records,
)
from raykd.corpora.columns import ALMOST
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.json_items import Item, read_items
from raykd.corpora.plain_text import sentence_splitter, word_places
from raykd.corpora.sentence import Faulty, Note, ReadingNote, Sentence
from raykd.corpora.source import TextConfig
from raykd.corpora.span_alignment import CharacterSpan, SpanError, align, describe_span
from raykd.corpora.table_guess import TAGS, TOKENS
from raykd.errors import CorpusError
from raykd.forms import SPANS, LabelForm

FEW = 200
"""Number of records by which a file is recognised."""
LONG = 100
"""Number of words of a text that is hardly one sentence."""
COUNTINGS: Sequence[dict[str, Any]] = (
    {}, {"offsets": "utf-16"}, {"offsets": "utf-8"}, {"ends": "inclusive"}
)  # fmt: skip
"""Ways to count offsets, the most likely first."""


class SpanSource(TextConfig, SpanReading):
    """Texts with spans of characters: JSON or JSON Lines of doccano, Label Studio, Prodigy and tools like these."""

    forms: ClassVar[tuple[LabelForm, ...]] = (SPANS,)
    keeps_marks: ClassVar[bool] = True
    source: Literal["spans"]
    scheme: Literal["iob2"] = "iob2"
    form: Literal["sentences", "documents"] = "sentences"
    """`sentences`: each text is one sentence. `documents`: texts are split into sentences, never inside a span (needs
    the package sentencex, `pip install sentencex`)."""


def parse(
    config: SpanSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty | ReadingNote]:
    """Parse one file into sentences, faults and notes.

    Where labels are read, a text without annotations is left out: it is not a text without spans.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
    labelled = config.reads_tags(part, language)
    for item in read_items(lines, file, language):
        if isinstance(item, Faulty):
            yield item
            continue
        for place, record in _records(item):
            if record is None and record is not item.value:
                yield ReadingNote(language, "rejected", f"{file}:{item.line}: {place}null")
                continue
            try:
                text = read_annotated(record, config, labelled=labelled)
                yield from _sentence(text, config, labelled, language, (file, item.line))
            except SpanError as error:
                fault = CorpusError(file, item.line, place + error.problem, error.hint)
                yield Faulty(language, (fault,))


def _records(item: Item) -> Iterator[tuple[str, Any]]:
    """Records of a JSON value, each with a prefix for messages: `item 3: `, or empty."""
    records = split_records(item.value)
    for place, record in enumerate(records, start=1):
        number = place if len(records) > 1 else item.number
        yield f"item {number}: " if number else "", record


def _sentence(
    record: AnnotatedText, config: SpanSource, labelled: bool, language: str, origin: tuple[str, int]
) -> Iterator[Sentence | ReadingNote]:
    """The sentence of a record, with notes. SpanError for faulty spans."""

    def noted(note: Note, example: str, count: int = 1) -> ReadingNote:
        return ReadingNote(language, note, f"{origin[0]}:{origin[1]}: {example}", count)

    text, words, spans = record.text, record.words, record.spans
    if record.rejected or (labelled and spans is None):
        yield noted("rejected", record.rejected) if record.rejected else noted("bare", repr(text[:40]))
        return
    if words is None:
        words = word_places(text)
    tags = None
    if spans is not None:
        aligned = align(text, words, spans, keep_outermost=config.nested == "outermost")
        tags = aligned.tags
        if cut := aligned.widened:
            example = f"{describe_span(text, cut[0])} is read as {_whole_words(text, words, cut[0])}"
            if config.on_error == "stop":
                raise SpanError(example, "correct the span, or set corpus.on_error: repair")
            yield noted("widened", example, len(cut))
        if inner := aligned.inner:
            yield noted("inner", describe_span(text, inner[0]), len(inner))
    if not words:
        yield noted("wordless", repr(text[:40]))
        return
    tokens = [text[start:end] for start, end in words]
    whole = Sentence(tokens, tags, language, origin, text=text, offsets=words)
    yield from [whole] if config.form == "sentences" else _split(whole, spans or ())


def _split(whole: Sentence, spans: Iterable[CharacterSpan]) -> Iterator[Sentence]:
    """The sentences of a document. No sentence ends inside a word or span."""
    text, words = whole.text or "", whole.offsets or ()
    inside = {place for start, end, *_ in (*words, *spans) for place in range(start + 1, end)}
    ends, place = [0], 0
    for sentence in sentence_splitter()(whole.language, text):
        place = text.index(sentence, place) + len(sentence)
        ends += [place] if place not in inside else []
    starts = [start for start, _ in words]
    for begin, end in pairwise([*ends, len(text)]):
        first, behind = bisect_left(starts, begin), bisect_left(starts, end)
        if first < behind:
            yield whole._replace(
                tokens=whole.tokens[first:behind],
                tags=whole.tags and whole.tags[first:behind],
                text=text[begin:end],
                offsets=[(start - begin, stop - begin) for start, stop in words[first:behind]],
            )


def _whole_words(text: str, words: Sequence[tuple[int, int]], span: CharacterSpan) -> str:
    """The words with a character in a span."""
    inside = [word for word in words if word[0] < span.end and span.start < word[1]]
    return repr(text[inside[0][0] : inside[-1][1]][:60])


def guess(head: Head) -> Guess | None:
    """Recognise JSON records of texts with spans of characters."""
    if not head.nonblank_lines or head.nonblank_lines[0].lstrip()[:1] not in ("{", "["):
        return None
    lines = (line.removesuffix("\r") for line in head.lines)
    items = (item for item in read_items(lines, head.name, "") if isinstance(item, Item))
    stream = (record for item in items for _, record in _records(item) if record is not None)
    records = list(islice(stream, FEW))
    reading = SpanReading()
    labelled = [record for record in records if has_spans(record, reading) and not _has_tags(record)]
    texts = [
        read_annotated(record, reading, labelled=False).text
        for record in records
        if _is_read(record, reading, False)
    ]
    if not labelled or 2 * len(texts) < len(records):
        return None
    enough = ALMOST * len(labelled)
    fitting = (
        way for way in COUNTINGS
        if sum(_is_read(record, SpanReading(**way)) for record in labelled) >= enough
    )  # fmt: skip
    settings = next(fitting, {})
    reason = "because offsets counted in this way fit the text"
    doubts = [f"{key}: {value} is set, {reason}" for key, value in settings.items()]
    if sorted(len(text.split()) for text in texts)[len(texts) // 2] > LONG:
        doubts.append(
            f"half of the texts have more than {LONG} words: form: documents splits them into sentences"
        )
    form = "an object in each line" if head.name.removesuffix(".gz").endswith("l") else "JSON"
    reason = f"{form}, texts with spans of characters"
    return Guess(source="spans", reason=reason, confidence=CERTAIN, settings=settings, doubts=tuple(doubts))


def _has_tags(record: Any) -> bool:
    """True for a record with words and as many tags, which say more than spans of characters."""
    record = record if isinstance(record, dict) else {}
    words = [record[key] for key in TOKENS if isinstance(record.get(key), list)]
    tags = [record[key] for key in TAGS if isinstance(record.get(key), list)]
    return any(
        len(tokens) == len(labels) > 0 and all(isinstance(cell, str | int) for cell in (*tokens, *labels))
        for tokens in words
        for labels in tags
    )


def _is_read(record: Any, reading: SpanReading, labelled: bool = True) -> bool:
    try:
        read_annotated(record, reading, labelled=labelled)
    except SpanError:
        return False
    return True
