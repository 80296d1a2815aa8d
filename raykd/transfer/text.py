"""The sentences that a teacher reads, in the store under the hash of their content.

Tags, languages and file formats are no part of it: a teacher sees tokens only. So the same sentences from any source
are one text, and sweeps that share a language share what its teacher gave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raykd.errors import StoreError
from raykd.identity import identity
from raykd.storage import Storage
from raykd.transfer.names import FORMAT

_FILE = "text.arrow"
_TYPE = pa.large_list(pa.large_string())


@dataclass(frozen=True)
class Text:
    """Sentences as lists of tokens, in the order of their rows; `id` is the hash of their content."""

    id: str
    tokens: pa.LargeListArray
    lengths: np.ndarray

    @staticmethod
    def of(tokens: pa.ChunkedArray | pa.Array | Sequence[Sequence[str]]) -> Text:
        """A text from a `tokens` column or token lists. Raises ValueError for a null or empty sentence."""
        column = pa.array(tokens, _TYPE) if isinstance(tokens, Sequence) else tokens
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        column = column.cast(_TYPE)
        # A null list has no length; as an empty one it is refused with the others.
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if np.any(lengths < 1):
            raise ValueError("every sentence of a text needs at least one token")
        return Text(_text_id(column, lengths), column, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @staticmethod
    def union(texts: Sequence[Text]) -> Text:
        """All sentences of `texts`, each once: the longest text as it is, then what only the others have."""
        largest = max(texts, key=len)
        others = [text for text in texts if text.id != largest.id]
        known, more = set(largest.spelled()), dict[str, list[str]]()
        for text in others:
            missing = [row for row, sentence in enumerate(text.spelled()) if sentence not in known]
            more |= {"\0".join(tokens): tokens for tokens in text.sentences(np.array(missing, np.int64))}
        if not more:
            return largest
        return Text.of(pa.chunked_array([largest.tokens, pa.array(list(more.values()), _TYPE)]))

    def rows_of(self, other: Text) -> np.ndarray:
        """For each sentence of `other`, a row of this text that holds it [N].

        Raises ValueError where a sentence is missing.
        """
        places = {sentence: row for row, sentence in enumerate(self.spelled())}
        try:
            return np.fromiter((places[sentence] for sentence in other.spelled()), np.int64, len(other))
        except KeyError as error:
            raise ValueError(f"the text lacks a sentence: {error.args[0][:60]!r}") from None

    def find(self, tokens: pa.ChunkedArray | pa.Array | Sequence[Sequence[str]]) -> np.ndarray:
        """For each sentence a row of this text that holds it, -1 where there is none [N]."""
        places = {sentence: row for row, sentence in enumerate(self.spelled())}
        rows = tokens if isinstance(tokens, Sequence) else tokens.to_pylist()
        return np.fromiter((places.get("\0".join(words), -1) for words in rows), np.int64, len(rows))

    def only(self, rows: np.ndarray) -> Text:
        """The text of these rows alone."""
        return Text.of(self.tokens.take(pa.array(rows)))

    def spelled(self) -> list[str]:
        """Each sentence as one string, its tokens apart by a NUL."""
        return pc.call_function("binary_join", [self.tokens, pa.scalar("\0", pa.large_string())]).to_pylist()

    def sentences(self, rows: np.ndarray) -> list[list[str]]:
        """The token lists of `rows`, in that order."""
        return self.tokens.take(pa.array(rows)).to_pylist()


def write_text(store: Storage, text: Text) -> None:
    """Put `text` into the store, unless it is there."""
    folder = store.child("transfer", text.id)
    if folder.exists(_FILE):
        return
    table = pa.table({"tokens": text.tokens})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    folder.write(_FILE, sink.getvalue().to_pybytes())


def open_text(store: Storage, text_id: str) -> Text:
    """Map a stored text into memory. Raises StoreError when it is missing or does not match its id."""
    folder = store.child("transfer", text_id)
    name = f"{folder.address}/{_FILE}"
    if not folder.exists(_FILE):
        raise StoreError(name, "the text is not in the store", "run raykd precompute again")
    try:
        with pa.memory_map(str(folder.local_path(_FILE))) as source:
            text = Text.of(pa.ipc.open_file(source).read_all()["tokens"])
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise _damaged(name, f"cannot be read ({error})") from error
    if text.id != text_id:
        raise _damaged(name, "its content does not match its checksum")
    return text


def _damaged(name: str, problem: str) -> StoreError:
    return StoreError(name, f"the text is damaged: {problem}", "remove it and run raykd precompute again")


def _text_id(column: pa.LargeListArray, lengths: np.ndarray) -> str:
    words = column.flatten()
    if words.null_count:
        raise ValueError("a token of a text must not be null")
    # Lengths are hashed with the bytes: ["ab"] and ["a", "b"] are different texts.
    content = hashlib.sha256()
    for part in (lengths, *_spellings(words)):
        content.update(hashlib.sha256(part.tobytes()).digest())
    return identity("text", {"format": FORMAT, "sentences": len(lengths), "sha256": content.hexdigest()})


def _spellings(words: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
    """The byte length of every token, and the bytes of all."""
    if not len(words):
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    _, ends, data = words.buffers()
    offsets = np.frombuffer(ends, np.int64)[words.offset : words.offset + len(words) + 1]
    return np.diff(offsets), np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
