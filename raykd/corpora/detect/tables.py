"""What the columns of Parquet and JSON Lines files hold: words and tags, or a text and its class."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raykd.corpora.detect.seen import LABEL_WORDS, MOST_CLASSES, PAIRS_HINT, TEXT_WORDS, Seen, Unclear
from raykd.corpora.files import opened
from raykd.corpora.tables import class_names
from raykd.storage.store import Storage

ROWS = 1000
TOKENS = ("tokens", "words", "token", "word", "forms")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_tag", "slots", "pos_tags", "upos", "pos", "chunk_tags")
LANGUAGES = ("language", "lang", "locale")


def look_at_parquet(storage: Storage, name: str) -> Seen | Unclear:
    """What a Parquet file is, by its schema and first rows."""
    try:
        with opened(storage, name) as source:
            file = pq.ParquetFile(source)
            table = next(file.iter_batches(ROWS), None)
            metadata = (file.schema_arrow.metadata or {}).get(b"huggingface")
            language = _first(file.schema_arrow, LANGUAGES, _is_text)
            batches = file.iter_batches(columns=[language]) if language else ()
            languages = sorted({each for batch in batches for each in batch[0].unique().to_pylist() if each})
    # A damaged file can make the reader raise anything.
    except Exception as error:
        return Unclear(name, f"damaged, or no Parquet file ({(str(error).splitlines() or [''])[0][:100]})")
    if table is None:
        return Unclear(name, "a Parquet file without rows")
    features = json.loads(metadata).get("info", {}).get("features", {}) if metadata else {}
    return _table(name, "parquet", pa.Table.from_batches([table]), features, languages)


def look_at_json(name: str, lines: Sequence[str]) -> Seen | Unclear:
    """What a file of JSON Lines is, by its first rows."""
    try:
        rows = [json.loads(line) for line in lines if line.strip()]
        table = pa.Table.from_pylist(rows)
    except (ValueError, pa.ArrowInvalid, pa.ArrowTypeError, AttributeError):
        return Unclear(name, "it begins like JSON Lines, and is not one object of equal types per line")
    language = _first(table.schema, LANGUAGES, _is_text)
    languages = sorted({each for each in table[language].to_pylist() if each}) if language else []
    return _table(name, "jsonl", table, {}, languages)


def languages_in(lines: Iterable[str], columns: Mapping[str, str]) -> tuple[str, ...]:
    """Every language of JSON Lines: one may begin after what was looked at."""
    found = set()
    for line in lines:
        with suppress(ValueError, AttributeError):
            found.add(json.loads(line).get(columns["language"]))
    return tuple(sorted(each for each in found if isinstance(each, str) and each))


def _table(
    name: str, kind: Any, table: pa.Table, features: dict[str, Any], languages: list[str]
) -> Seen | Unclear:
    shown = ", ".join(table.column_names)
    why = f"{'Parquet' if kind == 'parquet' else 'JSON Lines'} with the columns {shown}"
    language = _first(table.schema, LANGUAGES, _is_text)
    tokens = _first(table.schema, TOKENS, _is_words)
    tokens = tokens or next((field.name for field in table.schema if _is_words(field.type)), None)
    if tokens is not None:
        tags = [
            column
            for column in table.column_names
            if column != tokens and _is_tags(table.schema.field(column).type)
        ]
        # The language of each word is no tag.
        tags = [column for column in tags if column not in ("langs", "spans")] or tags
        tags.sort(key=lambda column: TAGS.index(column) if column in TAGS else len(TAGS))
        if not tags:
            return Seen(
                name=name, format=kind, settings=(("columns", {"token": tokens}),), labelled=False, why=why
            )
        columns = {"token": tokens, "tag": tags[0]}
        doubts = (
            (f"column {tags[0]} is taken as the tags; also possible: {', '.join(tags[1:])}",)
            if tags[1:]
            else ()
        )
        numbers = pa.types.is_integer(table.schema.field(tags[0]).type.value_type)
        if numbers and class_names(features.get(tags[0])) is None:
            return Unclear(
                name, f"column {tags[0]} has numbers, and the file does not have the names of these tags"
            )
        return _seen(name, kind, columns, (language, languages), {}, why, doubts)
    texts = [
        column
        for column in table.column_names
        if _is_text(table.schema.field(column).type) and column != language
    ]
    long = [column for column in texts if _mean_words(table, column) >= 1.5]
    text = _named_like(long, TEXT_WORDS) or (long[0] if long else None)
    if text is None:
        return Unclear(name, f"no column of texts or of lists of words ({shown})")
    labels = [
        column for column in table.column_names
        if column not in (text, language) and _is_class(
            table, column, min(MOST_CLASSES, max(2, table.num_rows // 3)),
            # A file may be sorted by class.
            least=1 if column.lower() in LABEL_WORDS or class_names(features.get(column)) else 2,
        )
    ]  # fmt: skip
    label = _named_like(labels, LABEL_WORDS) or (labels[0] if labels else None)
    if label is None:
        return Seen(name=name, format=kind, settings=(("columns", {"text": text}),), labelled=False, why=why)
    doubts = []
    if others := [column for column in long if column != text]:
        doubts.append(f"several columns have texts: {text} is taken, not {others[0]}; {PAIRS_HINT}")
    if others := [column for column in labels if column != label]:
        doubts.append(f"{label} is taken as the class; also possible: {', '.join(others[:4])}")
    return _seen(
        name,
        kind,
        {"text": text, "label": label},
        (language, languages),
        {"scheme": "flat"},
        why,
        tuple(doubts),
    )


def _seen(
    name: str, kind: Any, columns: dict[str, str], by: tuple[str | None, list[str]], settings: dict[str, Any], why: str,
    doubts: tuple[str, ...],
) -> Seen:  # fmt: skip
    column, languages = by
    if column is not None:
        columns = {**columns, "language": column}
    settings = {"columns": columns, **settings}
    return Seen(
        name=name, format=kind, settings=tuple(settings.items()), languages=tuple(languages), why=why, doubts=doubts
    )  # fmt: skip


def _first(schema: pa.Schema, names: Sequence[str], fits: Any) -> str | None:
    return next((name for name in names if name in schema.names and fits(schema.field(name).type)), None)


def _named_like(names: Sequence[str], words: Sequence[str]) -> str | None:
    return next((name for word in words for name in names if word in name.lower()), None)


def _is_words(kind: pa.DataType) -> bool:
    return _is_list(kind) and _is_text(kind.value_type)


def _is_tags(kind: pa.DataType) -> bool:
    return _is_list(kind) and (_is_text(kind.value_type) or pa.types.is_integer(kind.value_type))


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_class(table: pa.Table, name: str, most: int, least: int) -> bool:
    kind = table.schema.field(name).type
    plain = _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind)
    return plain and table[name].null_count == 0 and least <= len(table[name].unique()) <= most


def _mean_words(table: pa.Table, name: str) -> float:
    values = [value for value in table[name].to_pylist() if value]
    return sum(len(value.split()) for value in values) / max(len(values), 1)
