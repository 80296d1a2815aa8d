"""CoNLL-U: ten columns between tabs, one syntactic word per line (Universal Dependencies).

Multi-word tokens (ids like 3-4) and empty nodes (8.1) are skipped: words are what is tagged. The `conllu` package
is not used: it accepts a line of two columns and reports no line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Literal

from raykd.corpora.conll import HEAD, Cells, Layout, cut_at_tabs, row_faults, sentence_rows
from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream, TextConfig
from raykd.corpora.tags import FileScheme
from raykd.corpora.text_files import read_text_files
from raykd.counted import counted
from raykd.errors import CorpusError

COLUMNS = MappingProxyType({"upos": 3, "xpos": 4, "deprel": 7})
WIDTH = 10
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""The number of a line that is no word: a multiword token, whose words follow, or an empty node."""
HINT = "correct the line; for other column files set corpus.source: conll"


class ConlluSource(TextConfig):
    """CoNLL-U, with one of its columns as the tag."""

    source: Literal["conllu"]
    tag: Literal["upos", "xpos", "deprel"] = "upos"
    scheme: FileScheme | dict[str, FileScheme] = "flat"


def read(config: ConlluSource, *, most: int | None = None) -> Stream:
    """Every part of the corpus, sentence by sentence; of each file the first `most`.

    Raises:
        CorpusError: a file is missing.
    """
    return read_text_files(config, parse, most=most)


def parse(
    config: ConlluSource, lines: Iterable[str], *, file: str, language: str, labelled: bool
) -> Iterator[Sentence | Faulty]:
    """The sentences of one file's lines. Without `labelled` the tag column is not read."""
    tag = COLUMNS[config.tag] if labelled else None
    layout = Layout(cut_at_tabs, width=WIDTH, token=1, tag=tag, exact=True, comment="#", hint=HINT)
    sentences = sentence_rows(lines, layout)
    head = list(islice(sentences, HEAD))
    _refuse_other_columns(head, file)
    for numbers, rows in chain(head, sentences):
        faults = row_faults(rows, numbers, layout, file)
        # Multi-word tokens and empty nodes are no words; an id of any other form is checked as a word's.
        words = (
            []
            if faults
            else [
                (row, number)
                for row, number in zip(rows, numbers, strict=True)
                if not NO_WORD.fullmatch(row[0])
            ]
        )
        faults = faults or _word_faults(words, config.tag if labelled else None, file)
        if faults:
            yield Faulty(language, faults)
            continue
        tags = None if tag is None else [row[tag] for row, _ in words]
        yield Sentence([row[1] for row, _ in words], tags, language, (file, numbers[0]))


def _refuse_other_columns(head: list[tuple[list[int], list[Any]]], file: str) -> None:
    """CorpusError for a file of other columns: every row of its first sentences has too few."""
    rows = [
        (number, row)
        for numbers, own in head
        for number, row in zip(numbers, own, strict=True)
        if type(row) is not BrokenLine
    ]
    if not rows or any(len(row) >= WIDTH for _, row in rows):
        return
    number, row = rows[0]
    # Cells of a file with spaces between them are found too.
    cells = row if len(row) > 1 else row[0].split()
    first = int(len(cells) > 2 and cells[0].isdecimal())
    problem = f"{counted(len(row), 'column')} between tabs where CoNLL-U has {WIDTH}: {'  '.join(row)[:60]!r}"
    if len(cells) > 1:
        hint = f"set corpus.source: conll and corpus.columns: {{token: {first}, tag: {len(cells) - 1}}}"
    else:
        hint = "for words without tags set corpus.source: conll"
    raise CorpusError(file, number, problem, hint)


def _word_faults(words: list[tuple[Cells, int]], tag: str | None, file: str) -> tuple[CorpusError, ...]:
    found: list[CorpusError] = []
    for expected, (row, number) in enumerate(words, start=1):
        if row[0] != str(expected):
            problem = f"word id {row[0]!r} where {expected} is expected"
            hint = "number a sentence's words 1, 2, 3… and end it with an empty line"
            # Those that follow are only counted from here.
            return (*found, CorpusError(file, number, problem, hint))
        if tag is not None and row[COLUMNS[tag]] == "_":
            hint = f"annotate it, or set corpus.tag ({', '.join(COLUMNS)})"
            found.append(CorpusError(file, number, f"{row[1]!r} has no {tag}", hint))
    return tuple(found)
