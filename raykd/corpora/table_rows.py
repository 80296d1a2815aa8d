"""Sentences from tables with a list of words and a list of tags per row: Parquet files and Hugging Face data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator
from typing_extensions import override

from raykd.corpora.files import file_address, list_files
from raykd.corpora.sentence import Faulty, Sentence, Unit, join_pair
from raykd.corpora.source import FilesConfig, Name, PartsConfig, Stream
from raykd.corpora.table_origins import Rows
from raykd.errors import CorpusError
from raykd.pluralise import pluralise
from raykd.progress import with_progress
from raykd.spec import Frozen
from raykd.storage.store import Storage

NO_LABEL: Mapping[int, str] = MappingProxyType(
    {
        -1: "it stands where a label is missing: give the row its labels, or remove it",
        -100: "it marks pieces that a loss leaves out: give words with their tags, not the pieces of a tokenizer",
    }
)
"""Numbers of tags that name none, with a hint."""

ReadFile = Callable[[Storage, str, list[str], bool], Iterator[Sentence | Faulty]]
"""Reader of one file: from storage, name, languages, and True if labels are read, to the sentences."""


class TableColumns(Frozen):
    """The names of the columns: words and tags, or a text and its class; the language where one table has several."""

    token: Name = "tokens"
    """The column of lists of words."""
    tag: Name = "ner_tags"
    """Column of lists of tags, or of their numbers (`tag_names`)."""
    text: Name | None = None
    """Column of texts with one class each, instead of words with tags; words are separated by white space."""
    second: Name | None = None
    """Column of the second texts, for pairs of texts with one class each."""
    label: Name = "label"
    """Column of the class of a text or pair."""
    language: Name | None = None
    """Column of the language, in files with several languages."""

    @property
    def unit(self) -> Unit:
        """Unit of one tag: word or sentence."""
        return "word" if self.text is None else "sentence"

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of words or texts."""
        first = self.token if self.text is None else self.text
        return (first,) if self.second is None else (first, self.second)

    @property
    def keyed_texts(self) -> tuple[tuple[str, str], ...]:
        """Columns of words or texts, with the settings that name them."""
        return tuple(zip(self.texts, ("token" if self.text is None else "text", "second"), strict=False))

    @property
    def target(self) -> str:
        """Column of tags, or of classes."""
        return self.tag if self.text is None else self.label


class TableSource(PartsConfig):
    """A source of tables with one row per sentence."""

    columns: TableColumns = TableColumns()
    """Names of the columns."""
    tag_names: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """Names of the numbers in a tag column, if the data do not contain them."""

    @property
    @override
    def unit(self) -> Unit:
        """Unit of one tag: word or sentence."""
        return self.columns.unit

    @property
    @override
    def pairs(self) -> bool:
        """True if sentences are pairs of texts."""
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


class TableFiles(FilesConfig, TableSource):
    """Tables in files, one or several per part and language, or with a column for the language."""

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        if self.columns.language is None:
            self.refuse_one_place_for_two("or set columns.language")
        return self


def read_table_files(config: TableFiles, read_file: ReadFile, limit: int | None) -> Stream:
    """Read all parts of a corpus, file by file. A file of several languages is read once.

    Args:
        config: Settings of the corpus.
        read_file: Reader of one file.
        limit: Maximum number of sentences from one file; None: all.

    Raises:
        CorpusError: A file is missing, malformed, or has no sentence of its languages.
    """
    storage = Storage(config.root)
    files: dict[tuple[str, str], list[str]] = {}
    for part, language, name in list_files(config):
        files.setdefault((part, name), []).append(language)
    for (part, name), languages in with_progress([*files.items()]):
        labelled, empty = any(config.reads_tags(part, language) for language in languages), True
        for sentence in islice(read_file(storage, name, languages, labelled), limit):
            empty = False
            yield part, sentence
        if empty:
            problem = f"the file has no sentence of {', '.join(languages)}"
            raise CorpusError(file_address(storage, name), None, problem, "fill it, or remove its part")


def sentences_from_table(
    table: pa.Table,
    columns: TableColumns,
    *,
    rows: Rows,
    languages: Sequence[str],
    names: Sequence[str] | None,
    labelled: bool,
) -> Iterator[Sentence | Faulty]:
    """Convert the rows of a table to sentences.

    Rows of other languages are skipped where a column has the language. Rows without words are skipped too. A row
    with a null or an unknown tag is faulty.

    Args:
        table: The table.
        columns: Names of its columns.
        rows: Place of the rows in their file.
        languages: Languages to read; the one language of all rows, unless `columns.language` names a column.
        names: Names of tag numbers; None for tags that are text.
        labelled: True to read tags.

    Raises:
        CorpusError: A column is missing or of another type, or no row has a tag.
    """
    texts = [_texts(table, columns, name, key, rows.file) for name, key in columns.keyed_texts]
    target = _Target(table, columns, names, rows) if labelled else None
    row_languages = [languages[0]] * table.num_rows
    if columns.language:
        row_languages = _column(table, columns.language, "language", rows.file).cast(pa.string()).to_pylist()
    for row, (language, *row_texts) in enumerate(zip(row_languages, *texts, strict=True)):
        if language not in languages:
            continue
        try:
            words = _row_words(row_texts, columns, rows, row)
            if not words and (target is None or columns.unit == "sentence"):
                continue
            tags = None if target is None else target.tags(row, rows)
            if not words and not tags:
                continue
            if tags is not None and len(words) != len(tags) and columns.unit == "word":
                problem = f"has {pluralise(len(words), 'word')} and {pluralise(len(tags), 'tag')}"
                raise rows.fault(row, problem, "give one tag per word")
            if problem := _word_problem(words):
                raise rows.fault(row, problem, "correct the word")
        except CorpusError as fault:
            yield Faulty(language, (fault,))
        else:
            yield Sentence(words, tags, language, rows.origin(row), columns.unit)


def _texts(table: pa.Table, columns: TableColumns, name: str, key: str, file: str) -> list[Any]:
    """Words of the rows as lists, or their texts."""
    if columns.text is not None:
        return _column(table, name, key, file, "texts", is_text).to_pylist()
    return _column(
        table, name, key, file, "lists of words", lambda kind: is_list_of(kind, is_text)
    ).to_pylist()


def _row_words(texts: Sequence[Any], columns: TableColumns, rows: Rows, row: int) -> list[str]:
    """Words of a row; for a pair those of both texts."""
    if columns.text is None:
        words = texts[0] or []
        if None in words:
            raise rows.fault(row, "has a null", "give every word and every tag")
        return words
    if None in texts:
        raise rows.fault(row, "has a null", "give every text and its class")
    first, *second = (text.split() for text in texts)
    return join_pair(first, second[0]) if second else first


class _Target:
    """The column of tags or classes of a table."""

    def __init__(self, table: pa.Table, columns: TableColumns, names: Sequence[str] | None, rows: Rows):
        file = rows.file
        self.words, self.lists = columns.unit == "word", False
        if self.words:
            column = _column(
                table, columns.tag, "tag", file, "lists of tags",
                lambda kind: is_list_of(kind, is_text, pa.types.is_integer),
            )  # fmt: skip
            numbers = column.combine_chunks().flatten()
            if pa.types.is_integer(numbers.type) and names is None:
                problem = f"column {columns.tag!r} has numbers, and the names of these tags are unknown"
                raise CorpusError(file, None, problem, "set corpus.tag_names: [O, B-PER, …]")
        else:
            column = _column(table, columns.label, "label", file)
            self.lists = is_list(column.type)
            numbers = column.combine_chunks().flatten() if self.lists else column
        self.names = names if pa.types.is_integer(numbers.type) else None
        if self.names is not None and (pc.call_function("max", [numbers]).as_py() or 0) < 0:
            problem = f"has negative numbers alone in column {columns.target!r}, as all rows read with it: no labels"
            raise rows.fault(0, problem, "name a split or file with labels, or draw it (corpus.split)")
        self.values = column.to_pylist()

    def tags(self, row: int, rows: Rows) -> list[str]:
        """Return the tags of a row, or its one class. CorpusError for a null or an unknown one."""
        value = self.values[row]
        values: list[Any] = (value or []) if self.words or self.lists else [value]
        if self.lists and len(values) != 1:
            problem = f"has {pluralise(len(values), 'class', 'classes')}: {values}"
            raise rows.fault(row, problem, "give every text one class")
        if any(value != value for value in values):  # only NaN differs from itself
            raise rows.fault(row, "has NaN for its class", "give every text and its class")
        if None in values:
            hint = "give every word and every tag" if self.words else "give every text and its class"
            raise rows.fault(row, "has a null", hint)
        if self.names is None:
            # Numbers without names are names themselves: a class is only ever compared.
            return [str(value) for value in values]
        if odd := [number for number in values if not 0 <= number < len(self.names)]:
            problem = f"has a tag number outside 0 … {len(self.names) - 1}: {odd[0]}"
            raise rows.fault(row, problem, NO_LABEL.get(odd[0], "correct the row, or set corpus.tag_names"))
        return [self.names[int(number)] for number in values]


def class_names(feature: Any) -> list[str] | None:
    """Return the class names in a Hugging Face feature, or None without any.

    Args:
        feature: Plain form of the feature, as in data sets and Parquet metadata.
    """
    if isinstance(feature, list | tuple):
        return class_names(feature[0]) if feature else None
    if not isinstance(feature, Mapping):
        return None
    if "names" in feature:
        return list(feature["names"])
    return class_names(feature.get("feature"))


def _word_problem(words: Sequence[str]) -> str:
    """Problem of the words of a row; empty without one."""
    if "" in words:
        return "has an empty word"
    return "has a zero byte in a word" if "\0" in "".join(words) else ""


def _column(
    table: pa.Table,
    name: str,
    key: str,
    file: str,
    expected: str = "",
    fits: Callable[[pa.DataType], bool] = lambda kind: True,
) -> pa.ChunkedArray:
    """A column of the table. CorpusError where it is missing, or its type is not the expected one."""
    hint = f"set corpus.columns.{key} ({', '.join(table.column_names)})"
    if name not in table.column_names:
        raise CorpusError(file, None, f"there is no column {name!r}", hint)
    column = table[name]
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not fits(column.type):
        raise CorpusError(file, None, f"column {name!r} has {column.type}, not {expected}", hint)
    return column


def is_list_of(kind: pa.DataType, *allowed: Callable[[pa.DataType], bool]) -> bool:
    """Return True for lists of values of an allowed type.

    Args:
        kind: Type of a column.
        allowed: Tests of the type of the values; one of them has to pass.
    """
    return is_list(kind) and any(test(kind.value_type) for test in allowed)


def is_list(kind: pa.DataType) -> bool:
    """Return True for lists of any layout."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return True for strings of any layout."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
