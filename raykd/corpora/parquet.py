"""Parquet files with a list of words and a list of tags per row; tags are text, or numbers with names.

Files written by the `datasets` package contain the names of their tag numbers; other files need `tag_names`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from raykd.corpora.chunks import ROWS
from raykd.corpora.files import file_address, open_unpacked
from raykd.corpora.guess import CERTAIN, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence
from raykd.corpora.source import Stream
from raykd.corpora.table_guess import guess_table, language_column
from raykd.corpora.table_origins import Rows
from raykd.corpora.table_rows import TableFiles, class_names, read_table_files, sentences_from_table
from raykd.errors import CorpusError, StoreError
from raykd.storage.store import Storage

GUESS_ROWS = 1000
"""Number of rows that are read to guess the contents of the columns."""


class ParquetSource(TableFiles):
    """Parquet files, one or several per part and language, or with a column for the language."""

    source: Literal["parquet"]


def read(config: ParquetSource, *, limit: int | None = None) -> Stream:
    """Read all parts of the corpus.

    Args:
        config: Settings of the corpus.
        limit: Maximum number of sentences from one file; None: all.

    Raises:
        CorpusError: A file is missing or not Parquet, a column is missing, or a row has a null or an unknown tag.
    """
    return read_table_files(config, partial(_read_file, config), limit)


def _read_file(
    config: ParquetSource, storage: Storage, name: str, languages: list[str], labelled: bool
) -> Iterator[Sentence | Faulty]:
    file, first = file_address(storage, name), 0
    for table in _tables(storage, name, file):
        names = config.tag_names or _stored_names(table, config.columns.target, file)
        yield from sentences_from_table(
            table,
            config.columns,
            rows=Rows(file, first),
            languages=languages,
            names=names,
            labelled=labelled,
        )
        first += table.num_rows


def _tables(storage: Storage, name: str, file: str) -> Iterator[pa.Table]:
    """Tables of up to `ROWS` rows; for an empty file, one table without rows."""
    if storage.size(name) == 0:
        raise CorpusError(file, None, "the file is empty", "fill it, or remove its part")
    with open_unpacked(storage, name) as source:
        try:
            whole = pq.ParquetFile(source, page_checksum_verification=True)
            yield whole.schema_arrow.empty_table()
            for batch in whole.iter_batches(ROWS):
                table = pa.Table.from_batches([batch]).replace_schema_metadata(whole.schema_arrow.metadata)
                # Only a full validation finds text that is not UTF-8, and offsets beyond the data.
                table.validate(full=True)
                yield table
        except StoreError:
            raise  # the storage is out of reach; the file may be whole
        # A damaged file can make the reader raise anything.
        except Exception as error:
            problem = f"it is damaged, or not a Parquet file ({_first_line(error)})"
            raise CorpusError(file, None, problem, "write it again") from None


def _stored_names(table: pa.Table, column: str, file: str) -> list[str] | None:
    try:
        names = class_names(_features(table.schema).get(column))
        if names is not None and not all(isinstance(name, str) for name in names):
            raise ValueError(f"the names are {names}")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        problem = f"the names of its tags cannot be read ({_first_line(error)})"
        raise CorpusError(file, None, problem, "set corpus.tag_names: [O, B-PER, …]") from None
    return names


def _features(schema: pa.Schema) -> Any:
    """Hugging Face's description of the columns, from the metadata of the schema."""
    return json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def guess(head: Head) -> Guess | None:
    """Guess the columns of a Parquet file from the schema and the first rows."""
    if not head.name.endswith(".parquet") and not head.data.startswith(b"PAR1"):
        return None
    unreadable = partial(Guess, source="parquet", confidence=CERTAIN, readable=False)
    try:
        with open_unpacked(head.storage, head.name) as source:
            file = pq.ParquetFile(source)
            batch = next(file.iter_batches(GUESS_ROWS), None)
            language = language_column(file.schema_arrow)
            batches = file.iter_batches(columns=[language]) if language else ()
            languages = {name for rows in batches for name in rows[0].unique().to_pylist() if name}
            features = _features(file.schema_arrow)
    # A damaged file can make the reader raise anything.
    except Exception as error:
        return unreadable(reason=f"damaged, or no Parquet file ({_first_line(error)[:100]})")
    if batch is None:
        return unreadable(reason="a Parquet file without rows")
    return guess_table(pa.Table.from_batches([batch]), "parquet", "Parquet", features, languages)
