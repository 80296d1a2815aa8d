"""JSON Lines: one object per line, with a list of words and a list of tags, or a text and its class; UTF-8."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import Any, Literal

import pyarrow as pa

from raykd.corpora.annotated_records import SpanReading, has_spans
from raykd.corpora.chunks import ROWS
from raykd.corpora.files import BrokenLine, place, read_lines
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream
from raykd.corpora.table_rows import TableFiles, guess_table, language_column, read_table_files, sentences_of
from raykd.errors import CorpusError
from raykd.storage.store import Storage

SPANS_HINT = "for spans of characters set corpus.source: spans, without columns"


class JsonlSource(TableFiles):
    """JSON Lines files, one or several per part and language, or with a key for the language."""

    source: Literal["jsonl"]


def read(config: JsonlSource, *, most: int | None = None) -> Stream:
    """Every part of the corpus, line by line; of each file the first `most`.

    Raises:
        CorpusError: a file is missing, a line is no object, lacks a key, or does not have one tag per word.
    """
    return read_table_files(config, partial(_read_file, config), most)


def _read_file(
    config: JsonlSource, storage: Storage, name: str, languages: list[str], labelled: bool
) -> Iterator[Sentence | Faulty]:
    file, columns = place(storage, name), config.columns
    keys = [*columns.texts]
    keys += [columns.target] if labelled else []
    keys += [columns.language] if columns.language else []
    rows = _objects(read_lines(storage, name, "utf-8"), file, keys)
    first = 0
    while block := list(islice(rows, ROWS)):
        for faulty, own in groupby(block, lambda row: isinstance(row, CorpusError)):
            found = list(own)
            if faulty:
                yield from (Faulty(languages[0], (fault,)) for fault in found)
            else:
                yield from sentences_of(
                    _table(found, keys, file), columns, file=file, languages=languages, names=config.tag_names,
                    labelled=labelled, first=first,
                )  # fmt: skip
            first += len(found)


def _objects(lines: Iterator[str], file: str, keys: list[str]) -> Iterator[Any]:
    """The objects of a file's lines that are not empty, with these keys alone, or what is wrong with a line."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found = _object(line, file, number, keys)
            except CorpusError as fault:
                yield fault
            else:
                if found[keys[0]]:  # a row without words would have no type
                    yield found


def _object(line: str, file: str, number: int, keys: list[str]) -> dict[str, Any]:
    if isinstance(line, BrokenLine):
        raise CorpusError(file, number, line.problem, line.hint)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CorpusError(file, number, "the line is not a JSON object", "write one object per line")
    if missing := [key for key in keys if found.get(key) is None]:
        hint = f"set corpus.columns ({', '.join(map(str, found))})"
        hint = SPANS_HINT if has_spans(found, SpanReading()) else hint
        raise CorpusError(file, number, f"there is no {missing[0]!r} in the object", hint)
    return {key: found[key] for key in keys}


def _table(rows: list[dict[str, Any]], keys: list[str], file: str) -> pa.Table:
    try:
        return pa.table({key: pa.array([row[key] for row in rows]) for key in keys})
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
        problem = f"the values of one key are of several types ({str(error).splitlines()[0][:100]})"
        spans = any(has_spans(row, SpanReading()) for row in rows)
        hint = SPANS_HINT if spans else "give every line the same types"
        raise CorpusError(file, None, problem, hint) from None


def guess(head: Head) -> Guess | None:
    """The guess of a file with an object in each line."""
    if not head.filled or not head.filled[0].lstrip().startswith("{"):
        if head.name.removesuffix(".gz").endswith((".json", ".jsonl")):
            why = "JSON, and not one object per line: write a text and its class per line, with a tab between them"
            return Guess(source="jsonl", why=f"{why} (.tsv)", sure=CERTAIN, readable=False)
        return None
    try:
        table = pa.Table.from_pylist([json.loads(line) for line in head.filled])
    except (
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        AttributeError,
    ):
        why = "it begins like JSON Lines, and is not one object of equal types per line"
        return Guess(source="jsonl", why=why, sure=CERTAIN, readable=False)
    languages = set[str]()
    if (column := language_column(table.schema)) is not None:
        # One may begin after what was looked at.
        for line in head.all_lines():
            with suppress(ValueError, AttributeError):
                languages.add(json.loads(line).get(column))
    return guess_table(
        table, "jsonl", "JSON Lines", {}, [each for each in languages if each and isinstance(each, str)]
    )
