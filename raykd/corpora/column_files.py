"""Files of columns: a word in each line, an empty line after each sentence; how lines are cut, and their faults.

What a column holds is said by the formats that have columns (`conll.py`, `conllu.py`, `word_columns.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import methodcaller
from typing import Any, NamedTuple

from raykd.corpora.files import BrokenLine
from raykd.counted import counted
from raykd.errors import CorpusError

DOCUMENT_START = "-DOCSTART-"
_STARTS_DOCUMENT = re.compile(rf"(?:[0-9]+[\t ]+)?{DOCUMENT_START}").match
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The number of a line of CoNLL-U that is no word: a multi-word token, whose words follow, or an empty node."""
HEAD = 100
"""The sentences of a file that are looked at together."""
Cells = list[str]

cut_at_tabs: Callable[[str], Cells] = methodcaller("split", "\t")
"""The cells of a line, also empty ones."""


def cut_at_spaces(line: str) -> Cells:
    """The cells of a line between single or several spaces, or tabs."""
    # Not str.split(): it also cuts at no-break spaces, which are inside words of real corpora, and words themselves.
    return [cell for cell in line.replace("\t", " ").split(" ") if cell]


def starts_document(line: str) -> bool:
    """Whether a line only says that a document begins, also behind an index."""
    return DOCUMENT_START in line and _STARTS_DOCUMENT(line) is not None


class Layout(NamedTuple):
    """How one file is written: how its lines are cut, how many columns they have, and which are read."""

    cut: Callable[[str], Cells]
    width: int
    token: int
    tag: int | None
    exact: bool
    comment: str
    hint: str = "correct the line, or set corpus.columns or corpus.separator"

    def is_comment(self, line: str) -> bool:
        if not self.comment or not line.startswith(self.comment):
            return False
        # With an index column first, no word line begins with the comment sign; without, only the number of
        # columns separates a comment from the word "#".
        return self.token > 0 or len(self.cut(line)) != self.width


def sentence_rows(lines: Iterable[str], layout: Layout) -> Iterator[tuple[list[int], list[Any]]]:
    """Line numbers (from 1) and cells of each sentence; comments and document starts are skipped. A line that is not
    text stays a `BrokenLine`."""
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
    found: list[CorpusError] = []
    needed = max(layout.token, layout.tag or 0) + 1
    for number, row in zip(numbers, rows, strict=True):
        if type(row) is BrokenLine:
            found.append(CorpusError(file, number, row.problem, row.hint))
        elif len(row) < needed or (layout.exact and len(row) != layout.width):
            expected = f"{layout.width}" if layout.exact else f"at least {needed}"
            problem = f"{counted(len(row), 'column')} where {expected} are expected: {'  '.join(row)[:60]!r}"
            found.append(CorpusError(file, number, problem, layout.hint))
        elif not row[layout.token]:
            found.append(CorpusError(file, number, "the word is empty", "correct the line"))
        elif layout.tag is not None and not row[layout.tag]:
            found.append(CorpusError(file, number, f"{row[layout.token]!r} has no tag", "correct the line"))
    return tuple(found)


def until_first_word(lines: Iterator[str], comment: str) -> tuple[list[str], str]:
    """The lines up to the first one with a word, and that line; empty where there is none."""
    taken = []
    for line in lines:
        taken.append(line)
        is_comment = bool(comment) and line.startswith(comment)
        if type(line) is not BrokenLine and line.strip() and not starts_document(line) and not is_comment:
            return taken, line
    return taken, ""
