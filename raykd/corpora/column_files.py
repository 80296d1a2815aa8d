"""Files of columns: a word in each line, an empty line after each sentence; how lines are cut, and their faults.

What a column holds is said by the formats that have columns (`conll.py`, `conllu.py`, `word_columns.py`).
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
"""The number of a line of CoNLL-U that is no word: a multi-word token, whose words follow, or an empty node."""
HEAD_SENTENCES = 100
"""The sentences of a file that are looked at together."""
HEAD_LINES = 4000
"""The lines of a file that decide how all of it is cut."""
LONGEST = 1000
"""Most words of a sentence; longer ones have lost their empty lines."""
SENTENCE_ENDS = frozenset(".!?…。！？।")
_NAMES = """
# chunk chunk_tag chunks deprel deps entities entity feats form forms head id idx index iob iob_tag label labels lemma
lemmas misc ner ner_tag ner_tags pos pos_tag pos_tags sent_id sentence sentence# sentence_id tag tags text token
token_id tokens upos upostag word word_id words xpos xpostag
"""
COLUMN_NAMES = frozenset(_NAMES.split())
"""Names that people give to columns, in small letters and without spaces."""
Cells = list[str]
Separator = Literal["tab", "space", "auto"]


def whole_line(line: str) -> Cells:
    """The one cell of a line."""
    return [line]


cut_at_tabs: Callable[[str], Cells] = methodcaller("split", "\t")
"""The cells of a line, also empty ones."""


def cut_at_spaces(line: str) -> Cells:
    """The cells of a line between single or several spaces, or tabs."""
    # Not str.split(): it also cuts at no-break spaces, which are inside words of real corpora, and words themselves.
    return [cell for cell in line.replace("\t", " ").split(" ") if cell]


def starts_document(line: str) -> bool:
    """Whether a line only says that a document begins, also behind an index."""
    return DOCUMENT_START in line and _STARTS_DOCUMENT(line) is not None


class Beginning(NamedTuple):
    """The lines at the beginning of a file, and how all of its lines are cut."""

    lines: list[str]
    cut: Callable[[str], Cells]
    width: int
    """Columns of most lines with a word; 0 where there is no word."""
    number: int
    """The first line with a word and so many columns, from 1."""

    @property
    def example(self) -> str:
        """The text of that line."""
        return self.lines[self.number - 1] if self.width else ""

    @property
    def separator(self) -> str:
        """The sign between two columns."""
        return "\t" if self.cut is cut_at_tabs else " "


class Layout(NamedTuple):
    """How one file is written: how its lines are cut, how many columns they have, and which are read."""

    cut: Callable[[str], Cells]
    width: int
    token: int
    tag: int | None
    exact: bool
    comment: str
    hint: str = "correct the line, or set corpus.columns or corpus.separator"

    def word(self, row: Cells) -> str:
        """The word of a row, without spaces around it; a word that is a space stays."""
        return row[self.token].strip(" ") or row[self.token]

    def is_comment(self, line: str) -> bool:
        if not self.comment or not line.startswith(self.comment):
            return False
        # With an index column first, no word line begins with the comment sign; without, a comment differs from the
        # word "#" in its number of columns, in what is between them, or by the space behind its sign.
        if self.token > 0 or ("\t" in line) != (self.cut is cut_at_tabs) or _NAMED_VALUE(line):
            return True
        cells = self.cut(line)
        return len(cells) != self.width or " " in cells[0].strip()


def sentence_rows(lines: Iterable[str], layout: Layout) -> Iterator[tuple[list[int], list[Any]]]:
    """Line numbers (from 1) and cells of each sentence; comments and document starts are skipped. A line that is not
    text stays a `BrokenLine`.
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
    """The faults of a sentence's rows: lines that are not text, or lack a column, their word or their tag."""
    faults: list[CorpusError] = []
    needed = max(layout.token, layout.tag or 0) + 1
    for number, row in zip(numbers, rows, strict=True):
        if type(row) is BrokenLine:
            faults.append(CorpusError(file, number, row.problem, row.hint))
        elif len(row) < needed or (layout.exact and len(row) != layout.width):
            expected = f"{layout.width}" if layout.exact else f"at least {needed}"
            problem = (
                f"{pluralise(len(row), 'column')} where {expected} are expected: {'  '.join(row)[:60]!r}"
            )
            faults.append(CorpusError(file, number, problem, layout.hint))
        elif not row[layout.token]:
            faults.append(CorpusError(file, number, "the word is empty", "correct the line"))
        elif layout.tag is not None and not row[layout.tag]:
            faults.append(CorpusError(file, number, f"{row[layout.token]!r} has no tag", "correct the line"))
    return tuple(faults)


def read_beginning(lines: Iterator[str], comment: str, separator: Separator = "auto") -> Beginning:
    """The first `LOOKED_AT` lines of a file, taken from `lines`.

    Args:
        lines: of a file; the ones that are looked at are gone from it.
        comment: the sign before a comment, "" for none.
        separator: what is between the columns; `auto`: tabs where most lines with a word have one.
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
    """True where a line has the names of columns, not a word."""
    return len(cells) > 1 and all(cell.lower().replace(" ", "") in COLUMN_NAMES for cell in cells)


def refuse_header(start: Beginning, file: str, comment: str = "#") -> None:
    """Raise CorpusError where the first line with a word has the names of columns."""
    lines = ((place, line) for place, line in enumerate(start.lines) if _may_be_word(line))
    place = next((n for n, line in lines if not (comment and line.startswith(comment))), None)
    if place is not None and is_header(start.cut(start.lines[place])):
        problem = f"the line has the names of columns, not a word: {start.lines[place][:60]!r}"
        raise CorpusError(file, place + 1, problem, "remove the line")


def cut_document(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places (start, end) of the pieces of a document without empty lines, each of at most `LONGEST` words and cut
    behind a word that ends a sentence, where there is one.
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
    """The words of a sentence, or of the pieces of a document without empty lines, which are noted; `numbers` are their
    lines.
    """
    pieces = list(cut_document(words))
    if len(pieces) > 1:
        example = f"{file}:{numbers[0]}: {len(words):,} words in {len(pieces)} pieces"
        yield ReadingNote(language, "endless", example)
    for start, end in pieces:
        yield Sentence([*words[start:end]], None, language, (file, numbers[start]))


def _may_be_word(line: str) -> bool:
    return type(line) is not BrokenLine and bool(line.strip()) and not starts_document(line)
