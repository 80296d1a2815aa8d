"""Labelling of files with one word in a line and an empty line after a sentence.

A parser fills HEAD and DEPREL of CoNLL-U, and adds two columns to other files; other models add one column. A parser
reads parts of speech from the column of CoNLL-U named by its export.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from raykd.corpora.column_files import (
    Beginning,
    Cells,
    Layout,
    cut_document,
    read_beginning,
    row_faults,
    sentence_rows,
)
from raykd.corpora.columns import classify_columns, span_columns
from raykd.corpora.conllu import COLUMNS, HEAD_COLUMN, MISSING, WIDTH
from raykd.corpora.word_columns import COMMENT, is_word, layout_of
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import SpanScheme, from_bioes, guess_scheme
from raykd.forms.tag_spellings import find_spelling
from raykd.pluralise import pluralise
from raykd.serving.labeller import READ_AHEAD, Labeller

GIVE_POS = "give --pos DIR, an export of a student of task pos"
TAB = "\t"
MODEL_SCHEME: SpanScheme = "bioes"
"""Scheme of the labels of models."""
HINT = "correct the line, or set --column to the column of the words, from 0"


class Row(NamedTuple):
    """A line of a file.

    Attributes:
        number: Number of the line, from 1.
        text: The line.
        cells: Cells of a word; empty for comments, empty lines and the lines of CoNLL-U that are no words.
    """

    number: int
    text: str
    cells: Cells


class Block(NamedTuple):
    """The lines of a sentence with comments and empty lines around, and the words; the last block may have no word."""

    rows: list[Row]
    words: list[str]


def label_columns(
    labeller: Labeller,
    lines: Iterator[str],
    file: str,
    *,
    column: int | None = None,
    scheme: SpanScheme | None = None,
    batch: int = 32,
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[str]:
    """Yield the lines of sentences with their labels added; comments and empty lines stay in place.

    Args:
        labeller: The exported model.
        lines: Lines of the file.
        file: Name of the file, for errors.
        column: Column of the words, from 0; None takes the one that looks like words.
        scheme: Scheme of the labels; None takes that of the file's labels, or else BIOES.
        batch: Sentences labelled at once.
        report: Receives a line of text on how the file is read.

    Raises:
        CorpusError: A line lacks its word, or an input of the model.
    """
    if labeller.pairs:
        problem = "columns of words have no pairs of texts, which the model labels"
        raise CorpusError(file, None, problem, "give --format text, tsv or jsonl")
    start = read_beginning(lines, COMMENT)
    layout = layout_of(start, file, column, HINT)
    scheme, requested_scheme = scheme or _existing_scheme(start, layout), scheme
    separator = start.separator if layout.width > 1 else TAB
    report(
        _describe_reading(layout, separator, scheme if labeller.has_spans and not requested_scheme else None)
    )
    blocks = _read_blocks(chain(start.lines, lines), layout, file)
    while some := list(islice(blocks, READ_AHEAD * batch)):
        if labeller.trees is not None:
            cells = _arc_cells(labeller, some, file, batch)
        else:
            cells = _label_cells(labeller, some, batch, scheme if labeller.has_spans else None, report)
        for block in some:
            yield _block_text(block, cells, separator)


def _block_text(block: Block, added: Iterator[Cells], separator: str) -> str:
    front = next(added) if block.words else []
    lines = []
    for row in block.rows:
        if row.cells:
            lines += front
            front = []
        lines.append(f"{_with_cells(row, next(added), separator) if row.cells else row.text}\n")
    return "".join(lines)


def _with_cells(row: Row, added: Cells, separator: str) -> str:
    """Return the line with `added` at the end; a tree fills its columns of CoNLL-U."""
    if len(added) == 1 or len(row.cells) != WIDTH:
        return separator.join([row.text, *added])
    cells = [*row.cells]
    cells[HEAD_COLUMN], cells[COLUMNS["deprel"]] = added
    return TAB.join(cells)


def _label_cells(
    labeller: Labeller,
    blocks: Sequence[Block],
    batch: int,
    scheme: SpanScheme | None,
    report: Callable[[str], None],
) -> Iterator[Cells]:
    """Yield for a sentence the lines in front, then one label for a word."""
    pieces = [
        [block.words[start:stop] for start, stop in cut_document(block.words)]
        for block in blocks
        if block.words
    ]
    for block, parts in zip((block for block in blocks if block.words), pieces, strict=True):
        if len(parts) > 1:
            report(
                f"line {block.rows[0].number}: {len(block.words):,} words without an empty line, labelled in "
                f"{len(parts)} pieces"
            )
    flat = list(chain.from_iterable(pieces))
    intents: Iterator[str] = iter(())
    if labeller.utterances:
        both = labeller.intents_and_slots(flat, batch=batch)
        intents, labels = (f"# intent: {intent}\n" for intent, _ in both), iter([slots for _, slots in both])
    else:
        labels = iter(labeller.label(flat, batch=batch))
    for parts in pieces:
        yield [next(intents) for _ in parts] if labeller.utterances else []
        for words in parts:
            tags = next(labels)
            # A task that labels whole sentences gives one label; each word gets it.
            tags = tags if len(tags) == len(words) else tags * len(words)
            yield from (
                [label] for label in (tags if scheme in (None, MODEL_SCHEME) else from_bioes(tags, scheme))
            )


def _arc_cells(labeller: Labeller, blocks: Sequence[Block], file: str, batch: int) -> Iterator[Cells]:
    """Yield for a sentence an empty list (no line in front), then head and relation of the words."""
    pos = [_read_pos(labeller, block.rows, file) for block in blocks if block.words]
    for tree in labeller.parse([block.words for block in blocks if block.words], pos, batch=batch):
        yield []
        yield from ([str(head), relation] for head, relation in tree)


def _read_pos(labeller: Labeller, rows: Sequence[Row], file: str) -> list[str] | None:
    """Return the parts of speech of a sentence from the column of CoNLL-U; None if the model reads none."""
    if labeller.trees is None or not labeller.needs_pos:
        return None
    name = labeller.card["trees"]["pos"]
    tags = []
    for number, _, cells in rows:
        problem = ""
        if not cells:
            continue
        if len(cells) != WIDTH:
            problem = f"the model reads parts of speech, {name.upper()} of CoNLL-U's {WIDTH} columns, and the line has "
            raise CorpusError(file, number, f"{problem}{pluralise(len(cells), 'column')}", GIVE_POS)
        if (pos := cells[COLUMNS[name]]) not in labeller.trees.pos:
            allowed = ", ".join(labeller.trees.treebank_pos)
            problem = f"unknown {name.upper()} {pos!r} ({allowed})"
            if pos in MISSING:
                problem = f"{cells[1]!r} has no {name.upper()}, which the model reads"
            raise CorpusError(file, number, problem, f"annotate it, or {GIVE_POS}")
        tags.append(pos)
    return tags


def _describe_reading(layout: Layout, separator: str, scheme: SpanScheme | None) -> str:
    between = "" if layout.width < 2 else f", between {'tabs' if separator == TAB else 'spaces'}"
    written = "" if scheme is None else f"; labels are written in {scheme}, the scheme of the file's own"
    return f"words in column {layout.token}{between}{written}"


def _existing_scheme(start: Beginning, layout: Layout) -> SpanScheme | None:
    """Return the scheme of the spans in the file; None if it has no spans."""
    spans = span_columns(classify_columns(start))
    if not spans:
        return None
    rows = (rows for _, rows in sentence_rows(start.lines, layout))
    tags = [[row[spans[0].place] for row in sentence if len(row) > spans[0].place] for sentence in rows]
    spelling = find_spelling(Counter(chain.from_iterable(tags)), "auto")
    try:
        scheme = guess_scheme([[spelling.read(tag) or tag for tag in sentence] for sentence in tags])
    except ValueError:
        return None
    return None if scheme in ("flat", "auto") else scheme


def _read_blocks(lines: Iterable[str], layout: Layout, file: str) -> Iterator[Block]:
    """Yield the sentences of a file with all lines around, cut as training cuts them."""
    pending_lines: list[str] = []
    first = 1

    def recorded() -> Iterator[str]:
        line = ""
        for line in lines:
            pending_lines.append(line)
            yield line
        if line.strip():  # an empty line ends the last sentence too
            pending_lines.append("")
            yield ""

    for numbers, rows in sentence_rows(recorded(), layout):
        if faults := row_faults(rows, numbers, layout, file):
            raise faults[0]
        cells = {number: row for number, row in zip(numbers, rows, strict=True) if is_word(row, layout)}
        block = [Row(number, text, cells.get(number, [])) for number, text in enumerate(pending_lines, first)]
        yield Block(block, [layout.word(row) for row in cells.values()])
        first += len(pending_lines)
        pending_lines.clear()
    if pending_lines:
        yield Block([Row(number, text, []) for number, text in enumerate(pending_lines, first)], [])
