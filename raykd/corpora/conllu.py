"""CoNLL-U: ten columns between tabs, one syntactic word per line (Universal Dependencies).

Multi-word tokens (ids like 3-4) and empty nodes (8.1) are skipped: words are what is tagged. The `conllu` package
is not used: it accepts a line of two columns and reports no line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Literal

from raykd.corpora.conll import Cells, Layout, check_rows, cut_at_tabs, sentence_rows
from raykd.corpora.files import read_text_files
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import Stream, TextConfig
from raykd.corpora.tags import FileScheme
from raykd.errors import CorpusError

COLUMNS = MappingProxyType({"upos": 3, "xpos": 4, "deprel": 7})
NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
HINT = "correct the line; for other column files set corpus.source: conll"


class ConlluSource(TextConfig):
    """CoNLL-U, with one of its columns as the tag."""

    source: Literal["conllu"]
    tag: Literal["upos", "xpos", "deprel"] = "upos"
    scheme: FileScheme | dict[str, FileScheme] = "flat"


def read(config: ConlluSource) -> Stream:
    """Every part of the corpus, sentence by sentence.

    Raises:
        CorpusError: a file is missing or empty, a line does not have ten columns, or a word has a wrong number.
    """
    return read_text_files(config, parse)


def parse(
    config: ConlluSource, lines: Iterable[str], *, file: str, language: str, labelled: bool
) -> Iterator[Sentence]:
    """The sentences of one file's lines. Without `labelled` the tag column is not read."""
    tag = COLUMNS[config.tag] if labelled else None
    layout = Layout(cut_at_tabs, width=10, token=1, tag=tag, exact=True, comment="#", hint=HINT)
    for numbers, rows in sentence_rows(lines, layout):
        check_rows(rows, numbers, layout, file)
        # Multi-word tokens and empty nodes are no words; an id of any other form is checked as a word's.
        words = [
            (row, number) for row, number in zip(rows, numbers, strict=True) if not NO_WORD.fullmatch(row[0])
        ]
        _check_words(words, config.tag if labelled else None, file)
        tags = None if tag is None else [row[tag] for row, _ in words]
        yield Sentence([row[1] for row, _ in words], tags, language, (file, numbers[0]))


def _check_words(words: list[tuple[Cells, int]], tag: str | None, file: str) -> None:
    for expected, (row, number) in enumerate(words, start=1):
        if row[0] != str(expected):
            problem = f"word id {row[0]!r} where {expected} is expected"
            hint = "number a sentence's words 1, 2, 3… and end it with an empty line"
            raise CorpusError(file, number, problem, hint)
        if tag is not None and row[COLUMNS[tag]] == "_":
            hint = f"annotate it, or set corpus.tag ({', '.join(COLUMNS)})"
            raise CorpusError(file, number, f"{row[1]!r} has no {tag}", hint)
