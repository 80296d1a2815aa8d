"""JSON Lines: one object per line, with a list of words and a list of tags, or a text and its class; UTF-8."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import Any, Literal

import pyarrow as pa

from raykd.corpora.annotated_records import SpanReading, has_spans
from raykd.corpora.chunks import ROWS
from raykd.corpora.columns import ALMOST
from raykd.corpora.files import BrokenLine, file_address, read_lines
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream
from raykd.corpora.table_guess import guess_table, language_column
from raykd.corpora.table_origins import Rows
from raykd.corpora.table_rows import TableColumns, TableFiles, read_table_files, sentences_from_table
from raykd.errors import CorpusError
from raykd.storage.store import Storage

TEXT, LABEL = frozenset({str}), frozenset({str, int, float, bool})
"""Types of words and texts (`TEXT`), and those of tags, classes and languages."""
_HALVES = re.compile("[\ud800-\udfff]").search
SPANS_HINT = "for spans of characters set corpus.source: spans, without columns"


class JsonlSource(TableFiles):
    """JSON Lines files, one or several per part and language, or with a key for the language."""

    source: Literal["jsonl"]


def read(config: JsonlSource, *, limit: int | None = None) -> Stream:
    """Yield the sentences of all parts, line by line.

    Args:
        config: Configuration of the source.
        limit: Number of first sentences to read from a file; None reads all.

    Raises:
        CorpusError: A file is missing, or a line is no object, lacks a key, or does not have one tag per word.
    """
    return read_table_files(config, partial(_read_file, config), limit)


def _read_file(
    config: JsonlSource, storage: Storage, name: str, languages: list[str], labelled: bool
) -> Iterator[Sentence | Faulty]:
    file, columns = file_address(storage, name), config.columns
    keys = [*columns.texts]
    keys += [columns.target] if labelled else []
    keys += [columns.language] if columns.language else []
    rows = _objects(read_lines(storage, name, "utf-8", may_be_set=False), file, keys, columns)
    while block := list(islice(rows, ROWS)):
        for faulty, group in groupby(block, lambda row: isinstance(row[1], CorpusError)):
            lines, values = zip(*group, strict=True)
            if faulty:
                yield from (Faulty(languages[0], (fault,)) for fault in values)
            else:
                yield from sentences_from_table(
                    _table(values, keys, file, lines), columns, rows=Rows(file, lines=lines), languages=languages,
                    names=config.tag_names, labelled=labelled,
                )  # fmt: skip


def _objects(
    lines: Iterator[str], file: str, keys: list[str], columns: TableColumns
) -> Iterator[tuple[int, Any]]:
    """Yield (line number, object with these keys alone, or fault) of the nonempty lines."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = _object(line, file, number, keys, columns)
            except CorpusError as fault:
                yield number, fault
            else:
                if row[keys[0]]:  # a row without words would have no type
                    yield number, row
                elif columns.unit == "word" and row.get(columns.tag):
                    yield (
                        number,
                        CorpusError(file, number, "the line has tags and no words", "give one tag per word"),
                    )


def _object(line: str, file: str, number: int, keys: list[str], columns: TableColumns) -> dict[str, Any]:
    if isinstance(line, BrokenLine):
        raise line.fault(file, number)
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise CorpusError(file, number, "the line is not a JSON object", "write one object per line")
    if missing := [key for key in keys if content.get(key) is None]:
        hint = f"set corpus.columns ({', '.join(map(str, content))})"
        hint = SPANS_HINT if has_spans(content, SpanReading()) else hint
        missing_key = (
            f"there is null for {missing[0]!r}"
            if missing[0] in content
            else f"there is no {missing[0]!r} in the object"
        )
        raise CorpusError(file, number, missing_key, hint)
    values = {key: _unwrap_class(content[key], key, columns) for key in keys}
    for key, value in values.items():
        if problem := _value_problem(value, key, columns):
            spans = has_spans(content, SpanReading())
            hint = SPANS_HINT if spans else "correct the line, or set corpus.columns"
            raise CorpusError(file, number, f"{key!r} {problem}", hint)
    return values


def _unwrap_class(value: Any, key: str, columns: TableColumns) -> Any:
    """Return the class in a list of one class; other values as they are."""
    is_class = columns.unit == "sentence" and key == columns.target
    return value[0] if is_class and isinstance(value, list) and len(value) == 1 else value


def _value_problem(value: Any, key: str, columns: TableColumns) -> str:
    """Return the fault of a value in words; empty without a fault."""
    is_text, lists = key in columns.texts, columns.unit == "word" and key != columns.language
    if isinstance(value, list) != lists:
        return f"has {_json_start(value)} where {'a list' if lists else 'one text' if is_text else 'one'} is expected"
    values = value if lists else [value]
    kinds = set(map(type, values))
    if not kinds <= (TEXT if is_text else LABEL):
        odd = next(item for item in values if type(item) not in (TEXT if is_text else LABEL))
        return f"has {_json_start(odd)} where a {'text' if is_text else 'label'} is expected"
    if float in kinds and (
        odd := [item for item in values if isinstance(item, float) and not math.isfinite(item)]
    ):
        return f"has {odd[0]}, which is no label"
    text = "".join(values if kinds == TEXT else (item for item in values if isinstance(item, str)))
    if not text.isascii() and (half := _HALVES(text)):
        return f"has half of a character ({_json_start(half[0])}): the other half is missing"
    return ""


def _json_start(value: Any) -> str:
    return json.dumps(value)[:40]


def _table(rows: Sequence[dict[str, Any]], keys: list[str], file: str, lines: Sequence[int]) -> pa.Table:
    columns = {key: [row[key] for row in rows] for key in keys}
    try:
        return pa.table(columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        for key, values in columns.items():
            first = next((place for place, value in enumerate(values) if value != []), 0)
            for line, value in zip(lines, values, strict=True):
                if not _same_type(values[first], value):
                    alone = value is values[first]
                    difference = (
                        "has several types"
                        if alone
                        else f"is not of the type that it has in line {lines[first]}"
                    )
                    problem = f"{key!r} {difference}"
                    raise CorpusError(file, line, problem, "give every line the same types") from None
        raise


def _same_type(first: Any, second: Any) -> bool:
    try:
        pa.array([first, second])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True


def guess(head: Head) -> Guess | None:
    """Guess the settings of a file with an object in a line; None for other files."""
    if not head.nonblank_lines or not head.nonblank_lines[0].lstrip().startswith("{"):
        if head.name.removesuffix(".gz").endswith((".json", ".jsonl")):
            reason = (
                "JSON, and not one object per line: write each object into a line of its own (JSON Lines)"
            )
            return Guess(source="jsonl", reason=reason, confidence=CERTAIN, readable=False)
        return None
    rows = [row for line in head.nonblank_lines if (row := _parse_row(line)) is not None]
    try:
        if len(rows) < ALMOST * len(head.nonblank_lines) - 1:
            raise ValueError("lines are no objects")
        table = pa.Table.from_pylist(rows)
    except (ValueError, pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        reason = "it begins like JSON Lines, and is not one object of equal types per line"
        return Guess(source="jsonl", reason=reason, confidence=CERTAIN, readable=False)
    languages = set[str]()
    if (column := language_column(table.schema)) is not None:
        # A language may begin after the first lines.
        for line in head.all_lines():
            with suppress(ValueError, RecursionError, AttributeError):
                if (language := json.loads(line).get(column)) and isinstance(language, str):
                    languages.add(language)
    return guess_table(table, "jsonl", "JSON Lines", {}, languages)


def _parse_row(line: str) -> dict[str, Any] | None:
    """Return the object of a line; None for other lines and for halves of characters, which reading reports."""
    try:
        content = json.loads(line)
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
