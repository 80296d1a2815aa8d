"""Reading one answer: a record of a file, or what a function returned for a text.

    spans          {"text", "spans": [{"start", "end", "label"}]}, and the forms of annotation tools
                   (`annotated_records.py`); GLiNER: {"tokenized_text", "ner": [[first word, last word, "PER"]]}
    labels         {"tokens", "labels": ["B-PER", "O"]}, one per word, or {"text", "label": "positive"}
    mentions       {"text", "mentions": [{"text": "Ada", "label": "PER"}]}, also ["Ada", "PER"] or {"PER": ["Ada"]}
    samples        {"text", "samples": [answer, …]}: several of either, as they are or as objects with a `weight`
                   (or `log_weight`) beside `spans`, `labels` or `mentions`
    trees          {"tokens", "heads": [2, 0], "labels": ["nsubj", "root"]}, as in CoNLL-U: 0 is the root, h word h
    probabilities  {"tokens", "probabilities": [{"B-PER": 0.9, "O": 0.1}, …]}, one object per word

A text stands under the names in `annotated_records.py`, words under those in `WORDS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from raykd.corpora.annotated_records import TEXTS, SpanReading, read_annotated
from raykd.corpora.answers.label_names import LabelNames
from raykd.corpora.answers.labellings import Answer, AnswerError, Labelling, UnmappedError
from raykd.corpora.answers.mentions import Mention, Repeat, place_mentions
from raykd.corpora.answers.visible import visible_text, word_places
from raykd.corpora.record_spans import LABELS, read_span
from raykd.corpora.sentence import Unit
from raykd.corpora.span_alignment import CharacterSpan, SpanError, align, describe_span
from raykd.corpora.span_offsets import Offsets
from raykd.corpora.trees import find_cycles
from raykd.forms.tag_schemes import has_span_form, to_bioes
from raykd.metrics.bioes import OUTSIDE, read_spans

Form = Literal["spans", "labels", "mentions", "samples", "probabilities", "trees"]
"""Forms of an answer; `samples` are several spans, labels or mentions."""
WORDS = ("tokens", "words", "tokenized_text")
"""Keys of a list of words."""
TAGS = ("labels", "tags", "ner_tags")
"""Keys of one label per word."""
CLASSES = ("label", "category", "class")
"""Keys of the one label of a sentence."""
MENTIONS, SAMPLES, PROBABILITIES, WORD_SPANS = "mentions", "samples", "probabilities", "ner"
TREES, HEADS = "trees", "heads"
WEIGHTS = ("weight", "log_weight")


@dataclass(frozen=True)
class AnswerReading:
    """Settings for reading answers. They are applied to stored answers, which are never asked for again.

    Attributes:
        names: Labels of the annotator as labels of the corpus.
        is_bioes: True if the labels are types of spans; false for tags, or the classes of sentences.
        unit: Unit that has one label.
        repeat: Number of places of a mention.
        offsets: Unit in which offsets of spans count.
        inclusive: True if the end of a span is its last character.
        trees: True if answers are trees.
    """

    names: LabelNames
    is_bioes: bool
    unit: Unit = "word"
    repeat: Repeat = "all"
    offsets: Offsets = "characters"
    inclusive: bool = False
    trees: bool = False


def record_text(record: Any) -> str:
    """Return the text that a record answers: its text, in which offsets count, or its words with spaces between them.

    Args:
        record: A JSON value.

    Raises:
        AnswerError: The record has neither.
    """
    if isinstance(record, Mapping):
        if isinstance(text := record.get("text"), str):
            return text
        if (words := _find(record, WORDS, list)) is not None and all(isinstance(word, str) for word in words):
            return " ".join(words)
        if isinstance(record.get("data"), Mapping) or "text_snippet" in record:
            return read_annotated(record, SpanReading(), labelled=False).text
        if (text := _find(record, TEXTS, str)) is not None:
            return text
    elif (
        isinstance(record, Sequence) and not isinstance(record, str) and record and isinstance(record[0], str)
    ):
        return record[0]
    raise AnswerError(f"the record has no text and no words: {str(record)[:60]!r}")


def sample_count(record: Any) -> int:
    """Return the number of samples in a record; 1 for an answer that is no list of samples.

    Args:
        record: A JSON value.
    """
    samples = record.get(SAMPLES) if isinstance(record, Mapping) else None
    return len(samples) if isinstance(samples, list) else 1


def read_answer(record: Any, words: Sequence[str], reading: AnswerReading, *, start: int = 0) -> Answer:
    """Read the answer to one sentence.

    Args:
        record: The answer with its text, a JSON value.
        words: Words of the sentence [T].
        reading: Settings for reading.
        start: Visible characters of the record's text that stand before the sentence, in an answer about a document.

    Raises:
        UnmappedError: A label is none of the corpus.
        AnswerError: The answer cannot be used.
    """
    text = record_text(record)
    try:
        places = word_places(text, words, start=start)
    except ValueError as error:
        raise AnswerError(str(error)) from None
    reader = _Reader(text, tuple(words), places, reading, Answer())
    if reading.trees:
        reader.answer.labellings = [reader.tree(record)]
        return reader.answer
    if isinstance(record, Mapping) and isinstance(samples := record.get(SAMPLES), list):
        return reader.merge(samples, record)
    if isinstance(record, Mapping) and isinstance(rows := record.get(PROBABILITIES), list):
        reader.answer.probabilities = reader.probabilities(rows, record)
        return reader.answer
    reader.answer.labellings = [Labelling(reader.labelling(record))]
    return reader.answer


@dataclass
class _Reader:
    """Reads the answers about one sentence."""

    text: str
    words: tuple[str, ...]
    places: list[tuple[int, int]]
    reading: AnswerReading
    answer: Answer

    def merge(self, samples: Sequence[Any], record: Mapping[str, Any]) -> Answer:
        """Read samples: repeats add their weights, unusable ones are dropped with their reasons."""
        if not samples:
            raise AnswerError("it has no samples")
        # In logarithms: the probability of a long answer is below the smallest float.
        log_weights: dict[tuple[str, ...], float] = {}
        for place, sample in enumerate(samples, start=1):
            try:
                log_weight, tags = _log_weight(sample), self.labelling(self._sample(sample, record))
            except UnmappedError:
                raise
            except AnswerError as error:
                self.answer.unusable.append(f"sample {place}: {error}")
                continue
            if log_weight > -math.inf:
                log_weights[tags] = float(np.logaddexp(log_weights.get(tags, -np.inf), log_weight))
        if not log_weights:
            raise AnswerError("; ".join(self.answer.unusable) or "all its samples have weight 0")
        ordered = sorted(log_weights.items(), key=lambda item: -item[1])
        self.answer.labellings = [Labelling(*item) for item in ordered]
        return self.answer

    def _sample(self, sample: Any, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A sample as a record of its own."""
        around = {key: record[key] for key in (*WORDS, *TEXTS) if key in record}
        if isinstance(sample, Mapping) and not set(sample) <= {*WEIGHTS}:
            answer_keys = (*TAGS, *CLASSES, MENTIONS, "spans", "entities", WORD_SPANS)
            if not any(key in sample for key in answer_keys):
                return {**around, MENTIONS: sample}  # {"PER": ["Ada"]}
            return {**around, **{key: value for key, value in sample.items() if key not in WEIGHTS}}
        if isinstance(sample, str):
            return {**around, "label": sample}
        if isinstance(sample, list):
            if sample and all(isinstance(item, str) for item in sample):
                return {**around, "labels": sample}
            has_places = any(_has_places(item) for item in sample)
            return {**around, ("spans" if has_places or not sample else MENTIONS): sample}
        raise AnswerError(f"expected spans, labels or mentions, got {str(sample)[:40]!r}")

    def labelling(self, record: Any) -> tuple[str, ...]:
        """Read one labelling."""
        if not isinstance(record, Mapping):
            return self._from_spans(self._tool_spans(record))
        if self.reading.unit == "sentence":
            return (self._class(record),)
        if isinstance(mentions := record.get(MENTIONS), list | Mapping):
            return self._from_spans(self._mention_spans(mentions))
        if isinstance(spans := record.get(WORD_SPANS), list):
            return self._from_spans(self._word_spans(spans, record))
        tags = _find(record, TAGS, list)
        if tags is not None and all(isinstance(tag, str) for tag in tags) and (tags or not self.words):
            return self._from_tags(tags, record)
        if not self.reading.is_bioes:
            raise AnswerError(f"it has no labels of words (its keys: {', '.join(map(str, record))})")
        return self._from_spans(self._tool_spans(record))

    def tree(self, record: Any) -> Labelling:
        """Read a tree: the head of each word, and its relation. There may be several roots, but no cycle."""
        heads = record.get(HEADS) if isinstance(record, Mapping) else None
        relations = _find(record, TAGS, list) if isinstance(heads, list) else None
        if not isinstance(heads, list) or relations is None:
            raise AnswerError("it has no tree; expected heads and labels")
        if self._check_words(record) is not None:
            raise AnswerError("its words are others")
        words = len(self.words)
        if len(heads) != words or len(relations) != words:
            raise AnswerError(f"it has {len(heads)} heads and {len(relations)} labels for {words} words")
        for word, head in enumerate(heads, start=1):
            if not isinstance(head, int) or isinstance(head, bool) or not 0 <= head <= words or head == word:
                raise AnswerError(
                    f"the head of word {word} is {head!r}; expected 0 or another of the {words} words"
                )
        for cycle in find_cycles(heads):
            numbers = ", ".join(str(place + 1) for place in sorted(cycle))
            raise AnswerError(f"its words {numbers} are each other's heads")
        tags = tuple(self.reading.names.rename(str(relation)) for relation in relations)
        return Labelling(tags, heads=tuple(heads))

    def probabilities(self, rows: Sequence[Any], record: Mapping[str, Any]) -> list[Mapping[str, float]]:
        """Read one distribution per word."""
        expected = 1 if self.reading.unit == "sentence" else len(self.words)
        if len(rows) != expected:
            raise AnswerError(f"it has {len(rows)} distributions for {expected} words")
        for row in rows:
            numbers = row.values() if isinstance(row, Mapping) else ()
            if not numbers or not all(_is_weight(number) for number in numbers) or not sum(numbers) > 0:
                raise AnswerError(f"expected a probability for each label, got {str(row)[:60]!r}")
        self._check_words(record)
        return list(rows)

    def _class(self, record: Mapping[str, Any]) -> str:
        label = _find(record, CLASSES, str) or next(iter(_find(record, TAGS, list) or ()), None)
        if not isinstance(label, str):
            raise AnswerError(f"it has no label (its keys: {', '.join(map(str, record))})")
        return self.reading.names.rename(label)

    def _check_words(self, record: Mapping[str, Any]) -> list[str] | None:
        """The words of a record, if it has words that are not those of the sentence."""
        words = _find(record, WORDS, list)
        if words is None and len(self.words) and record.get("text") is None:
            raise AnswerError("it has labels of words, and no words")
        return None if words is None or [*words] == [*self.words] else [*map(str, words)]

    def _from_tags(self, tags: Sequence[str], record: Mapping[str, Any]) -> tuple[str, ...]:
        words = self._check_words(record)
        count = len(words if words is not None else self.words)
        if len(tags) != count:
            raise AnswerError(f"it has {len(tags)} labels for {count} words")
        if not self.reading.is_bioes:
            if words is not None:
                raise AnswerError(f"its words are others ({' '.join(words)[:60]!r})")
            return tuple(map(self.reading.names.rename, tags))
        bioes, repairs = _to_bioes(tags)
        if repairs:
            self.answer.notes["repaired"] += repairs
            self.answer.examples.setdefault("repaired", " ".join(tags)[:80])
        places = self.places if words is None else word_places(self.text, words)
        spans = [
            CharacterSpan(places[first][0], places[behind - 1][1], label)
            for first, behind, label in read_spans(bioes)
        ]
        return self._from_spans(spans)

    def _mention_spans(self, mentions: Any) -> list[CharacterSpan]:
        placed = place_mentions(self.text, self.places, [*_mentions(mentions)], repeat=self.reading.repeat)
        for mention in placed.invented:
            self.answer.note("invented", f"{mention.text!r} {mention.label} in {self.text[:60]!r}")
        return placed.spans

    def _word_spans(self, spans: Sequence[Any], record: Mapping[str, Any]) -> list[CharacterSpan]:
        """Spans of GLiNER: numbers of the first and the last word, and the label."""
        words = _find(record, WORDS, list) or []
        places, read = word_places(self.text, words), []
        for span in spans:
            if not (isinstance(span, Sequence) and len(span) >= 3 and 0 <= span[0] <= span[1] < len(places)):
                raise AnswerError(f"the span {span} is not inside the {len(places)} words")
            read.append(CharacterSpan(places[span[0]][0], places[span[1]][1], str(span[2])))
        return read

    def _tool_spans(self, record: Any) -> list[CharacterSpan]:
        """Spans of characters, in the forms of annotation tools."""
        settings = SpanReading(
            offsets=self.reading.offsets,
            ends="inclusive" if self.reading.inclusive else "exclusive",
            several="last",
        )
        try:
            if isinstance(record, Mapping) and isinstance(spans := record.get("spans"), list):
                inclusive = self.reading.inclusive
                return [
                    read_span(span, self.text, self.reading.offsets, inclusive=inclusive) for span in spans
                ]
            annotated = read_annotated(record, settings)
        except SpanError as error:
            raise AnswerError(error.problem) from None
        if annotated.rejected:
            raise AnswerError(f"annotators rejected it ({annotated.rejected})")
        if annotated.spans is None:
            keys = ", ".join(map(str, record)) if isinstance(record, Mapping) else type(record).__name__
            raise AnswerError(f"it has no spans (its keys: {keys[:80]})")
        return annotated.spans

    def _from_spans(self, spans: Iterable[CharacterSpan]) -> tuple[str, ...]:
        """BIOES tags of spans, with the labels of the corpus; spans outside of the sentence are another sentence's."""
        if not self.reading.is_bioes:
            raise AnswerError("it has spans, and the corpus has one tag per word")
        first, behind = (self.places[0][0], self.places[-1][1]) if self.places else (0, 0)
        renamed = list[CharacterSpan]()
        for span in spans:
            label = self.reading.names.rename(span.label)
            if label != OUTSIDE and span.start < behind and span.end > first:
                renamed.append(span._replace(label=label))
        try:
            aligned = align(self.text, self.places, renamed, keep_outermost=True)
        except SpanError as error:
            raise AnswerError(error.problem) from None
        for kind, changed in (("inner", aligned.inner), ("widened", aligned.widened)):
            for span in changed:
                self.answer.note(kind, describe_span(self.text, span))
        return tuple(to_bioes(aligned.tags, "iob2")[0])


def _find(record: Mapping[str, Any], keys: Sequence[str], kind: type) -> Any:
    """The first value of a type under some keys."""
    return next((record[key] for key in keys if isinstance(record.get(key), kind)), None)


def _log_weight(sample: Any) -> float:
    if not isinstance(sample, Mapping):
        return 0.0
    if (log_weight := sample.get("log_weight")) is not None:
        if not _is_number(log_weight):
            raise AnswerError(f"log_weight is {log_weight!r}, not a number")
        return float(log_weight)
    weight = sample.get("weight", 1.0)
    if not _is_weight(weight):
        raise AnswerError(f"weight is {weight!r}, not a number of 0 or more")
    return math.log(weight) if weight else -math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_weight(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _has_places(item: Any) -> bool:
    if isinstance(item, Mapping):
        return "start" in item or "start_offset" in item
    return isinstance(item, Sequence) and len(item) >= 3 and isinstance(item[0], int)


def _mentions(mentions: Any) -> Iterable[Mention]:
    if isinstance(mentions, Mapping):
        for label, names in mentions.items():
            for name in names if isinstance(names, list) else [names]:
                yield _mention(name, label)
        return
    for mention in mentions:
        if isinstance(mention, Mapping):
            label = next((mention[key] for key in LABELS if mention.get(key) is not None), None)
            yield _mention(mention.get("text", mention.get("word")), label)
        elif isinstance(mention, Sequence) and not isinstance(mention, str) and len(mention) == 2:
            yield _mention(*mention)
        else:
            raise AnswerError(f'expected a mention, {{"text", "label"}}, got {str(mention)[:60]!r}')


def _mention(text: Any, label: Any) -> Mention:
    if not isinstance(text, str) or not isinstance(label, str) or not visible_text(text) or not label.strip():
        raise AnswerError(f"expected a mention with a text and a label, got {str((text, label))[:60]}")
    return Mention(text.strip(), label.strip())


def _to_bioes(tags: Sequence[str]) -> tuple[list[str], int]:
    """BIOES tags of a sentence in any scheme that its letters show, and the number of repaired ones."""
    letters = {tag[0] for tag in tags if has_span_form(tag)}
    plain_tags = [tag for tag in tags if tag != OUTSIDE and not has_span_form(tag)]
    if plain_tags and letters:
        raise AnswerError(f"tag {plain_tags[0]!r} is no tag of a span, and others are")
    if not letters:
        return to_bioes(tags, "io")
    schemes = ("iob2", "bioes", "bilou", "bmes", "bmewo")
    for scheme, allowed in zip(schemes, ("BI", "BIES", "BILU", "BMES", "BMEW"), strict=True):
        if letters <= set(allowed):
            return to_bioes(tags, scheme)  # pyright: ignore[reportArgumentType]
    raise AnswerError(f"its tags are of no scheme ({', '.join(sorted(letters))})")
