"""Sentences for teachers, stored under the hash of their content.

Tags, languages and file formats are no part of a text: a teacher sees tokens only. So the same sentences from any
source are one text, and sweeps that share a language share the teacher's signals. Sentences are found by 128-bit
hashes, which are stored beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from raykd.corpora.chunks import Chunks, read_batches, to_mapped_table, write_batches
from raykd.corpora.chunks import map_table as map_file
from raykd.corpora.hashes import BLOCK, HashLookup, first_occurrences, number_distinct, sentence_hashes
from raykd.errors import MissingError, StoreError
from raykd.identity import identity
from raykd.storage.layout import HASHES, TEXT
from raykd.storage.store import Storage
from raykd.transfer.names import FORMAT

_TYPE = pa.large_list(pa.large_string())
_TYPES = (_TYPE, pa.list_(pa.string()))
_SCHEMA = pa.schema({"tokens": _TYPE})


@dataclass(frozen=True)
class Text:
    """Sentences as lists of tokens, in the order of their rows.

    Attributes:
        id: hash of their content.
        tokens: column of token lists.
        lengths: tokens of each sentence [N].
        folder: folder in the store; None for a text that is not stored.
    """

    id: str
    tokens: pa.ChunkedArray
    lengths: np.ndarray
    folder: Storage | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def from_tokens(tokens: pa.ChunkedArray | pa.Array | Sequence[Sequence[str]]) -> Text:
        """Return the text of a `tokens` column or of token lists.

        Args:
            tokens: the column or lists.

        Raises:
            ValueError: a sentence is null or empty.
        """
        column = pa.array(tokens, _TYPE) if isinstance(tokens, Sequence) else tokens
        column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        column = column if column.type in _TYPES else column.cast(_TYPE)
        text_id, lengths = _id_and_lengths(column.chunks)
        return Text(text_id, column, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def hashes(self) -> np.ndarray:
        """Hashes of the sentences, uint64 [N, 2]; mapped for a stored text.

        Raises:
            StoreError: the stored hashes are damaged.
        """
        if self.folder is None:
            return sentence_hashes(self.tokens)
        try:
            hashes = read_hashes(self.folder)
        except MissingError:
            return sentence_hashes(self.tokens)
        if len(hashes) != len(self):
            problem = f"it has {len(hashes):,} sentences, the text {len(self):,}"
            raise _damaged(f"{self.folder.address}/{HASHES}", problem)
        return hashes

    @cached_property
    def _lookup(self) -> HashLookup:
        return HashLookup(self.hashes)

    @cached_property
    def _chunks(self) -> Chunks:
        return Chunks(self.tokens)

    @staticmethod
    def union(texts: Sequence[Text]) -> Text:
        """Return all sentences of several texts, each once.

        The longest text comes first, unchanged, followed by sentences that only the others have.

        Args:
            texts: the texts.
        """
        largest = max(texts, key=len)
        smaller = [text for text in texts if text.id != largest.id]
        missing = _missing(largest, smaller)
        if not any(map(len, missing)):
            return largest
        token_type = largest.tokens.type
        added = to_mapped_table(pa.schema({"tokens": token_type}), _batches(smaller, missing, token_type))[
            "tokens"
        ]
        return Text.from_tokens(pa.chunked_array([*largest.tokens.chunks, *added.chunks], token_type))

    def rows(self, hashes: np.ndarray) -> np.ndarray:
        """Return a row for each hash, -1 where there is none: int64 [N].

        Args:
            hashes: hashes of sentences, uint64 [N, 2].
        """
        return self._lookup.rows(hashes)

    @cached_property
    def first_rows(self) -> np.ndarray:
        """Rows without repeated sentences: the first of equal ones, ascending, int64."""
        return first_occurrences(number_distinct(self.hashes))

    def subset(self, rows: np.ndarray) -> Text:
        """Return the text of some rows."""
        token_type = self.tokens.type
        return Text.from_tokens(
            to_mapped_table(pa.schema({"tokens": token_type}), _batches([self], [rows], token_type))["tokens"]
        )

    def sentences(self, rows: np.ndarray) -> list[list[str]]:
        """Return the token lists of `rows`, in that order."""
        return self._chunks.take(np.asarray(rows)).to_pylist()


def _missing(largest: Text, smaller: Sequence[Text]) -> list[np.ndarray]:
    """Return for smaller texts the rows with sentences that neither `largest` nor an earlier row has."""
    if not smaller:
        return []
    hashes = np.concatenate([text.hashes for text in smaller])
    rows = np.flatnonzero(largest._lookup.rows(hashes) < 0)
    rows = rows[first_occurrences(number_distinct(hashes[rows]))]
    bounds = np.cumsum([0, *map(len, smaller)])
    return [rows[(rows >= first) & (rows < last)] - first for first, last in pairwise(bounds)]


def _batches(
    texts: Sequence[Text], rows: Sequence[np.ndarray], token_type: pa.DataType
) -> Iterator[pa.RecordBatch]:
    for text, text_rows in zip(texts, rows, strict=True):
        for first in range(0, len(text_rows), BLOCK):
            tokens = text._chunks.take(text_rows[first : first + BLOCK])
            yield pa.record_batch({"tokens": tokens.cast(token_type)})


def write_text(store: Storage, text: Text) -> None:
    """Write a text with hashes into the store, unless it is there.

    Args:
        store: the store.
        text: the text.
    """
    folder = store.child("transfer", text.id)
    if not folder.exists(HASHES):
        hashes = np.ascontiguousarray(text.hashes, "<u8").data.cast("B")
        with folder.writer(HASHES) as sink:
            sink.write(hashlib.sha256(hashes).digest())
            sink.write(hashes)
    if not folder.exists(TEXT):
        batches = (pa.record_batch({"tokens": chunk.cast(_TYPE)}) for chunk in text.tokens.chunks)
        with folder.writer(TEXT) as sink:
            write_batches(sink, _SCHEMA, batches)


def open_text(store: Storage, text_id: str) -> Text:
    """Map a stored text into memory.

    Args:
        store: the store.
        text_id: identity of the text.

    Raises:
        StoreError: it is missing or does not match its identity.
    """
    folder = store.child("transfer", text_id)
    name = f"{folder.address}/{TEXT}"
    try:
        content_id, lengths, tokens = folder.read_local(TEXT, _read)
    except MissingError as error:
        raise StoreError(name, "the text is not in the store", "run raykd precompute again") from error
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise _damaged(name, f"cannot be read ({error})") from error
    if content_id != text_id:
        raise _damaged(name, "its content does not match its checksum")
    return Text(content_id, tokens, lengths, folder)


def _read(path: Path) -> tuple[str, np.ndarray, pa.ChunkedArray]:
    # Hashed from batches, not from the mapped file: pages that are only hashed would stay in memory.
    content_id, lengths = _id_and_lengths(batch["tokens"] for batch in read_batches(path))
    return content_id, lengths, map_file(path)["tokens"]


def read_hashes(folder: Storage) -> np.ndarray:
    """Map the stored hashes of a text.

    Args:
        folder: folder of the text.

    Returns:
        A hash for each sentence, uint64 [N, 2].

    Raises:
        StoreError: the hashes are damaged.
    """
    name = f"{folder.address}/{HASHES}"
    try:
        content = folder.read_local(HASHES, lambda path: np.memmap(path, np.uint8, "r"))
        hashes = content[32:].view("<u8").reshape(-1, 2)
    except (OSError, ValueError) as error:
        raise _damaged(name, f"cannot be read ({error})") from error
    if hashlib.sha256(content[32:].data).digest() != content[:32].tobytes():
        raise _damaged(name, "its content does not match its checksum")
    return hashes


def _damaged(name: str, problem: str) -> StoreError:
    return StoreError(name, f"the text is damaged: {problem}", "remove it and run raykd precompute again")


def _id_and_lengths(chunks: Iterable[pa.Array]) -> tuple[str, np.ndarray]:
    """Return the identity of the sentences in `chunks`, and their lengths in tokens [N]."""
    lengths, parts = [np.zeros(0, np.int64)], [hashlib.sha256() for _ in range(3)]
    for chunk in chunks:
        # A null list has no length; as an empty one it is refused with the others.
        chunk_lengths = chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if np.any(chunk_lengths < 1):
            raise ValueError("a sentence of a text must have at least one token")
        lengths.append(chunk_lengths)
        for part, values in zip(parts, (chunk_lengths, *_spellings(chunk.flatten())), strict=True):
            part.update(np.ascontiguousarray(values).data)
    all_lengths = np.concatenate(lengths)
    # Lengths are hashed with the bytes: ["ab"] and ["a", "b"] are different texts.
    content = hashlib.sha256(b"".join(part.digest() for part in parts))
    content_fields = {"format": FORMAT, "sentences": len(all_lengths), "sha256": content.hexdigest()}
    return identity("text", content_fields), all_lengths


def _spellings(words: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the byte lengths of the tokens, int64, and the bytes of all tokens."""
    if words.null_count:
        raise ValueError("a token of a text must not be null")
    if not len(words):
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    _, ends, data = words.buffers()
    kind = np.int64 if pa.types.is_large_string(words.type) else np.int32
    offsets = np.frombuffer(ends, kind)[words.offset : words.offset + len(words) + 1].astype(np.int64)
    return np.diff(offsets), np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
