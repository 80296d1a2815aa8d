"""Words in columns, for text without tags: a word in each line, whatever else the line has.

The word is the first column, or the second where the first has the numbers of words, from 0 or from 1: as in
CoNLL-2003, WikiAnn, WikiNEuRal, Universal NER or CoNLL-U, of which multi-word tokens and empty nodes are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from raykd.corpora.column_files import (
    NO_WORD,
    Cells,
    Layout,
    cut_at_spaces,
    cut_at_tabs,
    row_faults,
    sentence_rows,
    until_first_word,
)
from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import TextConfig
from raykd.counted import counted
from raykd.errors import CorpusError

FIRST = 2000
"""The lines of a file that are looked at together."""
COMMENT = "#"
HINT = "correct the line, or set corpus.unlabelled_form"
Numbered = tuple[int, Cells]
"""A line's number and cells."""


def parse(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """The sentences of one file's lines, without tags."""
    lines = iter(lines)
    before, first = until_first_word(lines, COMMENT)
    head = [*before, *islice(lines, FIRST)]
    layout = _layout(head, first, file)
    for numbers, rows in sentence_rows(chain(head, lines), layout):
        if faults := row_faults(rows, numbers, layout, file):
            yield Faulty(language, faults)
        else:
            words = [row[layout.token] for row in rows if not (layout.token and NO_WORD.fullmatch(row[0]))]
            yield Sentence(words, None, language, (file, numbers[0]))


def _layout(head: list[str], first: str, file: str) -> Layout:
    """How a file is written, by its `head` and the `first` line with a word.

    Raises CorpusError where its lines differ in their columns: they are sentences, and not words.
    """
    cut = cut_at_tabs if "\t" in first else cut_at_spaces
    behind = Layout(cut, len(cut(first)), 1, None, exact=False, comment=COMMENT, hint=HINT)
    layout = behind if _are_numbered(_sentences(head, behind)) else behind._replace(token=0)
    rows = [row for sentence in _sentences(head, layout) for row in sentence]
    others = [each for each in rows if len(each[1]) != layout.width]
    if 2 * len(others) > len(rows):
        number, cells = others[0]
        problem = f"{counted(len(cells), 'column')} where the first line with a word has {layout.width}"
        hint = "if each line is a sentence set corpus.unlabelled_form: sentences"
        raise CorpusError(file, number, f"{problem}: {'  '.join(cells)[:60]!r}", hint)
    return layout


def _sentences(head: list[str], layout: Layout) -> list[list[Numbered]]:
    """The lines of each sentence that are text."""
    return [
        [(number, row) for number, row in zip(numbers, rows, strict=True) if type(row) is not BrokenLine]
        for numbers, rows in sentence_rows(head, layout)
    ]


def _are_numbered(sentences: list[list[Numbered]]) -> bool:
    """Whether the first column has the words' numbers in every sentence, and there is a second one."""
    for sentence in sentences:
        found = [cells[0] for _, cells in sentence if not NO_WORD.fullmatch(cells[0])]
        if found not in ([str(number + first) for number in range(len(found))] for first in (0, 1)):
            return False
    return any(len(cells) > 1 for sentence in sentences for _, cells in sentence)
