"""Sentences from a table with a list of words and a list of tags per row: what Parquet files and Hugging Face
data sets have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Self

import pyarrow as pa
from pydantic import Field, model_validator

from raykd.corpora.files import files_of, place
from raykd.corpora.guess import CERTAIN, Guess
from raykd.corpora.sentence import Faulty, Sentence, Unit, pair
from raykd.corpora.source import FilesConfig, Name, PartsConfig, Stream
from raykd.corpora.table_origins import Rows
from raykd.corpora.text_columns import Cells, longest, texts_in
from raykd.counted import counted
from raykd.errors import CorpusError
from raykd.progress import with_progress
from raykd.spec import Frozen
from raykd.storage.store import Storage

TOKENS = ("tokens", "words", "token", "word", "forms")
TAGS = ("ner_tags", "ner", "tags", "labels", "ner_tag", "slots", "pos_tags", "upos", "pos", "chunk_tags")
LANGUAGES = ("language", "lang", "locale")
"""Usual names of the columns of words, tags and languages."""


ReadFile = Callable[[Storage, str, list[str], bool], Iterator[Sentence | Faulty]]


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


class TableFiles(FilesConfig, TableSource):
    """Tables in files, one or several per part and language, or with a column for the language."""

    @model_validator(mode="after")
    def _languages_differ(self) -> Self:
        if self.columns.language is None:
            self.refuse_one_place_for_two("or set columns.language")
        return self


def read_table_files(config: TableFiles, read_file: ReadFile, most: int | None) -> Stream:
    """Every part of the corpus, file by file, through `read_file(storage, name, languages, labelled)`; of each file the
    first `most` sentences. A file of several languages is read once.

    Raises:
        CorpusError: a file is missing, malformed, or has no sentence of its languages.
    """
    storage = Storage(config.root)
    files: dict[tuple[str, str], list[str]] = {}
    for part, language, name in files_of(config):
        files.setdefault((part, name), []).append(language)
    for (part, name), languages in with_progress([*files.items()]):
        labelled, empty = any(config.reads_tags(part, language) for language in languages), True
        for sentence in islice(read_file(storage, name, languages, labelled), most):
            empty = False
            yield part, sentence
        if empty:
            problem = f"the file has no sentence of {', '.join(languages)}"
            raise CorpusError(place(storage, name), None, problem, "fill it, or remove its part")


def sentences_of(
    table: pa.Table,
    columns: TableColumns,
    *,
    file: str,
    languages: Sequence[str],
    names: Sequence[str] | None,
    labelled: bool,
    first: int = 0,
    lines: Sequence[int] | None = None,
) -> Iterator[Sentence | Faulty]:
    """The rows of `table`, without those of other languages where a column has the language. The table is a piece of
    a larger one, from row `first` on; of a file of text `lines` has the line of each row.

    `languages` is the one language of all rows, unless `columns.language` names a column. Rows without words
    are skipped.

    Raises:
        CorpusError: a column is missing or of another type, or a row has a null or an unknown tag.
    """
    rows = Rows(file, first, lines)
    tags: Sequence[list[str] | None] = [None] * table.num_rows
    if columns.text is None:
        tokens = _words(table, columns.token, rows)
        tags = _tags(table, columns.tag, names, rows) if labelled else tags
    else:
        tokens = [text.split() for text in _texts(table, columns.text, "text", rows)]
        if columns.second is not None:
            others = _texts(table, columns.second, "second", rows)
            tokens = [pair(one, other.split()) for one, other in zip(tokens, others, strict=True)]
        tags = _classes(table, columns.label, names, rows) if labelled else tags
    row_languages = [languages[0]] * table.num_rows
    if columns.language:
        row_languages = _column(table, columns.language, "language", file).cast(pa.string()).to_pylist()
    for row, (words, own, language) in enumerate(zip(tokens, tags, row_languages, strict=True)):
        if language not in languages or not words:
            continue
        if own is not None and len(words) != len(own) and columns.unit == "word":
            problem = f"has {counted(len(words), 'word')} and {counted(len(own), 'tag')}"
            yield Faulty(language, (rows.fault(row, problem, "give one tag per word"),))
        elif problem := _odd_words(words):
            yield Faulty(language, (rows.fault(row, problem, "correct the word"),))
        else:
            yield Sentence(words, own, language, rows.origin(row), columns.unit)


def class_names(feature: Any) -> list[str] | None:
    """The class names in a Hugging Face feature's plain form (as in data sets and Parquet metadata)."""
    if isinstance(feature, list | tuple):
        return class_names(feature[0]) if feature else None
    if not isinstance(feature, Mapping):
        return None
    if "names" in feature:
        return list(feature["names"])
    return class_names(feature.get("feature"))


def _odd_words(words: Sequence[str]) -> str:
    if "" in words:
        return "has an empty word"
    return "has a zero byte in a word" if "\0" in "".join(words) else ""


def _words(table: pa.Table, name: str, rows: Rows) -> list[list[str] | None]:
    column = _column(
        table, name, "token", rows.file, "lists of words", lambda kind: _is_list_of(kind, _is_text)
    )
    return _rows_without_nulls(column, rows)


def _tags(table: pa.Table, name: str, names: Sequence[str] | None, rows: Rows) -> list[list[str] | None]:
    column = _column(
        table,
        name,
        "tag",
        rows.file,
        "lists of tags",
        lambda kind: _is_list_of(kind, _is_text, pa.types.is_integer),
    )
    values = [tags or [] for tags in _rows_without_nulls(column, rows)]
    if not pa.types.is_integer(column.type.value_type):
        return values
    if names is None:
        problem = f"column {name!r} has numbers, and the names of these tags are unknown"
        raise CorpusError(rows.file, None, problem, "set corpus.tag_names: [O, B-PER, …]")
    return [_named(numbers, names, rows, row) for row, numbers in enumerate(values)]


def _texts(table: pa.Table, name: str, key: str, rows: Rows) -> list[str]:
    return _values(_column(table, name, key, rows.file, "texts", _is_text), rows)


def _classes(table: pa.Table, name: str, names: Sequence[str] | None, rows: Rows) -> list[list[str]]:
    column = _column(table, name, "label", rows.file)
    values = _values(column, rows)
    if _is_list(column.type):
        values = [_only(classes, rows, row) for row, classes in enumerate(values)]
    if nan := [row for row, value in enumerate(values) if value != value]:
        raise rows.fault(nan[0], "has NaN for its class", "give every text and its class")
    if names is None or not all(isinstance(value, int) for value in values):
        # Numbers without names are names themselves: a class is only ever compared.
        return [[str(value)] for value in values]
    return [_named([value], names, rows, row) for row, value in enumerate(values)]


def _only(classes: Sequence[Any], rows: Rows, row: int) -> Any:
    """The class of a list of one."""
    if len(classes) == 1 and classes[0] is not None:
        return classes[0]
    raise rows.fault(
        row, f"has {counted(len(classes), 'class', 'classes')}: {classes}", "give every text one class"
    )


def _values(column: pa.ChunkedArray, rows: Rows) -> list[Any]:
    values = column.to_pylist()
    if column.null_count:
        raise rows.fault(values.index(None), "has a null", "give every text and its class")
    return values


def _named(numbers: Sequence[int], names: Sequence[str], rows: Rows, row: int) -> list[str]:
    if all(0 <= number < len(names) for number in numbers):
        return [names[number] for number in numbers]
    if set(numbers) == {-1}:
        hint = "the part was published without labels: read another one in its place, or set corpus.split"
        raise rows.fault(row, "has no labels (-1)", hint)
    problem = f"has a tag number outside 0 … {len(names) - 1}: {numbers}"
    raise rows.fault(row, problem, "correct the row, or set corpus.tag_names")


def _rows_without_nulls(column: pa.ChunkedArray, rows: Rows) -> list[Any]:
    """The rows of a list column; a row may be null as a whole, a value inside a row may not."""
    lists = column.to_pylist()
    if column.combine_chunks().flatten().null_count:
        row = next(place for place, values in enumerate(lists) if values and None in values)
        raise rows.fault(row, "has a null", "give every word and every tag")
    return lists


def _column(
    table: pa.Table,
    name: str,
    key: str,
    file: str,
    what: str = "",
    fits: Callable[[pa.DataType], bool] = lambda kind: True,
) -> pa.ChunkedArray:
    """A column. Raises CorpusError where it is missing, or it has not `what` is expected."""
    hint = f"set corpus.columns.{key} ({', '.join(table.column_names)})"
    if name not in table.column_names:
        raise CorpusError(file, None, f"there is no column {name!r}", hint)
    column = table[name]
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not fits(column.type):
        raise CorpusError(file, None, f"column {name!r} has {column.type}, not {what}", hint)
    return column


def _is_list_of(kind: pa.DataType, *allowed: Callable[[pa.DataType], bool]) -> bool:
    return _is_list(kind) and any(test(kind.value_type) for test in allowed)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def guess_table(
    table: pa.Table, source: str, form: str, features: Mapping[str, Any], languages: Collection[str] = ()
) -> Guess:
    """The guess of a table by its first rows: words and tags, or texts and their class.

    `features` describe the columns of a Hugging Face data set, `languages` are those in its column of languages.
    """
    table = _with_plain_classes(table)
    names = ", ".join(table.column_names)
    known = partial(Guess, source=source, sure=CERTAIN, why=f"{form} with the columns {names}")
    by = language_column(table.schema)
    kinds = {field.name: field.type for field in table.schema}
    lists = [name for name, kind in kinds.items() if _is_list_of(kind, _is_text)]
    if several := _several_classes(table):
        return known(
            readable=False, why=f"{several} has several classes of one text: give every text one class"
        )
    if lists:
        token = _first(TOKENS, lists) or lists[0]
        tags = [
            name
            for name in kinds
            if name != token and _is_list_of(kinds[name], _is_text, pa.types.is_integer)
        ]
        # The language of each word is no tag.
        tags = [name for name in tags if name not in ("langs", "spans")] or tags
        tags.sort(key=lambda name: TAGS.index(name) if name in TAGS else len(TAGS))
        if not tags:
            return known(settings={"columns": {"token": token}}, labelled=False)
        tag, others = tags[0], ", ".join(tags[1:])
        if pa.types.is_integer(kinds[tag].value_type) and class_names(features.get(tag)) is None:
            why = f"column {tag} has numbers, and the file does not have the names of these tags"
            return known(readable=False, why=why)
        columns, settings = {"token": token, "tag": tag}, {}
        doubts = (f"column {tag} is taken as the tags; also possible: {others}",) if others else ()
    else:
        cells = [_cells(table[name], name) for name, kind in kinds.items() if name != by and _is_plain(kind)]
        text = longest(each for each in cells if _is_text(kinds[each.name]))
        if text is None:
            return known(readable=False, why=f"no column of texts or of lists of words ({names})")
        found = texts_in(cells, text)
        columns = {key: column.name for key, column in found.columns.items()}
        if found.label is None:
            return known(settings={"columns": columns}, labelled=False)
        settings, doubts = {"scheme": "flat"}, found.doubts
    columns |= {"language": by} if by else {}
    return known(settings={"columns": columns, **settings}, languages=tuple(sorted(languages)), doubts=doubts)


def _with_plain_classes(table: pa.Table) -> pa.Table:
    """The same, where a text has its class as a list of one: a text and a list are no words and tags."""
    if _longest_text(table) is None:
        return table
    for number, field in enumerate(table.schema):
        lists = table[field.name].to_pylist() if _is_list(field.type) and field.name not in TOKENS else []
        if lists and all(values and len(values) == 1 for values in lists):
            table = table.set_column(number, field.name, pa.array([value for (value,) in lists]))
    return table


def _several_classes(table: pa.Table) -> str | None:
    """The column that has lists of classes beside a text; lists of words have more different values."""
    lists = [field.name for field in table.schema if _is_list_of(field.type, _is_text, pa.types.is_integer)]
    if len(lists) != 1 or lists[0] in TOKENS or _longest_text(table) is None:
        return None
    values = {value for row in table[lists[0]].to_pylist() for value in row or ()}
    return lists[0] if len(values) <= table.num_rows else None


def _longest_text(table: pa.Table) -> Cells | None:
    return longest([_cells(table[field.name], field.name) for field in table.schema if _is_text(field.type)])


def language_column(schema: pa.Schema) -> str | None:
    """The column that names the language of each row."""
    return _first(LANGUAGES, [field.name for field in schema if _is_text(field.type)])


def _first(names: Sequence[str], present: Sequence[str]) -> str | None:
    return next((name for name in names if name in present), None)


def _is_plain(kind: pa.DataType) -> bool:
    return _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind)


def _cells(column: pa.ChunkedArray, name: str) -> Cells:
    cells = Cells(name)
    for value in column.to_pylist():
        cells.add(value)
    return cells
