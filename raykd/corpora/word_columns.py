"""Words in columns, for text without tags: a word in each line, whatever else the line has.

The words are in the column that looks like words in the first lines: the second one where the first has the numbers of
words, as in CoNLL-U (of which multi-word tokens and empty nodes are left out), else mostly the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from raykd.corpora.column_files import (
    NO_WORD,
    Beginning,
    Cells,
    Layout,
    read_beginning,
    refuse_header,
    row_faults,
    sentence_rows,
    unlabelled_sentences,
    whole_line,
)
from raykd.corpora.columns import classify_columns
from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, ReadingNote, Sentence
from raykd.corpora.source import TextConfig
from raykd.errors import CorpusError
from raykd.pluralise import pluralise

COMMENT = "#"
MOST_PARTS = 3
"""Most parts between spaces that words have on average; those of Vietnamese have some."""
HINT = "correct the line, or set corpus.unlabelled_form"
Numbered = tuple[int, Cells]
"""A line's number and cells."""


def parse(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty | ReadingNote]:
    """The sentences of one file's lines, without tags. A document without empty lines is cut into pieces."""
    lines = iter(lines)
    start = read_beginning(lines, COMMENT)
    layout = layout_of(start, file)
    for numbers, rows in sentence_rows(chain(start.lines, lines), layout):
        if faults := row_faults(rows, numbers, layout, file):
            yield Faulty(language, faults)
        else:
            of_words = [
                (row, number) for row, number in zip(rows, numbers, strict=True) if is_word(row, layout)
            ]
            words = [layout.word(row) for row, _ in of_words]
            yield from unlabelled_sentences(words, language, file, [number for _, number in of_words])


def layout_of(start: Beginning, file: str, column: int | None = None, hint: str = HINT) -> Layout:
    """The layout of a file of words, decided by its beginning. Where there is one column, a word may have spaces.

    Args:
        start: of the file.
        file: its name, for errors.
        column: of the words, from 0; None: the one that looks like words.
        hint: what to do about a line that lacks it.

    Raises:
        CorpusError: its lines differ in their columns (they are sentences, and not words), or the first one has the
            names of columns.
    """
    refuse_header(start, file)
    token = _word_column(start) if column is None else column
    layout = Layout(start.cut, start.width, token, None, exact=False, comment=COMMENT, hint=hint)
    rows = [row for sentence in _sentences(start, layout) for row in sentence]
    others = [row for row in rows if len(row[1]) != layout.width]
    if 2 * len(others) > len(rows):
        number, cells = others[0]
        problem = f"{pluralise(len(cells), 'column')} where most lines with a word have {layout.width}"
        if_text = "if each line is a sentence set corpus.unlabelled_form: sentences"
        raise CorpusError(file, number, f"{problem}: {'  '.join(cells)[:60]!r}", if_text)
    words = [row[layout.token] for _, row in rows if len(row) > layout.token]
    if sum(len(word.split()) for word in words) > MOST_PARTS * len(words):
        problem = f"column {layout.token} has texts, not words: {words[0][:60]!r}"
        raise CorpusError(file, rows[0][0], problem, "split the texts into words, one in each line")
    return layout._replace(cut=whole_line) if layout.width == 1 else layout


def is_word(row: Cells, layout: Layout) -> bool:
    """True where a line has a word, and is no multi-word token or empty node of CoNLL-U."""
    return not (layout.token and NO_WORD.fullmatch(row[0]))


def _word_column(start: Beginning) -> int:
    """The column that looks like words; where none does, the one behind the numbers of words, else the first."""
    columns = classify_columns(start)
    if (place := next((column.place for column in columns if column.kind == "words"), None)) is not None:
        return place
    behind = Layout(start.cut, start.width, 1, None, exact=False, comment=COMMENT)
    return int(_are_numbered(_sentences(start, behind)))


def _sentences(start: Beginning, layout: Layout) -> list[list[Numbered]]:
    """The lines of each sentence that are text."""
    return [
        [(number, row) for number, row in zip(numbers, rows, strict=True) if type(row) is not BrokenLine]
        for numbers, rows in sentence_rows(start.lines, layout)
    ]


def _are_numbered(sentences: list[list[Numbered]]) -> bool:
    """Whether the first column has the words' numbers in every sentence, and there is a second one."""
    for sentence in sentences:
        found = [cells[0] for _, cells in sentence if not NO_WORD.fullmatch(cells[0])]
        if found not in ([str(number + first) for number in range(len(found))] for first in (0, 1)):
            return False
    return any(len(cells) > 1 for sentence in sentences for _, cells in sentence)
