"""Utterances with an intent and a slot for each word, in the files of ATIS, xSID and MultiATIS++.

    atis        an utterance in each line: BOS, its words and EOS, a tab, a slot for each of these and in the place of
                EOS's the intent
    xsid        a word in each line: number, word, intent, slot; an empty line after each utterance, `#` comments
    multiatis   tables with the columns utterance, slot_labels and intent between tabs, which the first line names

Slots are IOB2. Every utterance gets one more word in front, which stands for the whole of it and whose tag is the
intent (`tags.py`): what is predicted, distilled and stored of words is so of intents too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

from raykd.corpora.column_files import Layout, cut_at_spaces, cut_at_tabs, row_faults, sentence_rows
from raykd.corpora.columns import ALMOST
from raykd.corpora.files import BrokenLine
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream, TextConfig
from raykd.corpora.text_files import read_text_files
from raykd.errors import CorpusError
from raykd.forms import STEPS, UTTERANCES, LabelForm
from raykd.forms.marks import INTENT, UTTERANCE
from raykd.forms.tag_schemes import ReadScheme, has_span_form
from raykd.metrics.bioes import OUTSIDE
from raykd.pluralise import pluralise


class Row(NamedTuple):
    """An utterance as a file has it; without slots and intent where these are not read."""

    line: int
    words: list[str]
    slots: list[str]
    intent: str


Rows = Iterator[Row | tuple[CorpusError, ...]]


class UtteranceSource(TextConfig):
    """Utterances with their intents and slots."""

    forms: ClassVar[tuple[LabelForm, ...]] = (UTTERANCES, STEPS)
    source: Literal["atis", "xsid", "multiatis"]
    scheme: Literal["iob2"] = "iob2"
    spoken: bool = False
    """Read utterances as a recogniser of speech gives them: in lower case, without punctuation."""

    def scheme_of(self, language: str) -> ReadScheme:
        return "utterance"


def read(config: UtteranceSource, *, limit: int | None = None) -> Stream:
    """Every part of the corpus, utterance by utterance, with the word in front; of each file the first `most`.

    Raises:
        CorpusError: a file is missing.
    """
    return prepend_utterance(read_text_files(config, parse, limit=limit))


def prepend_utterance(stream: Stream) -> Stream:
    """Every sentence with the word in front that stands for the whole of it."""
    for part, each in stream:
        yield part, each._replace(tokens=[UTTERANCE, *each.tokens]) if isinstance(each, Sentence) else each


def parse(
    config: UtteranceSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """The utterances of one file's lines: their words, and where they are `labelled` one tag more, the intent's first.
    One whose words and slots differ in number is faulty.
    """
    labelled = config.reads_tags(part, language)
    for row in PARSERS[config.source](lines, file, labelled):
        if not isinstance(row, Row):
            yield Faulty(language, row)
            continue
        number, words, slots, intent = row
        fault = _fault(words, slots, intent, labelled)
        if fault is None and config.spoken:
            words, slots = as_spoken(words, slots)
            fault = None if words else ("no word is left without punctuation", "remove it")
        if fault is not None:
            yield Faulty(language, (CorpusError(file, number, *fault),))
        else:
            yield Sentence(words, [INTENT + intent, *slots] if labelled else None, language, (file, number))


def as_spoken(words: Sequence[str], slots: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words and their IOB2 slots (none, where they are not known) in lower case, without the punctuation at the ends of
    words. What is nothing else is left out; a span that began there begins at its next word.
    """
    kept: list[tuple[str, str]] = []
    begun = ""
    for word, slot in zip(words, slots or [OUTSIDE] * len(words), strict=True):
        slot = begun if slot[:2] == "I-" and slot[2:] == begun[2:] else slot
        if bare := _without_punctuation(word.lower()):
            kept.append((bare, slot))
        begun = slot if not bare and slot[:2] == "B-" else ""
    return [word for word, _ in kept], [slot for _, slot in kept] if slots else []


def _without_punctuation(word: str) -> str:
    inside = [i for i, sign in enumerate(word) if unicodedata.category(sign)[0] != "P"]
    return word[inside[0] : inside[-1] + 1] if inside else ""


def _fault(words: Sequence[str], slots: Sequence[str], intent: str, labelled: bool) -> tuple[str, str] | None:
    """What is wrong with an utterance, and a hint."""
    if not words:
        return "the utterance has no words", "fill it, or remove it"
    if labelled and len(words) != len(slots):
        return f"{pluralise(len(words), 'word')} and {pluralise(len(slots), 'slot')}", "correct one of them"
    if labelled and not intent:
        return "the intent is empty", "correct the line"
    return None


def _atis(lines: Iterable[str], file: str, labelled: bool) -> Rows:
    for number, line in _texts(lines):
        if isinstance(line, BrokenLine):
            yield _broken(line, file, number)
            continue
        text, tab, tags = line.partition("\t")
        words, slots = cut_at_spaces(text), cut_at_spaces(tags)
        if labelled and not (tab and slots):
            problem = f"no slots behind a tab: {line[:60]!r}"
            yield (CorpusError(file, number, problem, "correct the line, or set corpus.source"),)
        elif words[:1] != ["BOS"] or words[-1:] != ["EOS"]:
            problem = f"the utterance is not between BOS and EOS: {line[:60]!r}"
            yield (CorpusError(file, number, problem, "correct the line, or set corpus.source"),)
        else:
            # BOS has a slot, and the intent is that of EOS.
            yield Row(number, words[1:-1], slots[1:-1], "".join(slots[-1:]))


def _xsid(lines: Iterable[str], file: str, labelled: bool) -> Rows:
    word, intent, slot = 1, 2, 3
    hint = "correct the line, or set corpus.source"
    layout = Layout(cut_at_tabs, 4 if labelled else 2, word, slot if labelled else None, labelled, "#", hint)
    for numbers, rows in sentence_rows(lines, layout):
        if faults := row_faults(rows, numbers, layout, file):
            yield faults
            continue
        intents = {row[intent] for row in rows} if labelled else {""}
        if len(intents) > 1:
            problem = f"words of one utterance have the intents {', '.join(sorted(intents))}"
            yield (CorpusError(file, numbers[0], problem, "correct them"),)
            continue
        slots = [row[slot] for row in rows] if labelled else []
        yield Row(numbers[0], [row[word] for row in rows], slots, intents.pop())


def _multiatis(lines: Iterable[str], file: str, labelled: bool) -> Rows:
    lines = iter(lines)
    header = next(lines, "").strip().split("\t")
    wanted = ("utterance", "slot_labels", "intent") if labelled else ("utterance",)
    if lacking := [name for name in wanted if name not in header]:
        problem = f"the first line names no column {' and no column '.join(lacking)} ({', '.join(header)})"
        raise CorpusError(file, 1, problem, "write the names of the columns there, or set corpus.source")
    for number, line in _texts(lines, first=2):
        if isinstance(line, BrokenLine):
            yield _broken(line, file, number)
            continue
        cells = line.split("\t")
        if len(cells) != len(header):
            problem = (
                f"{pluralise(len(cells), 'column')} between tabs where the first line names {len(header)}"
            )
            yield (CorpusError(file, number, problem, "correct the line"),)
            continue
        row = dict(zip(header, cells, strict=True))
        slots, intent = (cut_at_spaces(row["slot_labels"]), row["intent"].strip()) if labelled else ([], "")
        yield Row(number, cut_at_spaces(row["utterance"]), slots, intent)


def _texts(lines: Iterable[str], *, first: int = 1) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    return ((number, line) for number, line in enumerate(lines, first) if line.strip())


def _broken(line: BrokenLine, file: str, number: int) -> tuple[CorpusError, ...]:
    return (CorpusError(file, number, line.problem, line.hint),)


PARSERS: Mapping[str, Callable[[Iterable[str], str, bool], Rows]] = MappingProxyType(
    {"atis": _atis, "xsid": _xsid, "multiatis": _multiatis}
)

ATIS = re.compile(r"BOS .* EOS\t *\S+( \S+)+ *")
MULTIATIS = ("utterance", "slot_labels", "intent")


def guess(head: Head) -> Guess | None:
    """The guess of a file of intents and slots."""
    if not head.lines:
        return None
    if {cell.strip() for cell in head.nonblank_lines[0].split("\t")}.issuperset(MULTIATIS):
        name, why = "multiatis", "columns utterance, slot_labels and intent: MultiATIS++"
    elif head.share(ATIS.fullmatch) >= ALMOST:
        name, why = "atis", "utterances between BOS and EOS with slots and an intent: ATIS"
    elif (blocks := [*_blocks(head.lines)]) and sum(map(_is_xsid, blocks)) >= ALMOST * len(blocks):
        name, why = "xsid", "one word per line with its utterance's intent and its slot: xSID"
    else:
        return None
    return Guess(source=name, reason=why, confidence=CERTAIN)


def _blocks(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """The words of each utterance, cut at tabs, without comments."""
    for filled, block in groupby(lines, lambda line: bool(line.strip())):
        if filled and (rows := [cut_at_tabs(line) for line in block if not line.startswith("#")]):
            yield rows


def _is_xsid(rows: list[list[str]]) -> bool:
    """Whether words are numbered from 1, have one intent, which is no tag of a span, and slots."""
    if any(len(row) < 4 for row in rows):
        return False
    numbers, intents, slots = ([row[place] for row in rows] for place in (0, 2, 3))
    return (
        numbers == [str(place) for place in range(1, len(rows) + 1)]
        and len(set(intents)) == 1
        and intents[0] not in ("_", OUTSIDE)
        and all(slot == OUTSIDE or has_span_form(slot, "BI") for slot in slots)
    )
