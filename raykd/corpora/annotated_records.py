"""Texts with spans in the forms of annotation tools: one record is a text and its spans of characters.

    doccano          {"text", "label": [[0, 3, "PER"]]}, also "labels"; {"text", "entities": [{"start_offset",
                     "end_offset", "label"}], "relations"}
    Prodigy, spaCy   {"text", "tokens": [{"start", "end"}], "spans": [{"start", "end", "label"}], "answer": "accept"};
                     `Doc.to_json` has "ents"; spaCy 2 trained on ["text", {"entities": [[0, 3, "PER"]]}]
    Label Studio     {"data": {"text"}, "annotations": [{"result": [{"value": {"start", "end", "labels": ["PER"]}}]}]};
                     JSON-MIN has {"text", "label": [{"start", "end", "labels"}]}
    Dataturks        {"content", "annotation": [{"label": ["PER"], "points": [{"start", "end"}]}]}, ends inclusive
    Rasa             {"rasa_nlu_data": {"common_examples": [{"text", "entities": [{"start", "end", "entity"}]}]}}
    others           a text with a list of spans, under the names in `TEXTS` and in `record_spans.py`

Ends are those of Python's slices: the first character behind the span.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from raykd.corpora.json_items import is_pair
from raykd.corpora.record_spans import FORMS, checked_text, find_spans_key, read_span, span_parts
from raykd.corpora.source import Name
from raykd.corpora.span_alignment import CharacterSpan, SpanError
from raykd.corpora.span_offsets import Offsets, locate_span
from raykd.spec import Frozen

TEXTS = (
    "text",
    "content",
    "document",
    "sentence",
    "data",
    "textContent",
    "freeText",
    "raw_text",
    "full_text",
    "source_text",
)
CONTAINERS = ("common_examples", "annotations", "examples", "documents", "records", "data")
"""Keys of lists of records, in a file that is one object."""
LEFT_OUT = ("reject", "ignore")
"""Prodigy's answers for records that are no examples."""


class SpanColumns(Frozen):
    """Names of the keys of text and spans; by default the usual names are looked for."""

    text: Name | None = None
    """The key of the text; of Label Studio's tasks in `data`."""
    spans: Name | None = None
    """The key of the list of spans; of Label Studio's tasks the `from_name` of the labels."""


class SpanReading(Frozen):
    """Settings for reading records of texts with spans."""

    columns: SpanColumns = SpanColumns()
    """The names of their keys."""
    offsets: Offsets = "characters"
    """The unit of offsets: `characters` as in Python; `utf-16`: code units, as in JavaScript and Java, in which an
    emoji counts twice; `utf-8`: bytes."""
    ends: Literal["exclusive", "inclusive"] = "exclusive"
    """The end of a span: the first character behind it, or its last one."""
    several: Literal["refuse", "first", "last"] = "refuse"
    """The annotation that is read where Label Studio has several of a text that differ, and none is marked as ground
    truth."""


class AnnotatedText(NamedTuple):
    """A text with its spans.

    Attributes:
        text: The text.
        spans: Spans of characters; None if the text was not annotated.
        words: (start, end) of each word, if the record has words.
        rejected: Reason for which annotators rejected the record; empty if they did not.
    """

    text: str
    spans: list[CharacterSpan] | None
    words: list[tuple[int, int]] | None = None
    rejected: str = ""


class RawRecord(NamedTuple):
    """A record before the spans are read."""

    text: str
    spans: list[Any] | None
    tokens: list[Any] | None = None
    rejected: str = ""
    inclusive: bool = False


def split_records(value: Any) -> list[Any]:
    """Return the records in a JSON value: items of a list inside, or the value itself; null is a skipped text."""
    if not isinstance(value, dict) or any(isinstance(value.get(key), str) for key in TEXTS):
        return [value]
    if isinstance(inside := value.get("rasa_nlu_data"), dict):
        value = inside
    for key in CONTAINERS:
        records = value.get(key)
        if isinstance(records, list) and "data" not in value.keys() - {key} and _are_records(records):
            return records
    return [value]


def _are_records(items: list[Any]) -> bool:
    """Return True if an item is a text and no span, as spans too have texts."""
    return any(
        is_pair(record)
        or (
            isinstance(record, dict)
            and any(isinstance(record.get(key), str) for key in TEXTS)
            and span_parts(record) is None
        )
        for record in items
    )


def read_annotated(record: Any, settings: SpanReading, *, labelled: bool = True) -> AnnotatedText:
    """Read the text and the spans of a record.

    Args:
        record: A JSON value.
        settings: Settings for reading.
        labelled: False leaves out the spans.

    Raises:
        SpanError: The record is no text with spans, or a span is not inside the text.
    """
    shape = _raw_record(record, settings, labelled=labelled)
    text = checked_text(shape.text)
    words = _words(shape, settings)
    if not labelled or shape.spans is None or shape.rejected:
        return AnnotatedText(text, None, words, shape.rejected if labelled else "")
    ends = "inclusive" if shape.inclusive else settings.ends
    spans = [read_span(span, text, settings.offsets, inclusive=ends == "inclusive") for span in shape.spans]
    return AnnotatedText(text, spans, words)


def has_spans(record: Any, settings: SpanReading) -> bool:
    """Return True if a record is a text with at least one span."""
    try:
        shape = _raw_record(record, settings, labelled=True)
        return any(span_parts(span) is not None for span in shape.spans or ())
    except SpanError:
        return False


def _raw_record(record: Any, settings: SpanReading, *, labelled: bool) -> RawRecord:
    if is_pair(record):
        text, annotations = record
        keys = annotations if isinstance(annotations, dict) else {"spans": annotations}
        record = {**keys, "text": text}
    if not isinstance(record, dict):
        raise SpanError(f"expected an object with a text and its spans, got {str(record)[:40]!r}", FORMS)
    if isinstance(record.get("data"), dict):
        return _task(record, settings, labelled=labelled)
    text = _text(record, settings.columns.text)
    answer = record.get("answer")
    rejected = f"answer {answer}" if answer in LEFT_OUT else ""
    tokens = record.get("tokens")
    spans = None
    if labelled and not rejected:
        key = settings.columns.spans or find_spans_key(record)
        spans = record.get(key) if key is not None else None
        if spans is None and (answer == "accept" or record.get("annotation_id") is not None):
            spans = []  # Prodigy and JSON-MIN name no spans where there are none
        if spans is not None and not isinstance(spans, list):
            raise SpanError(f"{key!r} is no list of spans: {str(spans)[:40]!r}", FORMS)
    inclusive = any(isinstance(span, dict) and "points" in span for span in spans or ())
    return RawRecord(text, spans, tokens if isinstance(tokens, list) else None, rejected, inclusive)


def _text(record: Mapping[str, Any], name: str | None) -> str:
    keys = TEXTS if name is None else (name,)
    if isinstance(snippet := record.get("text_snippet"), dict):
        record = {**record, **snippet}
    for key in keys:
        if isinstance(text := record.get(key), str):
            return text
    keys_shown = ", ".join(map(str, record)) or "none"
    missing = f"no text under {name!r}" if name else "no text"
    raise SpanError(
        f"the record has {missing} (its keys: {keys_shown[:80]})",
        "set corpus.columns.text to the key of the text",
    )


def _words(shape: RawRecord, settings: SpanReading) -> list[tuple[int, int]] | None:
    """Return start and end of the words, if all tokens of the record have them; tokens of white space are no words."""
    tokens = shape.tokens
    if not tokens or not all(
        isinstance(token, dict) and {"start", "end"} <= token.keys() and "entityLabel" not in token
        for token in tokens
    ):
        return None
    words: list[tuple[int, int]] = []
    for token in tokens:
        if token["start"] == token["end"]:
            continue
        try:
            word = locate_span(
                shape.text, token["start"], token["end"], "", surface=token.get("text"), offsets=settings.offsets,
                inclusive=False,
            )  # fmt: skip
        except SpanError as error:
            raise SpanError(f"in tokens: {error.problem}", "correct tokens, or remove them") from None
        if words and word.start < words[-1][1]:
            problem = f"tokens are not in order: one begins at {word.start}, and the one before ends at {words[-1][1]}"
            raise SpanError(problem, "correct tokens, or remove them")
        if shape.text[word.start : word.end].strip():
            words.append((word.start, word.end))
    return words


def _task(task: Mapping[str, Any], settings: SpanReading, *, labelled: bool) -> RawRecord:
    """Return the text and spans of a task of Label Studio."""
    data = task["data"]
    texts = [key for key, value in data.items() if isinstance(value, str)]
    alone = texts[0] if len(texts) == 1 and "text" not in texts else None
    text = _text(data, settings.columns.text or alone)
    annotations = task.get("annotations", task.get("completions"))
    if not labelled or not annotations:
        return RawRecord(text, None)
    if not isinstance(annotations, list) or not all(
        isinstance(annotation, dict) for annotation in annotations
    ):
        raise SpanError(
            "the annotations of the task are no list of objects", "export the project once more as JSON"
        )
    live = [
        annotation
        for annotation in annotations
        if not (annotation.get("was_cancelled") or annotation.get("skipped"))
    ]
    if not live:
        return RawRecord(text, None, rejected="was_cancelled")
    return RawRecord(text, _chosen(live, settings))


def _chosen(annotations: list[dict[str, Any]], settings: SpanReading) -> list[Any]:
    """Return the spans of one annotation among several of a text."""
    annotations = sorted(annotations, key=lambda annotation: str(annotation.get("created_at", "")))
    answers = [_results(annotation, settings.columns.spans) for annotation in annotations]
    gold = [
        spans
        for annotation, spans in zip(annotations, answers, strict=True)
        if annotation.get("ground_truth")
    ]
    answers = gold or answers
    agreed = all(sorted(map(repr, spans)) == sorted(map(repr, answers[0])) for spans in answers)
    if not agreed and settings.several == "refuse":
        hint = "mark one as ground truth, or set corpus.several: last (or first)"
        raise SpanError(f"the task has {len(answers)} annotations that differ", hint)
    return answers[-1 if settings.several == "last" else 0]


def _results(annotation: Mapping[str, Any], name: str | None) -> list[Any]:
    """Return the labelled spans of an annotation; relations, choices and texts are no spans."""
    spans, names = [], dict[str, None]()
    results = annotation.get("result")
    for result in results if isinstance(results, list) else ():
        kind = str(result.get("type")) if isinstance(result, dict) else ""
        value = result.get("value") if kind.endswith("labels") else None
        if isinstance(value, dict) and name in (None, result.get("from_name")):
            names[str(result.get("from_name"))] = None
            label = value.get(kind, value.get("labels"))
            spans.append({**{key: value.get(key) for key in ("start", "end", "text")}, "label": label})
    if len(names) > 1:
        problem = f"the task has spans of {' and '.join(names)}"
        raise SpanError(problem, f"set corpus.columns.spans to one of them ({', '.join(names)})")
    return spans
