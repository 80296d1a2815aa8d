"""Parquet files with a list of words and a list of tags per row; tags are text, or numbers with names.

Files written by the `datasets` package have the names of their tag numbers; others need `tag_names`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import model_validator

from raykd.corpora.chunks import ROWS
from raykd.corpora.files import files_of, opened, place
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import FilesConfig, Stream
from raykd.corpora.tables import TableSource, class_names, sentences_of
from raykd.errors import CorpusError, StoreError
from raykd.progress import with_progress
from raykd.storage.store import Storage


class ParquetSource(FilesConfig, TableSource):
    """Parquet files, one or several per part and language, or with a column for the language."""

    source: Literal["parquet"]

    @model_validator(mode="after")
    def _languages_differ(self) -> ParquetSource:
        if self.columns.language is None:
            self.refuse_one_place_for_two("or set columns.language")
        return self


def read(config: ParquetSource, *, most: int | None = None) -> Stream:
    """Every part of the corpus, row by row; of each file the first `most`.

    Raises:
        CorpusError: a file is missing or not Parquet, a column is missing, or a row has a null or an unknown tag.
    """
    for part, name, languages in with_progress(_files(config)):
        labelled = any(config.reads_tags(part, language) for language in languages)
        empty = True
        for sentence in islice(_read_file(config, name, languages, labelled=labelled), most):
            empty = False
            yield part, sentence
        if empty:
            problem = f"the file has no sentence of {', '.join(languages)}"
            raise CorpusError(_place(config, name), None, problem, "fill it, or remove its part")


def _place(config: ParquetSource, name: str) -> str:
    return place(Storage(config.root), name)


def _files(config: ParquetSource) -> list[tuple[str, str, list[str]]]:
    """(part, file, its languages): a file of several languages is listed once."""
    found: dict[tuple[str, str], list[str]] = {}
    for part, language, name in files_of(config):
        found.setdefault((part, name), []).append(language)
    return [(part, name, languages) for (part, name), languages in found.items()]


def _read_file(
    config: ParquetSource, name: str, languages: list[str], *, labelled: bool
) -> Iterator[Sentence | Faulty]:
    file, first = _place(config, name), 0
    for table in _tables(config, name, file):
        names = config.tag_names or _stored_names(table, config.columns.target, file)
        yield from sentences_of(
            table, config.columns, file=file, languages=languages, names=names, labelled=labelled, first=first
        )
        first += table.num_rows


def _tables(config: ParquetSource, name: str, file: str) -> Iterator[pa.Table]:
    """A file as tables of some rows each; one without rows where it has none."""
    storage = Storage(config.root)
    if storage.size(name) == 0:
        raise CorpusError(file, None, "the file is empty", "fill it, or remove its part")
    with opened(storage, name) as source:
        try:
            whole = pq.ParquetFile(source, page_checksum_verification=True)
            yield whole.schema_arrow.empty_table()
            for batch in whole.iter_batches(ROWS):
                table = pa.Table.from_batches([batch]).replace_schema_metadata(whole.schema_arrow.metadata)
                # Text that is not UTF-8, and offsets beyond the data, are found only so.
                table.validate(full=True)
                yield table
        except StoreError:
            raise  # it is out of reach
        # A damaged file can make the reader raise anything.
        except Exception as error:
            problem = f"it is damaged, or not a Parquet file ({_first_line(error)})"
            raise CorpusError(file, None, problem, "write it again") from None


def _stored_names(table: pa.Table, column: str, file: str) -> list[str] | None:
    written = (table.schema.metadata or {}).get(b"huggingface")
    if written is None:
        return None
    try:
        names = class_names(json.loads(written).get("info", {}).get("features", {}).get(column))
        if names is not None and not all(isinstance(name, str) for name in names):
            raise ValueError(f"the names are {names}")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        problem = f"the names of its tags cannot be read ({_first_line(error)})"
        raise CorpusError(file, None, problem, "set corpus.tag_names: [O, B-PER, …]") from None
    return names


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
