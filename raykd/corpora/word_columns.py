"""Words in columns, for text without tags: one word per line, whatever else the line has.

The words are in the column that looks like words in the first lines. This is the second one where the first has the
numbers of words, as in CoNLL-U (of which multi-word tokens and empty nodes are left out), and otherwise mostly the
first.
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
"""Maximum mean number of parts between spaces in a word; those of Vietnamese have some."""
HINT = "correct the line, or set corpus.unlabelled_form"
Numbered = tuple[int, Cells]
"""A line's number and cells."""


def parse(
    config: TextConfig, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty | ReadingNote]:
    """Parse one file into sentences without tags. A document without empty lines is cut into pieces.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part that the file belongs to.
    """
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
    """Return the layout of a file of words, decided by its beginning. In a single column, a word may have spaces.

    Args:
        start: Beginning of the file.
        file: Name of the file, for errors.
        column: Column of the words, from 0; None: the one that looks like words.
        hint: Hint for a line that lacks the column.

    Raises:
        CorpusError: The lines differ in their number of columns (they are sentences, not words), or the first one has
            the names of columns.
    """
    refuse_header(start, file)
    token = _word_column(start) if column is None else column
    layout = Layout(start.cut, start.width, token, None, exact=False, comment=COMMENT, hint=hint)
    rows = [row for sentence in _sentences(start, layout) for row in sentence]
    odd_rows = [row for row in rows if len(row[1]) != layout.width]
    if 2 * len(odd_rows) > len(rows):
        number, cells = odd_rows[0]
        problem = f"{pluralise(len(cells), 'column')} where most lines with a word have {layout.width}"
        advice = "if each line is a sentence set corpus.unlabelled_form: sentences"
        raise CorpusError(file, number, f"{problem}: {'  '.join(cells)[:60]!r}", advice)
    words = [row[layout.token] for _, row in rows if len(row) > layout.token]
    if sum(len(word.split()) for word in words) > MOST_PARTS * len(words):
        problem = f"column {layout.token} has texts, not words: {words[0][:60]!r}"
        raise CorpusError(file, rows[0][0], problem, "split the texts into words, one in each line")
    return layout._replace(cut=whole_line) if layout.width == 1 else layout


def is_word(row: Cells, layout: Layout) -> bool:
    """Return True if a line has a word, and no multi-word token or empty node of CoNLL-U.

    Args:
        row: Cells of the line.
        layout: Layout of the file.
    """
    return not (layout.token and NO_WORD.fullmatch(row[0]))


def _word_column(start: Beginning) -> int:
    """The column of words; where none looks like words, the one behind the numbers of words, or the first."""
    columns = classify_columns(start)
    if (place := next((column.place for column in columns if column.kind == "words"), None)) is not None:
        return place
    behind = Layout(start.cut, start.width, 1, None, exact=False, comment=COMMENT)
    return int(_are_numbered(_sentences(start, behind)))


def _sentences(start: Beginning, layout: Layout) -> list[list[Numbered]]:
    """The lines of the sentences, without broken ones."""
    return [
        [(number, row) for number, row in zip(numbers, rows, strict=True) if type(row) is not BrokenLine]
        for numbers, rows in sentence_rows(start.lines, layout)
    ]


def _are_numbered(sentences: list[list[Numbered]]) -> bool:
    """True if the first column has the words' numbers in all sentences, and there is a second one."""
    for sentence in sentences:
        numbers = [cells[0] for _, cells in sentence if not NO_WORD.fullmatch(cells[0])]
        if numbers not in ([str(number + first) for number in range(len(numbers))] for first in (0, 1)):
            return False
    return any(len(cells) > 1 for sentence in sentences for _, cells in sentence)
