"""Utterances with an intent and a slot for each word, in the files of ATIS, xSID and MultiATIS++.

    atis        an utterance per line: BOS, its words and EOS, a tab, then a slot for each of these; the intent stands
                in the place of EOS's slot
    xsid        a word per line: number, word, intent, slot; an empty line after each utterance, `#` comments
    multiatis   tables with the columns utterance, slot_labels and intent between tabs, named in the first line

Slots are IOB2. An artificial word is put in front of each utterance and stands for the whole of it; its tag is the
intent (`forms/utterance.py`). So everything that is predicted, distilled and stored for words covers intents too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

from typing_extensions import override

from raykd.corpora.column_files import Layout, cut_at_spaces, cut_at_tabs, row_faults, sentence_rows
from raykd.corpora.columns import ALMOST
from raykd.corpora.files import BrokenLine
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream, TextConfig
from raykd.corpora.text_files import Parse, read_text_files
from raykd.errors import CorpusError
from raykd.forms import STEPS, UTTERANCES, LabelForm
from raykd.forms.tag_schemes import ReadScheme, has_span_form
from raykd.forms.utterance_marks import INTENT, UTTERANCE
from raykd.metrics.bioes import OUTSIDE
from raykd.pluralise import pluralise


class Utterance(NamedTuple):
    """An utterance of a file; slots and intent are empty where they are not read.

    Attributes:
        line: First line, from 1.
        words: Words of the utterance.
        slots: IOB2 tag of each word.
        intent: Intent of the utterance.
    """

    line: int
    words: list[str]
    slots: list[str]
    intent: str


Utterances = Iterator[Utterance | tuple[CorpusError, ...]]
"""The utterances of a file, or faults in place of an utterance."""


class UtteranceSource(TextConfig):
    """Utterances with intents and slots."""

    forms: ClassVar[tuple[LabelForm, ...]] = (UTTERANCES, STEPS)
    source: Literal["atis", "xsid", "multiatis"]
    scheme: Literal["iob2"] = "iob2"
    spoken: bool = False
    """Read utterances as a speech recogniser gives them: in lower case, without punctuation."""

    @override
    def scheme_of(self, language: str) -> ReadScheme:
        return "utterance"


def read_utterances(config: TextConfig, parse: Parse, *, limit: int | None = None) -> Stream:
    """Read all parts of a corpus of utterances.

    Args:
        config: Settings of the corpus.
        parse: Parser of the format, as in `read_text_files`.
        limit: Maximum number of utterances from one file; None: all.

    Yields:
        The utterances, with the artificial word in front.

    Raises:
        CorpusError: A file is missing.
    """
    for part, item in read_text_files(config, parse, limit=limit):
        yield part, item._replace(tokens=[UTTERANCE, *item.tokens]) if isinstance(item, Sentence) else item


def parse(
    config: UtteranceSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse one file into utterances.

    The tags of an utterance are its intent, then its slots, where labels are read. An utterance with unequal numbers
    of words and slots is faulty.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
    labelled = config.reads_tags(part, language)
    for item in PARSERS[config.source](lines, file, labelled):
        if not isinstance(item, Utterance):
            yield Faulty(language, item)
            continue
        number, words, slots, intent = item
        fault = _fault(words, slots, intent, labelled)
        if fault is None and config.spoken:
            words, slots = as_spoken(words, slots)
            fault = None if words else ("no word is left without punctuation", "remove it")
        if fault is not None:
            yield Faulty(language, (CorpusError(file, number, *fault),))
        else:
            yield Sentence(words, [INTENT + intent, *slots] if labelled else None, language, (file, number))


def as_spoken(words: Sequence[str], slots: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return words and slots as from a speech recogniser: in lower case, without punctuation at the ends of words.

    A word of punctuation alone is left out. If a span began there, it begins at the next word.

    Args:
        words: Words of an utterance.
        slots: IOB2 slots of the words; empty if they are not known.
    """
    pairs: list[tuple[str, str]] = []
    begun = ""
    for word, slot in zip(words, slots or [OUTSIDE] * len(words), strict=True):
        slot = begun if slot[:2] == "I-" and slot[2:] == begun[2:] else slot
        if bare := _without_punctuation(word.lower()):
            pairs.append((bare, slot))
        begun = slot if not bare and slot[:2] == "B-" else ""
    return [word for word, _ in pairs], [slot for _, slot in pairs] if slots else []


def _without_punctuation(word: str) -> str:
    inside = [i for i, sign in enumerate(word) if unicodedata.category(sign)[0] != "P"]
    return word[inside[0] : inside[-1] + 1] if inside else ""


def _fault(words: Sequence[str], slots: Sequence[str], intent: str, labelled: bool) -> tuple[str, str] | None:
    """Problem of an utterance and a hint; None without one."""
    if not words:
        return "the utterance has no words", "fill it, or remove it"
    if labelled and len(words) != len(slots):
        return f"{pluralise(len(words), 'word')} and {pluralise(len(slots), 'slot')}", "correct one of them"
    if labelled and not intent:
        return "the intent is empty", "correct the line"
    return None


def _atis(lines: Iterable[str], file: str, labelled: bool) -> Utterances:
    for number, line in _nonblank(lines):
        if isinstance(line, BrokenLine):
            yield (line.fault(file, number),)
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
            yield Utterance(number, words[1:-1], slots[1:-1], "".join(slots[-1:]))


def _xsid(lines: Iterable[str], file: str, labelled: bool) -> Utterances:
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
        yield Utterance(numbers[0], [row[word] for row in rows], slots, intents.pop())


def _multiatis(lines: Iterable[str], file: str, labelled: bool) -> Utterances:
    lines = iter(lines)
    header = next(lines, "").strip().split("\t")
    needed = ("utterance", "slot_labels", "intent") if labelled else ("utterance",)
    if lacking := [name for name in needed if name not in header]:
        problem = f"the first line names no column {' and no column '.join(lacking)} ({', '.join(header)})"
        raise CorpusError(file, 1, problem, "write the names of the columns there, or set corpus.source")
    for number, line in _nonblank(lines, first=2):
        if isinstance(line, BrokenLine):
            yield (line.fault(file, number),)
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
        yield Utterance(number, cut_at_spaces(row["utterance"]), slots, intent)


def _nonblank(lines: Iterable[str], *, first: int = 1) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers."""
    return ((number, line) for number, line in enumerate(lines, first) if line.strip())


PARSERS: Mapping[str, Callable[[Iterable[str], str, bool], Utterances]] = MappingProxyType(
    {"atis": _atis, "xsid": _xsid, "multiatis": _multiatis}
)

ATIS = re.compile(r"BOS .* EOS\t *\S+( \S+)+ *")
MULTIATIS = ("utterance", "slot_labels", "intent")


def guess(head: Head) -> Guess | None:
    """Recognise files of intents and slots."""
    if not head.nonblank_lines:
        return None
    if {cell.strip() for cell in head.nonblank_lines[0].split("\t")}.issuperset(MULTIATIS):
        name, reason = "multiatis", "columns utterance, slot_labels and intent: MultiATIS++"
    elif head.share(ATIS.fullmatch) >= ALMOST:
        name, reason = "atis", "utterances between BOS and EOS with slots and an intent: ATIS"
    elif (blocks := [*_blocks(head.lines)]) and sum(map(_is_xsid, blocks)) >= ALMOST * len(blocks):
        name, reason = "xsid", "one word per line with its utterance's intent and its slot: xSID"
    else:
        return None
    return Guess(source=name, reason=reason, confidence=CERTAIN)


def _blocks(lines: Sequence[str]) -> Iterator[list[list[str]]]:
    """Rows of each utterance, cut at tabs, without comments."""
    for filled, block in groupby(lines, lambda line: bool(line.strip())):
        if filled and (rows := [cut_at_tabs(line) for line in block if not line.startswith("#")]):
            yield rows


def _is_xsid(rows: list[list[str]]) -> bool:
    """True if words are numbered from 1, and have slots and one intent, which is no tag of a span."""
    if any(len(row) < 4 for row in rows):
        return False
    numbers, intents, slots = ([row[place] for row in rows] for place in (0, 2, 3))
    return (
        numbers == [str(place) for place in range(1, len(rows) + 1)]
        and len(set(intents)) == 1
        and intents[0] not in ("_", OUTSIDE)
        and all(slot == OUTSIDE or has_span_form(slot, "BI") for slot in slots)
    )
