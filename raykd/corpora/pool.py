"""All sentences of a source, before selection: words, tags and origins in a temporary file, a few numbers in memory.

Shapes: N sentences in reading order; the row of a sentence is its number in this order, from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import chunk_bounds, open_arrow, split_by_chunk
from raykd.corpora.faults import Faults
from raykd.corpora.hashes import number_distinct, sentence_hashes
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import Stream
from raykd.progress import report_progress
from raykd.storage.layout import PARTS

SCHEMA = pa.schema(
    {
        "tokens": pa.list_(pa.string()),
        "tags": pa.list_(pa.int32()),
        "file": pa.string(),
        "line": pa.int64(),
        "heads": pa.list_(pa.int16()),
        "pos": pa.list_(pa.int32()),
        "text": pa.string(),
        "offsets": pa.list_(pa.int32()),
    }
)
"""Columns of the temporary file.

Tags are numbers in `Pool.tags`, not yet those of a tag set; parts of speech are numbers in `Pool.pos`. Offsets are
start and end of each word, one after the other.
"""
ROWS, WORDS = 4096, 2**16
"""Maximum number of sentences, and approximate number of words, that are Python objects at once."""


@dataclass(frozen=True)
class Columns:
    """The numbers of N sentences for the selection, each [N]."""

    part: np.ndarray
    """Place in PARTS, int8."""
    language: np.ndarray
    """Place in `languages`, int16."""
    sentence: np.ndarray
    """Number of the text, int32: equal for equal words."""
    group: np.ndarray
    """Number of the class, int32; the same for all sentences whose words have tags."""
    languages: tuple[str, ...]

    def of_part(self, part: str) -> np.ndarray:
        """Return the rows of a part, in reading order."""
        return np.flatnonzero(self.part == PARTS.index(part))

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of sentences by part and language."""
        return {
            part: {
                language: int((self.language[rows] == code).sum())
                for code, language in enumerate(self.languages)
            }
            for part in PARTS
            for rows in [self.of_part(part)]
        }


@dataclass(frozen=True)
class Pool:
    """The sentences of a source, with a few numbers in memory and the rest in a file.

    Attributes:
        columns: Numbers for the selection.
        labelled: Sentences with tags, bool [N].
        by_sentence: Sentences with one tag for the whole sentence, bool [N].
        tags: Distinct tags, as the files write them.
        path: The temporary file.
        bounds: First row of each batch of the file, and N.
        trees: Sentences with heads, bool [N].
        pos: Distinct parts of speech.
        raw: True if at least one sentence has raw text.
    """

    columns: Columns
    labelled: np.ndarray
    by_sentence: np.ndarray
    tags: tuple[str, ...]
    path: Path
    bounds: np.ndarray
    trees: np.ndarray
    pos: tuple[str, ...]
    raw: bool = False

    def batches(
        self, rows: np.ndarray, columns: Sequence[str]
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """Yield columns of some rows, in batches.

        Args:
            rows: Rows in the order of the result.
            columns: Names of columns in `SCHEMA`.

        Yields:
            The rows of a batch, and the batch.
        """
        with pa.OSFile(str(self.path)) as file:
            reader, place, current, batch = open_arrow(file, columns), 0, -1, None
            for number, local in split_by_chunk(rows, self.bounds):
                if number != current:
                    current, batch = number, reader.get_batch(number)
                assert batch is not None
                whole = len(local) == len(batch) and bool(np.all(np.diff(local) == 1))
                yield rows[place : place + len(local)], batch if whole else batch.take(pa.array(local))
                place += len(local)

    def sentence(self, row: int) -> Sentence:
        """Return one sentence as read from the source."""
        _, batch = next(self.batches(np.array([row]), SCHEMA.names))
        tokens, tags, file, line, heads, pos, text, offsets = (column[0].as_py() for column in batch.columns)
        return Sentence(
            tokens,
            None if tags is None else [self.tags[tag] for tag in tags],
            self.columns.languages[self.columns.language[row]],
            None if file is None else (file, line),
            "sentence" if self.by_sentence[row] else "word",
            heads,
            None if pos is None else [self.pos[number] for number in pos],
            text,
            None if offsets is None else list(zip(offsets[::2], offsets[1::2], strict=True)),
        )

    def origin(self, row: int) -> tuple[str, int | None]:
        """Return the file and the first line of a sentence; without a file, a description of the sentence and None."""
        sentence = self.sentence(row)
        return sentence.origin or (f"a sentence of {sentence.language}", None)


class _Numbering:
    """Numbers for values, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict = {}

    def number(self, values: Iterable) -> list[int]:
        numbers = self._numbers
        return [numbers.setdefault(value, len(numbers)) for value in values]

    def values(self) -> tuple:
        return tuple(self._numbers)


class _PoolBuilder:
    """Numbers collected while sentences are read; a block of sentences becomes a batch."""

    def __init__(self) -> None:
        self.languages, self.tags, self.groups, self.pos = (
            _Numbering(),
            _Numbering(),
            _Numbering(),
            _Numbering(),
        )
        self.blocks: list[tuple[np.ndarray, ...]] = []
        self.hashes: list[np.ndarray] = []
        self.raw = False

    def add_block(self, parts: list[str], sentences: list[Sentence]) -> pa.RecordBatch:
        labelled = np.array([sentence.tags is not None for sentence in sentences])
        by_sentence = np.array([sentence.unit == "sentence" for sentence in sentences])
        classes = (tuple(s.tags or ()) if s.unit == "sentence" else () for s in sentences)
        self.blocks.append(
            (
                np.array([PARTS.index(part) for part in parts], dtype=np.int8),
                np.array(self.languages.number(s.language for s in sentences), dtype=np.int16),
                np.array(self.groups.number(classes), dtype=np.int32),
                labelled,
                by_sentence,
                np.array([sentence.heads is not None for sentence in sentences]),
            )
        )
        tokens = pa.array([sentence.tokens for sentence in sentences], SCHEMA.field("tokens").type)
        self.hashes.append(sentence_hashes(tokens))
        origins = [sentence.origin or (None, None) for sentence in sentences]
        file = pa.array([file for file, _ in origins], pa.string())
        line = pa.array([line for _, line in origins], pa.int64())
        tags = _numbered(self.tags, [sentence.tags for sentence in sentences])
        heads = pa.array([sentence.heads for sentence in sentences], SCHEMA.field("heads").type)
        pos = _numbered(self.pos, [sentence.pos for sentence in sentences])
        text = pa.array([sentence.text for sentence in sentences], pa.string())
        self.raw |= text.null_count < len(text)
        offsets = pa.array(
            [None if s.offsets is None else [*chain.from_iterable(s.offsets)] for s in sentences],
            SCHEMA.field("offsets").type,
        )
        return pa.record_batch([tokens, tags, file, line, heads, pos, text, offsets], schema=SCHEMA)

    def build(self, path: Path) -> Pool:
        part, language, group, labelled, by_sentence, trees = (
            np.concatenate(blocks) if blocks else np.zeros(0, np.int32)
            for blocks in ([block[place] for block in self.blocks] for place in range(6))
        )
        bounds = chunk_bounds(map(len, self.hashes))
        hashes = np.concatenate([np.zeros((0, 2), "<u8"), *self.hashes])
        # Hashes are the largest array: free them before the columns are built.
        self.hashes.clear()
        sentence = number_distinct(hashes)
        columns = Columns(part, language, sentence, group, self.languages.values())
        return Pool(
            columns, labelled.astype(bool), by_sentence.astype(bool), self.tags.values(), path, bounds,
            trees.astype(bool), self.pos.values(), self.raw,
        )  # fmt: skip


def _numbered(numbering: _Numbering, rows: Sequence[Sequence[str] | None]) -> pa.Array:
    """Rows as numbers of the values; None stays null."""
    values = np.array(numbering.number(value for row in rows for value in row or ()), dtype=np.int32)
    bounds = chunk_bounds(len(row or ()) for row in rows).astype(np.int32)
    missing = np.array([row is None for row in rows], dtype=bool)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values), mask=pa.array(missing))


def read_pool(stream: Stream, folder: Path, faults: Faults | None = None) -> Pool:
    """Read the sentences of a stream; those without words are dropped.

    Args:
        stream: Sentences by part.
        folder: Folder for the temporary file, which the pool reads from later.
        faults: Collector of faults; by default any fault is an error.

    Raises:
        CorpusError: Sentences have faults that may not be skipped.
    """
    builder, path, count = _PoolBuilder(), folder / "read.arrow", 0
    with pa.ipc.new_file(str(path), SCHEMA) as writer:
        for parts, sentences in _blocks((faults or Faults()).sentences(stream)):
            writer.write_batch(builder.add_block(parts, sentences))
            count += len(sentences)
            report_progress(None, f"{count:,} sentences read")
    return builder.build(path)


def _blocks(stream: Iterable[tuple[str, Sentence]]) -> Iterator[tuple[list[str], list[Sentence]]]:
    parts: list[str] = []
    sentences: list[Sentence] = []
    words = 0
    for part, sentence in stream:
        if not sentence.tokens:
            continue
        parts.append(part)
        sentences.append(sentence)
        words += len(sentence.tokens)
        if len(sentences) == ROWS or words > WORDS:
            yield parts, sentences
            parts, sentences, words = [], [], 0
    if sentences:
        yield parts, sentences
