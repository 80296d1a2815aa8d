"""Sentences from a table with a list of words and a list of tags per row: what Parquet files and Hugging Face
data sets have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from raykd.corpora.sentence import Faulty, Sentence, Unit, pair
from raykd.corpora.source import Name, PartsConfig
from raykd.counted import counted
from raykd.errors import CorpusError
from raykd.spec import Frozen


class TableColumns(Frozen):
    """The names of the columns: words and tags, or a text and its class; the language where one table has several."""

    token: Name = "tokens"
    """The column of lists of words."""
    tag: Name = "ner_tags"
    """The column of lists of tags, or of their numbers (`tag_names`)."""
    text: Name | None = None
    """Texts with one class each, instead of words with tags; their words are separated by white space."""
    second: Name | None = None
    """The second texts, of pairs of texts with one class each."""
    label: Name = "label"
    """The class of a text, or of a pair."""
    language: Name | None = None
    """The column of the language, where a file has several."""

    @property
    def unit(self) -> Unit:
        """What one tag belongs to."""
        return "word" if self.text is None else "sentence"

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of words or texts."""
        one = self.token if self.text is None else self.text
        return (one,) if self.second is None else (one, self.second)

    @property
    def target(self) -> str:
        """The column of tags, or of classes."""
        return self.tag if self.text is None else self.label


class TableSource(PartsConfig):
    """A source whose parts are tables: one row for each sentence."""

    columns: TableColumns = TableColumns()
    """The names of its columns."""
    tag_names: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """The names of the numbers in a tag column, where the data do not have them."""

    @property
    def unit(self) -> Unit:
        """What one tag belongs to."""
        return self.columns.unit

    @property
    def pairs(self) -> bool:
        """Whether its sentences are pairs of texts."""
        return self.columns.second is not None

    @model_validator(mode="after")
    def _classes_are_flat(self) -> Self:
        if self.pairs and self.unit == "word":
            raise ValueError(
                "columns.second names the second texts of pairs: name the first ones in columns.text"
            )
        if self.unit == "sentence" and self.scheme != "flat":
            raise ValueError("a text has one class, which is no span: set scheme: flat")
        return self


def sentences_of(
    table: pa.Table,
    columns: TableColumns,
    *,
    file: str,
    languages: Sequence[str],
    names: Sequence[str] | None,
    labelled: bool,
    first: int = 0,
) -> list[Sentence | Faulty]:
    """The rows of `table`, without those of other languages where a column has the language. The table is a piece of
    a larger one, from row `first` on.

    `languages` is the one language of all rows, unless `columns.language` names a column. Rows without words
    are skipped.

    Raises:
        CorpusError: a column is missing or of another type, or a row has a null or an unknown tag.
    """
    if columns.text is None:
        tokens = _words(table, columns.token, file, first)
        tags = _tags(table, columns.tag, names, file, first) if labelled else [None] * table.num_rows
    else:
        tokens = [text.split() for text in _texts(table, columns.text, "text", file, first)]
        if columns.second is not None:
            others = _texts(table, columns.second, "second", file, first)
            tokens = [pair(one, other.split()) for one, other in zip(tokens, others, strict=True)]
        tags = _classes(table, columns.label, names, file, first) if labelled else [None] * table.num_rows
    row_languages = [languages[0]] * table.num_rows
    if columns.language:
        row_languages = _column(table, columns.language, "language", file).cast(pa.string()).to_pylist()
    return list(_rows(tokens, tags, row_languages, set(languages), file, first, columns.unit))


def class_names(feature: Any) -> list[str] | None:
    """The class names in a Hugging Face feature's plain form (as in data sets and Parquet metadata)."""
    if isinstance(feature, list | tuple):
        return class_names(feature[0]) if feature else None
    if not isinstance(feature, Mapping):
        return None
    if "names" in feature:
        return list(feature["names"])
    return class_names(feature.get("feature"))


def _rows(
    tokens: Sequence[list[str] | None],
    tags: Sequence[list[str] | None],
    row_languages: Sequence[str],
    languages: set[str],
    file: str,
    first: int,
    unit: Unit,
) -> Iterator[Sentence | Faulty]:
    for row, (words, row_tags, language) in enumerate(zip(tokens, tags, row_languages, strict=True), first):
        if language not in languages or not words:
            continue
        if row_tags is not None and len(words) != len(row_tags) and unit == "word":
            problem = f"row {row} has {counted(len(words), 'word')} and {counted(len(row_tags), 'tag')}"
            yield Faulty(language, (CorpusError(file, None, problem, "give one tag per word"),))
            continue
        yield Sentence(words, row_tags, language, (f"{file} row {row}", None), unit)


def _words(table: pa.Table, name: str, file: str, first: int) -> list[list[str] | None]:
    column = _column(table, name, "token", file)
    if not _is_list_of(column.type, pa.types.is_string, pa.types.is_large_string, _is_string_view):
        problem = f"column {name!r} has {column.type}, not lists of words"
        raise CorpusError(file, None, problem, f"set corpus.columns.token ({', '.join(table.column_names)})")
    return _rows_without_nulls(column, file, first)


def _tags(
    table: pa.Table, name: str, names: Sequence[str] | None, file: str, first: int
) -> list[list[str] | None]:
    column = _column(table, name, "tag", file)
    if _is_list_of(column.type, pa.types.is_string, pa.types.is_large_string, _is_string_view):
        return [tags or [] for tags in _rows_without_nulls(column, file, first)]
    if not _is_list_of(column.type, pa.types.is_integer):
        problem = f"column {name!r} has {column.type}, not lists of tags"
        raise CorpusError(file, None, problem, f"set corpus.columns.tag ({', '.join(table.column_names)})")
    if names is None:
        problem = f"column {name!r} has numbers, and the names of these tags are unknown"
        raise CorpusError(file, None, problem, "set corpus.tag_names: [O, B-PER, …]")
    return [
        _named(numbers or [], names, file, row)
        for row, numbers in enumerate(_rows_without_nulls(column, file, first), first)
    ]


def _texts(table: pa.Table, name: str, key: str, file: str, first: int) -> list[str]:
    column = _column(table, name, key, file)
    if not (
        pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or _is_string_view(column.type)
    ):
        problem = f"column {name!r} has {column.type}, not texts"
        raise CorpusError(file, None, problem, f"set corpus.columns.{key} ({', '.join(table.column_names)})")
    return _values(column, file, first)


def _classes(
    table: pa.Table, name: str, names: Sequence[str] | None, file: str, first: int
) -> list[list[str]]:
    column = _column(table, name, "label", file)
    numbers = pa.types.is_integer(column.type)
    values = _values(column, file, first)
    if not numbers or names is None:
        # Numbers without names are names themselves: a class is only ever compared.
        return [[str(value)] for value in values]
    return [_named([value], names, file, row) for row, value in enumerate(values, first)]


def _values(column: pa.ChunkedArray, file: str, first: int) -> list[Any]:
    values = column.to_pylist()
    if column.null_count:
        raise CorpusError(
            file, None, f"row {values.index(None) + first} has a null", "give every text and its class"
        )
    return values


def _named(numbers: Sequence[int], names: Sequence[str], file: str, row: int) -> list[str]:
    if all(0 <= number < len(names) for number in numbers):
        return [names[number] for number in numbers]
    problem = f"row {row} has a tag number outside 0 … {len(names) - 1}: {numbers}"
    raise CorpusError(file, None, problem, "correct the row, or set corpus.tag_names")


def _rows_without_nulls(column: pa.ChunkedArray, file: str, first: int) -> list[Any]:
    """The rows of a list column; a row may be null as a whole, a value inside a row may not."""
    rows = column.to_pylist()
    if column.combine_chunks().flatten().null_count:
        row = next(place for place, values in enumerate(rows, first) if values and None in values)
        raise CorpusError(file, None, f"row {row} has a null", "give every word and every tag")
    return rows


def _column(table: pa.Table, name: str, key: str, file: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        hint = f"set corpus.columns.{key} ({', '.join(table.column_names)})"
        raise CorpusError(file, None, f"there is no column {name!r}", hint)
    column = table[name]
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_list_of(kind: pa.DataType, *allowed: Any) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return is_list and any(test(kind.value_type) for test in allowed)


def _is_string_view(kind: pa.DataType) -> bool:
    return kind == pa.string_view()
