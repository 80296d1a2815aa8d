"""What one file is: its format, encoding and columns, by its first lines."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice

from raykd.corpora.column_files import DOCUMENT_START, cut_at_tabs
from raykd.corpora.conllu import COLUMNS as CONLLU_COLUMNS
from raykd.corpora.conllu import HEAD_COLUMN, MISSING
from raykd.corpora.detect.columns import ALMOST, Column, Rows, columns_of, text_columns
from raykd.corpora.detect.seen import (
    LABEL_WORDS,
    MOST_CLASSES,
    PAIRS_HINT,
    TEXT_WORDS,
    Seen,
    Unclear,
    pair_of,
)
from raykd.corpora.detect.tables import languages_in, look_at_json, look_at_parquet
from raykd.corpora.detect.utterances import look_at_utterances
from raykd.corpora.files import BrokenLine, opened, read_lines
from raykd.errors import CorpusError
from raykd.storage.store import Storage
from raykd.storage.streams import BLOCK

LINES, BYTES = 4000, 2**20
"""What is looked at of a file's beginning."""
END = ".!?…。！？।\"'”»)"
NEXT_SENTENCE = re.compile(r"\w[.!?]['\"”»)]? +['\"“«(]?[^\W\d_a-z]|[。！？].")
"""Where one sentence ends inside a line and the next begins."""
LONGEST = 200
"""Most words that a file of one sentence is taken to have."""


def look_at(storage: Storage, name: str) -> Seen | Unclear:
    """What the file is."""
    try:
        return _look_at(storage, name)
    except CorpusError as error:  # a damaged .gz, a file without rights
        return Unclear(name, error.problem)


def _look_at(storage: Storage, name: str) -> Seen | Unclear:
    if storage.size(name) == 0:
        return Unclear(name, "empty")
    if name.endswith(".parquet") or _head(storage, name)[:4] == b"PAR1":
        return look_at_parquet(storage, name)
    head = _head(storage, name)
    encoding, doubt = _encoding(storage, name)
    if encoding is None:
        return Unclear(name, doubt)
    lines = _lines(head, encoding)
    if not any(map(str.strip, lines)):
        return Unclear(name, "nothing but white space in its beginning")
    found = _of_lines(name, lines, partial(read_lines, storage, name, encoding.replace("ascii", "utf-8")))
    if isinstance(found, Unclear):
        return found
    if found.format == "jsonl" and found.languages:
        columns = dict(found.settings)["columns"]
        found = replace(found, languages=languages_in(read_lines(storage, name, "utf-8"), columns))
    doubts = (*found.doubts, doubt) if doubt else found.doubts
    return replace(found, encoding=encoding, doubts=doubts)


def _of_lines(name: str, lines: list[str], whole: Callable[[], Iterable[str]]) -> Seen | Unclear:
    """By its first `lines`; `whole` reads all: classes are counted in all of them, as a file may be sorted by class."""
    first = next(line for line in lines if line.strip())
    if first.lstrip().startswith("{"):
        return look_at_json(name, lines)
    if name.removesuffix(".gz").endswith((".csv", ".json")):
        kind = "CSV" if ".csv" in name else "JSON, and not one object per line"
        return Unclear(name, f"{kind}: write a text and its class per line, with a tab between them (.tsv)")
    if found := look_at_utterances(name, lines):
        return found
    tabs = sum("\t" in line for line in lines if line.strip())
    filled = sum(bool(line.strip()) for line in lines)
    in_tabs = tabs > filled / 2
    sentences = _sentences(lines, in_tabs)
    if found := _conll(name, lines, sentences, in_tabs):
        return found
    rows = [line.split("\t") for line in lines if line.strip()]
    widths = Counter(map(len, rows))
    width = widths.most_common(1)[0][0]
    if in_tabs and widths[width] >= ALMOST * len(rows):
        return _tsv(name, (row for row in _rows(whole()) if len(row) == width))
    return _text(name, lines)


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The cells of lines that can be read and are not empty."""
    return (line.split("\t") for line in lines if type(line) is not BrokenLine and line.strip())


def _text(name: str, lines: Sequence[str]) -> Seen:
    """Plain text: a sentence in each line, or documents of which several sentences share a line or one has several."""
    filled = [line.strip() for line in lines if line.strip()]
    several = sum(bool(NEXT_SENTENCE.search(line)) for line in filled)
    ended = sum(line[-1] in END for line in filled)
    wrapped = len(filled) < len(lines) and 2 * ended < len(filled)
    documents = 5 * several > len(filled) or wrapped
    form = "documents" if documents else "sentences"
    why = "plain text, several sentences in a line" if several else "plain text, sentences over several lines"
    return Seen(
        name=name,
        format="text",
        settings=(("unlabelled_form", form),),
        labelled=False,
        why=why if documents else "plain text, a sentence in each line",
    )


def _sentences(lines: Sequence[str], in_tabs: bool) -> list[Rows]:
    """Blocks of lines, cut into cells, without comments and lines that are unlike the others in width."""
    cut = cut_at_tabs if in_tabs else str.split
    rows = [cut(line) if line.strip() and DOCUMENT_START not in line else [] for line in lines]
    widths = Counter(
        len(row) for row, line in zip(rows, lines, strict=True) if row and not line.startswith("#")
    )
    width = widths.most_common(1)[0][0] if widths else 0
    blocks: list[Rows] = [[]]
    for row, line in zip(rows, lines, strict=True):
        if not row:
            blocks.append([])
        elif len(row) == width or (len(row) > width and not line.startswith("#")):
            blocks[-1].append(row[:width])
    # A block of one comment is left empty.
    return [block for block in blocks if block]


def _conll(name: str, lines: Sequence[str], sentences: list[Rows], in_tabs: bool) -> Seen | Unclear | None:
    """A file of one word per line; None where it is none."""
    words = sum(map(len, sentences))
    content = [line for line in lines if line.strip() and DOCUMENT_START not in line]
    comments = sum(line.startswith("#") for line in content)
    empty = sum(not line.strip() for line in lines)
    width = len(sentences[0][0]) if sentences else 0
    # Words of Vietnamese corpora have spaces inside; texts have more.
    spaced = max(
        (mean for _, mean, _ in text_columns([row for rows in sentences for row in rows])), default=0
    )
    if words < ALMOST * (len(content) - comments) or spaced > 3:
        return None
    if width == 1 and (empty == 0 or words < 2 * len(sentences)):
        return None
    columns = columns_of(sentences)
    if empty == 0 and not (in_tabs and width == 10):
        if width < 2 or not any(column.kind in ("spans", "runs") for column in columns):
            return None
        if len(content) > LONGEST:
            return Unclear(name, "columns without empty lines: put an empty line between sentences")
    if width == 10 and in_tabs and columns[0].kind == "index":
        return _conllu(name, columns)
    kind = "tabs" if in_tabs else "spaces"
    why = f"one word per line, empty lines between sentences, {width} columns between {kind}"
    if width == 1:
        why = "one word per line, empty lines between sentences, no tags"
    found = [column.kind for column in columns]
    if "words" not in found:
        return None
    labelled = any(kind in ("spans", "runs", "flat") for kind in found)
    return Seen(
        name=name,
        format="conll",
        columns=tuple(columns),
        separator="tab" if in_tabs else "space",
        labelled=labelled,
        why=why,
    )


def tree_settings(columns: Sequence[Column]) -> dict[str, str]:
    """Return the settings by which the trees of CoNLL-U are read.

    Empty where heads, relations or parts of speech are missing.
    """
    filled = {place for place, column in enumerate(columns) if column.examples != (MISSING[0],)}
    pos = next((tag for tag in ("upos", "xpos") if CONLLU_COLUMNS[tag] in filled), None)
    trees = filled.issuperset((HEAD_COLUMN, CONLLU_COLUMNS["deprel"])) and pos is not None
    return {"tag": "tree", "pos": str(pos)} if trees else {}


def _conllu(name: str, columns: Sequence[Column]) -> Seen:
    have = {tag for tag, place in CONLLU_COLUMNS.items() if columns[place].examples != (MISSING[0],)}
    why = "ten columns between tabs and word numbers: CoNLL-U"
    if not have:
        return Seen(name=name, format="conllu", columns=tuple(columns), labelled=False, why=why)
    tag, *more = (each for each in CONLLU_COLUMNS if each in have)
    others = " and ".join(more)
    doubts = [f"tag {tag} is taken; the files also have {others}"] if others else []
    if tree_settings(columns):
        doubts.append("for parsers: raykd init DIR --task parsing")
    return Seen(
        name=name, format="conllu", columns=tuple(columns), settings=(("tag", tag),), why=why,
        doubts=tuple(doubts),
    )  # fmt: skip


@dataclass
class _Cells:
    """What is known of a column of a table after some rows."""

    words: int = 0
    empty: int = 0
    tagged: int = 0
    values: set[str] = field(default_factory=set)
    """Of many only the first: a class has few."""

    def add(self, cell: str) -> None:
        self.words += len(cell.split())
        self.tagged += cell.split(maxsplit=1)[:1] == ["O"] or "B-" in cell
        self.empty += not cell.strip()
        if len(self.values) <= MOST_CLASSES and cell.strip():
            self.values.add(cell.strip())


def _tsv(name: str, rows: Iterator[list[str]]) -> Seen | Unclear:
    """A table of texts: which column has the text, which the class, and whether the first line has names. All rows
    have equally many cells."""
    first = next(rows)
    second = next(rows, None)
    columns, count = [_Cells() for _ in first], 0
    # One line alone has no names.
    for row in chain([first if second is None else second], rows):
        count += 1
        for column, cell in zip(columns, row, strict=True):
            column.add(cell)
    sets = [each.values for each in columns]
    stats = [(place, each.words / count, len(each.values)) for place, each in enumerate(columns)]
    text = max(stats, key=lambda each: each[1])[0]
    if stats[text][1] < 1.2:
        return Unclear(
            name, "columns between tabs, none with texts of several words, which are split at white space"
        )
    labels = [
        place for place, words, distinct in stats
        if place != text and words < 4 and columns[place].empty <= (1 - ALMOST) * count and distinct <= MOST_CLASSES
        and distinct <= max(2, count / 3)
    ]  # fmt: skip
    header = count > 1 and all(first[place].strip() not in sets[place] for place in labels or [text])
    header = header and (bool(labels) or first[text].strip().lower() in TEXT_WORDS)
    names = [cell.strip() for cell in first] if header else [f"column {place}" for place, _, _ in stats]
    many = [place for place, words, _ in stats if words >= 0.5 * stats[text][1]]
    text = next((place for place in many if any(word in names[place].lower() for word in TEXT_WORDS)), text)
    known = [place for place in labels if any(word in names[place].lower() for word in LABEL_WORDS)]
    one = [place for place in labels if len(sets[place]) > 1]
    why = f"a text per line, {len(first)} columns between tabs{' with names in the first line' if header else ''}"
    if not (known or one):
        if sum(each.tagged for place, each in enumerate(columns) if place != text) > count / 2:
            return Unclear(
                name, "a sentence and all of its tags per line: write one word and its tag per line"
            )
        settings = (("columns", {"text": text}), ("header", header))
        return Seen(name=name, format="tsv", settings=settings, labelled=False, why=why)
    label = (known or sorted(one, key=lambda place: len(sets[place])))[0]
    doubts, read = [], {"text": text, "label": label}
    if header and (pair := pair_of([names[place] for place in many])):
        read |= dict(zip(("text", "second"), (names.index(name) for name in pair), strict=True))
    elif others := [place for place in many if place != text]:
        shown = ", ".join(names[place] for place in others[:3])
        doubts.append(f"several columns have texts: {names[text]} is taken, not {shown}; {PAIRS_HINT}")
    if others := [place for place in one if place != label]:
        shown = ", ".join(f"{names[place]} ({len(sets[place])} values)" for place in others[:4])
        doubts.append(
            f"{names[label]} ({len(sets[label])} values) is taken as the class; also possible: {shown}"
        )
    settings = (("columns", read), ("header", header))
    return Seen(name=name, format="tsv", settings=settings, why=why, doubts=tuple(doubts))


def _head(storage: Storage, name: str) -> bytes:
    with opened(storage, name) as source:
        return source.read(BYTES)


def _lines(head: bytes, encoding: str) -> list[str]:
    text = head.decode("utf-8-sig" if encoding in ("utf-8", "ascii") else encoding, "replace")
    lines = [line.removesuffix("\r") for line in islice(text.split("\n"), LINES)]
    # The last line may be cut off, and after a line feed there is none.
    return lines[:-1] if len(lines) > 1 and (len(head) == BYTES or not lines[-1]) else lines


def _encoding(storage: Storage, name: str) -> tuple[str | None, str]:
    """The encoding of a whole file, and what is odd about it. None where it is no text."""
    decoder, lines, plain = codecs.getincrementaldecoder("utf-8")(), 0, True
    with opened(storage, name) as source:
        first = True
        while block := source.read(BLOCK):
            if first and block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16", ""
            first = False
            if b"\0" in block:
                return None, f"a zero byte in line {lines + block[: block.index(0)].count(10) + 1}: no text"
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                return _other_encoding(error, lines, plain)
            plain = plain and text.isascii()
            lines += block.count(b"\n")
    return "ascii" if plain else "utf-8", ""


def _other_encoding(error: UnicodeDecodeError, lines: int, plain: bool) -> tuple[str, str]:
    block = error.object
    line = lines + block.count(b"\n", 0, error.start) + 1
    text = block.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(not sign.isascii() for sign in text) - broken
    byte = f"byte 0x{block[error.start]:02x} in line {line} is not UTF-8"
    if whole > broken or not plain:
        return "utf-8", f"{byte}, and the rest is: correct the line"
    windows = any(0x80 <= sign <= 0x9F for sign in block)
    other = "cp1252" if windows else "latin-1"
    return (
        other,
        f"{byte}: taken as {other}; look at the example, and set corpus.encoding where it is wrong",
    )
