"""All sentences that a source gives, before some of them are selected: words, tags and origins in a temporary file,
a few numbers of each in memory.

N sentences in the order in which they were read; a row is a sentence's place in it.
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
"""Tags are numbers in `Pool.tags`, not yet those of a tag set, parts of speech numbers in `Pool.pos`; offsets are start
and end of each word, one after the other."""
ROWS, WORDS = 4096, 2**16
"""Most sentences, and about how many words, that are held as Python objects at once."""


@dataclass(frozen=True)
class Columns:
    """The numbers of N sentences that selection looks at, each [N]."""

    part: np.ndarray
    """The place in PARTS, int8."""
    language: np.ndarray
    """The place in `languages`, int16."""
    sentence: np.ndarray
    """Equal for equal words, int32."""
    group: np.ndarray
    """Equal for sentences of one class, where a sentence has a class, int32."""
    languages: tuple[str, ...]

    def of_part(self, part: str) -> np.ndarray:
        """The rows of a part, in reading order."""
        return np.flatnonzero(self.part == PARTS.index(part))

    def counts(self) -> dict[str, dict[str, int]]:
        """Part → language → its sentences."""
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
    """Sentences that were read, some numbers of each in memory."""

    columns: Columns
    labelled: np.ndarray
    """Which sentences have tags, bool [N]."""
    by_sentence: np.ndarray
    """Which have one tag for the whole sentence, bool [N]."""
    tags: tuple[str, ...]
    """The distinct tags, as the files write them."""
    path: Path
    bounds: np.ndarray
    """The first row of every batch of the file, and N."""
    trees: np.ndarray
    """Which sentences have heads, bool [N]."""
    pos: tuple[str, ...]
    """The distinct parts of speech."""
    raw: bool = False
    """Whether a sentence has its raw text."""

    def batches(
        self, rows: np.ndarray, columns: Sequence[str]
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """These columns of `rows`, in their order, in batches: (rows of the batch, batch)."""
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
        """One sentence as it was read."""
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
        """The file of a sentence and its first line."""
        sentence = self.sentence(row)
        return sentence.origin or (f"a sentence of {sentence.language}", None)


class _Numbering:
    """Numbers for values in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict = {}

    def number(self, values: Iterable) -> list[int]:
        known = self._numbers
        return [known.setdefault(value, len(known)) for value in values]

    def values(self) -> tuple:
        return tuple(self._numbers)


class _PoolBuilder:
    """What is collected while sentences are read; a block of them becomes a batch."""

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
        # The largest numbers of all: not twice.
        self.hashes.clear()
        sentence = number_distinct(hashes)
        columns = Columns(part, language, sentence, group, self.languages.values())
        return Pool(
            columns, labelled.astype(bool), by_sentence.astype(bool), self.tags.values(), path, bounds,
            trees.astype(bool), self.pos.values(), self.raw,
        )  # fmt: skip


def _numbered(known: _Numbering, rows: Sequence[Sequence[str] | None]) -> pa.Array:
    """Each row as the numbers of its values; None stays null."""
    values = np.array(known.number(value for row in rows for value in row or ()), dtype=np.int32)
    bounds = chunk_bounds(len(row or ()) for row in rows).astype(np.int32)
    missing = np.array([row is None for row in rows], dtype=bool)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values), mask=pa.array(missing))


def read_pool(stream: Stream, folder: Path, faults: Faults | None = None) -> Pool:
    """Read all sentences of `stream` that have words, with a file in `folder` that the pool reads from later.

    Raises:
        CorpusError: there are `faults`, by default any, that may not be skipped.
    """
    reading, path, read = _PoolBuilder(), folder / "read.arrow", 0
    with pa.ipc.new_file(str(path), SCHEMA) as writer:
        for parts, sentences in _blocks((faults or Faults()).sentences(stream)):
            writer.write_batch(reading.add_block(parts, sentences))
            read += len(sentences)
            report_progress(None, f"{read:,} sentences read")
    return reading.build(path)


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
