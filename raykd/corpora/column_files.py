"""Files of columns: one word per line, an empty line after each sentence.

The functions cut lines into cells and report faulty lines. The formats with columns say what the columns hold
(`conll.py`, `conllu.py`, `word_columns.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import methodcaller
from typing import Any, Literal, NamedTuple

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import ReadingNote, Sentence
from raykd.errors import CorpusError
from raykd.pluralise import pluralise

DOCUMENT_START = "-DOCSTART-"
_STARTS_DOCUMENT = re.compile(rf"(?:[0-9]+[\t ]+)?{DOCUMENT_START}").match
_NAMED_VALUE = re.compile(r"\S\s+[\w.]+\s*=").match
"""A comment like `# sent_id = 5`."""
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""Id of a CoNLL-U line that is not a word: `3-4` of a multi-word token, whose words follow; `8.1` of an empty node."""
HEAD_SENTENCES = 100
"""Number of sentences at the beginning of a file that are read ahead and checked together."""
HEAD_LINES = 4000
"""Number of first lines that decide how all lines of a file are cut."""
LONGEST = 1000
"""Maximum number of words of an unlabelled sentence; a longer one is a document without empty lines, and is cut."""
SENTENCE_ENDS = frozenset(".!?…。！？।")
_NAMES = """
# chunk chunk_tag chunks deprel deps entities entity feats form forms head id idx index iob iob_tag label labels lemma
lemmas misc ner ner_tag ner_tags pos pos_tag pos_tags sent_id sentence sentence# sentence_id tag tags text token
token_id tokens upos upostag word word_id words xpos xpostag
"""
COLUMN_NAMES = frozenset(_NAMES.split())
"""Usual names of columns in a header, in lower case and without spaces."""
Cells = list[str]
Separator = Literal["tab", "space", "auto"]


def whole_line(line: str) -> Cells:
    """Return a line as one cell."""
    return [line]


cut_at_tabs: Callable[[str], Cells] = methodcaller("split", "\t")
"""Cut a line into cells at tabs; cells may be empty."""


def cut_at_spaces(line: str) -> Cells:
    """Cut a line into cells at single or several spaces, or tabs."""
    # Not str.split(): it also cuts at no-break spaces, which are inside words of real corpora, and words themselves.
    return [cell for cell in line.replace("\t", " ").split(" ") if cell]


def starts_document(line: str) -> bool:
    """Return True if a line marks the beginning of a document; an index may stand before the mark."""
    return DOCUMENT_START in line and _STARTS_DOCUMENT(line) is not None


class Beginning(NamedTuple):
    """The first lines of a file, and the way in which all lines are cut.

    Attributes:
        lines: The first lines.
        cut: Function that cuts a line into cells.
        width: Most frequent number of columns in lines with a word; 0 without such lines.
        number: Line number (from 1) of the first line with a word and `width` columns.
    """

    lines: list[str]
    cut: Callable[[str], Cells]
    width: int
    number: int

    @property
    def example(self) -> str:
        """Text of line `number`."""
        return self.lines[self.number - 1] if self.width else ""

    @property
    def separator(self) -> str:
        """Character between two columns: a tab or a space."""
        return "\t" if self.cut is cut_at_tabs else " "


class Layout(NamedTuple):
    """Layout of one file.

    Attributes:
        cut: Function that cuts a line into cells.
        width: Number of columns.
        token: Column of the word, from 0.
        tag: Column of the tag, from 0; None if tags are not read.
        exact: True if all lines must have `width` columns.
        comment: Sign in front of a comment; empty for none.
        hint: Hint in errors about the number of columns.
    """

    cut: Callable[[str], Cells]
    width: int
    token: int
    tag: int | None
    exact: bool
    comment: str
    hint: str = "correct the line, or set corpus.columns or corpus.separator"

    def word(self, row: Cells) -> str:
        """Return the word of a row without spaces around it; a word of nothing but spaces is returned as it is."""
        return row[self.token].strip(" ") or row[self.token]

    def is_comment(self, line: str) -> bool:
        """Return True if a line is a comment and not the word `#` with further columns."""
        if not self.comment or not line.startswith(self.comment):
            return False
        # With an index column first, no word line begins with the comment sign. Otherwise a comment differs from
        # the word "#" in its number of columns, in its separator, or by a space after the sign.
        if self.token > 0 or ("\t" in line) != (self.cut is cut_at_tabs) or _NAMED_VALUE(line):
            return True
        cells = self.cut(line)
        return len(cells) != self.width or " " in cells[0].strip()


def sentence_rows(lines: Iterable[str], layout: Layout) -> Iterator[tuple[list[int], list[Any]]]:
    """Yield line numbers and cells of the sentences; comments and document starts are skipped.

    Args:
        lines: Lines of a file.
        layout: Layout of the file.

    Yields:
        Line numbers (from 1) and cells of a sentence; a line that is not text stays a `BrokenLine`.
    """
    numbers: list[int] = []
    rows: list[Cells | BrokenLine] = []
    comment, cut = layout.comment or "\n", layout.cut
    for number, line in enumerate(lines, start=1):
        if type(line) is BrokenLine:
            numbers.append(number)
            rows.append(line)
        elif not line or line.isspace() or starts_document(line):
            if rows:
                yield numbers, rows
                numbers, rows = [], []
        elif not line.startswith(comment) or not layout.is_comment(line):
            numbers.append(number)
            rows.append(cut(line))
    if rows:
        yield numbers, rows


def row_faults(rows: list[Any], numbers: list[int], layout: Layout, file: str) -> tuple[CorpusError, ...]:
    """Return the faults of a sentence: lines that are not text, or lack a column, the word or the tag.

    Args:
        rows: Cells of each line, or a `BrokenLine`.
        numbers: Line numbers, from 1.
        layout: Layout of the file.
        file: Name of the file, for errors.
    """
    faults: list[CorpusError] = []
    needed = max(layout.token, layout.tag or 0) + 1
    for number, row in zip(numbers, rows, strict=True):
        if type(row) is BrokenLine:
            faults.append(row.fault(file, number))
        elif len(row) < needed or (layout.exact and len(row) != layout.width):
            expected = f"{layout.width}" if layout.exact else f"at least {needed}"
            problem = (
                f"{pluralise(len(row), 'column')} where {expected} are expected: {'  '.join(row)[:60]!r}"
            )
            faults.append(CorpusError(file, number, problem, layout.hint))
        elif not row[layout.token]:
            faults.append(
                CorpusError(file, number, "the word is empty", "write the word, or remove the line")
            )
        elif layout.tag is not None and not row[layout.tag]:
            faults.append(
                CorpusError(file, number, f"the word {row[layout.token]!r} has no tag", "write the tag")
            )
    return tuple(faults)


def read_beginning(lines: Iterator[str], comment: str, separator: Separator = "auto") -> Beginning:
    """Read the first `HEAD_LINES` lines of a file.

    Args:
        lines: Lines of the file; those that are read are consumed.
        comment: Sign in front of a comment, "" for none.
        separator: Separator of columns; `auto` takes tabs if most lines with a word have one.
    """
    head = list(islice(lines, HEAD_LINES))
    words = [
        (number, line)
        for number, line in enumerate(head, start=1)
        if _may_be_word(line) and not (comment and line.startswith(comment))
    ]
    tabs = sum("\t" in line for _, line in words)
    in_tabs = separator == "tab" or (separator == "auto" and 2 * tabs > len(words))
    cut = cut_at_tabs if in_tabs else cut_at_spaces
    widths = [len(cut(line)) for _, line in words]
    width = Counter(widths).most_common(1)[0][0] if widths else 0
    return Beginning(head, cut, width, words[widths.index(width)][0] if widths else 1)


def is_header(cells: Cells) -> bool:
    """Return True if all cells of a line are names of columns."""
    return len(cells) > 1 and all(cell.lower().replace(" ", "") in COLUMN_NAMES for cell in cells)


def refuse_header(start: Beginning, file: str, comment: str = "#") -> None:
    """Raise CorpusError if the first line with a word has the names of columns."""
    lines = ((place, line) for place, line in enumerate(start.lines) if _may_be_word(line))
    place = next((n for n, line in lines if not (comment and line.startswith(comment))), None)
    if place is not None and is_header(start.cut(start.lines[place])):
        problem = f"the line has the names of columns, not a word: {start.lines[place][:60]!r}"
        raise CorpusError(file, place + 1, problem, "remove the line")


def cut_document(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Cut a document without empty lines into pieces of at most `LONGEST` words, after a full stop if there is one.

    Args:
        words: Words of the document.

    Yields:
        (start, end) of a piece.
    """
    start = 0
    while len(words) - start > LONGEST:
        stop = start + LONGEST
        stop = next((at for at in range(stop, start, -1) if words[at - 1] in SENTENCE_ENDS), stop)
        yield start, stop
        start = stop
    yield start, len(words)


def unlabelled_sentences(
    words: Sequence[str], language: str, file: str, numbers: Sequence[int]
) -> Iterator[Sentence | ReadingNote]:
    """Yield one sentence without tags; for a document without empty lines, yield a note and then the pieces.

    Args:
        words: Words of the sentence.
        language: Language of the sentence.
        file: Name of the file.
        numbers: Line of each word.
    """
    pieces = list(cut_document(words))
    if len(pieces) > 1:
        example = f"{file}:{numbers[0]}: {len(words):,} words in {len(pieces)} pieces"
        yield ReadingNote(language, "endless", example)
    for start, end in pieces:
        yield Sentence([*words[start:end]], None, language, (file, numbers[start]))


def _may_be_word(line: str) -> bool:
    return type(line) is not BrokenLine and bool(line.strip()) and not starts_document(line)
