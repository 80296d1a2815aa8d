"""Guesses of the columns of a table from the first rows: for Parquet files and JSON Lines alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pyarrow as pa

from raykd.corpora.guess import CERTAIN, Guess
from raykd.corpora.table_rows import class_names, is_list, is_list_of, is_text
from raykd.corpora.text_columns import Cells, find_longest_texts, find_text_columns
from raykd.identity import PlainObject

TOKENS = ("tokens", "words", "token", "word", "forms")
"""Usual names of columns with lists of words."""
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_tag", "slots", "pos_tags", "upos", "pos", "chunk_tags")
"""Usual names of columns with lists of tags, the likeliest first."""
LANGUAGES = ("language", "lang", "locale")
"""Usual names of columns of languages."""


def guess_table(
    table: pa.Table, source: str, form: str, features: PlainObject, languages: Collection[str] = ()
) -> Guess:
    """Guess the columns of a table from the first rows: words and tags, or texts and their class.

    Args:
        table: First rows of the table.
        source: Name of the source (`corpus.source`).
        form: Format in words.
        features: Descriptions of the columns, of a Hugging Face data set.
        languages: Languages in the column of languages.

    Returns:
        The guess; it is not readable where the table has neither words nor texts, or no names for its tags.
    """
    table = _with_plain_classes(table)
    names = ", ".join(table.column_names)
    table_guess = partial(
        Guess, source=source, confidence=CERTAIN, reason=f"{form} with the columns {names}",
        languages=tuple(sorted(languages)),
    )  # fmt: skip
    if class_lists := _column_of_class_lists(table):
        reason = f"{class_lists} has several classes of one text: give every text one class"
        return table_guess(readable=False, reason=reason)
    language = language_column(table.schema)
    language_setting = {"language": language} if language else {}
    types = {field.name: field.type for field in table.schema}
    lists = [name for name, kind in types.items() if is_list_of(kind, is_text)]
    if lists:
        token = _first(TOKENS, lists) or lists[0]
        tags = _tag_columns(types, token)
        if not tags:
            return table_guess(settings={"columns": {"token": token, **language_setting}}, labelled=False)
        tag, other_tags = tags[0], ", ".join(tags[1:])
        if pa.types.is_integer(types[tag].value_type) and class_names(features.get(tag)) is None:
            reason = f"column {tag} has numbers, and the file does not have the names of these tags"
            return table_guess(readable=False, reason=reason)
        doubts = (f"column {tag} is taken as the tags; also possible: {other_tags}",) if other_tags else ()
        return table_guess(
            settings={"columns": {"token": token, "tag": tag, **language_setting}}, doubts=doubts
        )
    cells = [
        _cells(table[name], name) for name, kind in types.items() if name != language and _is_plain(kind)
    ]
    text = find_longest_texts(column for column in cells if is_text(types[column.name]))
    if text is None:
        return table_guess(readable=False, reason=f"no column of texts or of lists of words ({names})")
    texts = find_text_columns(cells, text)
    columns = {key: column.name for key, column in texts.columns.items()} | language_setting
    if texts.label is None:
        return table_guess(settings={"columns": columns}, labelled=False)
    return table_guess(settings={"columns": columns, "scheme": "flat"}, doubts=texts.doubts)


def _tag_columns(types: Mapping[str, pa.DataType], token: str) -> list[str]:
    """Columns that may have the tags of the words in `token`, the likeliest first."""
    lists = [
        name
        for name, kind in types.items()
        if name != token and is_list_of(kind, is_text, pa.types.is_integer)
    ]
    # The language of each word is no tag.
    tags = [name for name in lists if name not in ("langs", "spans")] or lists
    return sorted(tags, key=lambda name: TAGS.index(name) if name in TAGS else len(TAGS))


def _with_plain_classes(table: pa.Table) -> pa.Table:
    """The table with classes in lists of one as plain values: a text and a list are not words and tags."""
    if _longest_text(table) is None:
        return table
    for number, field in enumerate(table.schema):
        lists = table[field.name].to_pylist() if is_list(field.type) and field.name not in TOKENS else []
        if lists and all(values and len(values) == 1 for values in lists):
            table = table.set_column(number, field.name, pa.array([value for (value,) in lists]))
    return table


def _column_of_class_lists(table: pa.Table) -> str | None:
    """The column with lists of classes beside a text; lists of words have more distinct values."""
    lists = [field.name for field in table.schema if is_list_of(field.type, is_text, pa.types.is_integer)]
    if len(lists) != 1 or lists[0] in TOKENS or _longest_text(table) is None:
        return None
    values = {value for row in table[lists[0]].to_pylist() for value in row or ()}
    return lists[0] if len(values) <= table.num_rows else None


def _longest_text(table: pa.Table) -> Cells | None:
    return find_longest_texts(
        [_cells(table[field.name], field.name) for field in table.schema if is_text(field.type)]
    )


def language_column(schema: pa.Schema) -> str | None:
    """Return the name of the column of languages; None without one.

    Args:
        schema: Schema of the table.
    """
    return _first(LANGUAGES, [field.name for field in schema if is_text(field.type)])


def _first(names: Sequence[str], present: Sequence[str]) -> str | None:
    return next((name for name in names if name in present), None)


def _is_plain(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind)


def _cells(column: pa.ChunkedArray, name: str) -> Cells:
    cells = Cells(name)
    for value in column.to_pylist():
        cells.add(value)
    return cells
