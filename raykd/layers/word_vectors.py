"""Word vectors from a text file (`.vec`, also `.gz`), as fastText and word2vec write them.

A line is a word and its components, separated by spaces; a first line with the numbers of words and components is
optional. A word missing from the file has the vector of its lower-case form, or else zeros.

Shapes: B batch, T time (words), D size, W words of the file.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import numpy as np
import pyarrow as pa
from pyarrow import csv
from pydantic import Field

from raykd.corpora.vocabulary import WordVocabulary
from raykd.errors import StoreError
from raykd.identity import PlainObject, identity
from raykd.layers.checkpoint import require_checksum
from raykd.spec import Frozen
from raykd.storage.digests import path_sha256
from raykd.storage.store import Storage

if TYPE_CHECKING:
    from jaxtyping import Float32, Int
    from torch import Tensor, nn

    from raykd.corpora.encoded_text import TokenBatch

LANGUAGE = "{lang}"
WORD = "word"
FIRST_ID = 2
"""Id of the first word of a file in its vocabulary: padding and the unknown word come before."""
_HINT = "write on each line a word and its components, separated by spaces, the same number on every line"


class WordVectorsConfig(Frozen):
    """Word vectors from a text file, not trained."""

    vectors: Annotated[str, Field(min_length=1)]
    """The file (`.vec`, `.txt`, also `.gz`) or its URI; with `{lang}` for the language, where there is one model for
    each."""
    checksum: str | None = None
    """Checksum of the file (raykd sets it); a file that changed is refused."""

    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        """Check the first lines of the files; a URI is not checked, since its file would have to be copied.

        Args:
            languages: languages that `{lang}` stands for.

        Raises:
            StoreError: a file is missing, or does not begin with a word and its components.
        """
        files = dict.fromkeys(self.vectors.replace(LANGUAGE, language) for language in languages)
        for file in (name for name in files if "://" not in name):
            with _as_store_error(file, "cannot be read"), _open_stream(Path(file)) as stream:
                _components(file, stream.readline().split())

    def pinned(self, language: str | None = None) -> WordVectorsConfig:
        """Return the configuration with file and checksum of a language.

        Args:
            language: the model's language; None for a model of several.

        Raises:
            StoreError: there is no such file, or a model of several languages has a file for each.
        """
        if LANGUAGE in self.vectors and language is None:
            hint = "set scope: language, or give one file for all"
            raise StoreError(
                self.vectors, "is one file for each language, but the model is for several", hint
            )
        file = self.vectors.replace(LANGUAGE, language or "")
        # Ray's workers have other working directories.
        file = file if "://" in file else str(Path(file).absolute())
        return self.model_copy(update={"vectors": file, "checksum": _checksum(file)})

    def vocabulary(self) -> WordVocabulary:
        """Return the words of the file."""
        return WordVocabulary(_words(self.vectors, self._checked()), lower_case=True)

    def build(self) -> WordVectors:
        """Return the vectors; the file is read at the first look-up.

        Raises:
            StoreError: there is no such file, it changed, or it is not a file of word vectors.
        """
        return WordVectors(self.vectors, self._checked())

    def shape(self) -> PlainObject:
        """Return the settings that latency depends on."""
        return self.model_dump(mode="json", exclude={"vectors"} if self.checksum else set())

    @property
    def id(self) -> str:
        """Identity of the vectors."""
        return identity("vectors", self.shape())

    @property
    def title(self) -> str:
        """Name in messages."""
        return self.vectors.rpartition("/")[2]

    def _checked(self) -> str:
        return require_checksum(self.vectors, _checksum(self.vectors), self.checksum)


class WordVectors:
    """The vectors of the words of a file, with the precision of float16."""

    def __init__(self, file: str, checksum: str):
        self._file, self.key = file, checksum
        self._word_count, self.output_size = _sizes(file, checksum)

    def __deepcopy__(self, memo: object) -> WordVectors:
        return self

    def parameters(self) -> Sequence[nn.Parameter]:
        """Return the table without values; padding and unknown words have rows too."""
        return (_parameter_outline(self.key, self._word_count + FIRST_ID, self.output_size),)

    def vectors_of(self, ids: Int[np.ndarray, " row"]) -> Float32[np.ndarray, "row size"]:
        """Return the vectors of known words, by their ids in the file's vocabulary."""
        return _vectors(self._file, self.key)[ids - FIRST_ID]

    def compute(self, batch: TokenBatch) -> Tensor:
        """Return the vectors [B, T, D] of the words.

        Args:
            batch: sentences whose pieces are words.
        """
        import torch

        from raykd.layers.piece_vectors import to_float16

        vectors_WD = _vectors(self._file, self.key)
        row_BT = batch.pieces_BP - FIRST_ID  # negative for padding and unknown words
        vectors_BTD = torch.from_numpy(vectors_WD)[row_BT.clamp_min(0).cpu()]
        return to_float16(vectors_BTD.to(row_BT.device).masked_fill((row_BT < 0)[:, :, None], 0.0))


@lru_cache(maxsize=16)
def _parameter_outline(checksum: str, rows: int, size: int) -> nn.Parameter:
    import torch
    from torch import nn

    return nn.Parameter(torch.empty(rows, size, device="meta"), requires_grad=False)


def _path(file: str) -> Path:
    folder, slash, name = file.rpartition("/")
    try:
        return Storage(folder or slash or ".").local_path(name)
    except (OSError, StoreError) as error:
        hint = "give a file of word vectors"
        raise StoreError(file, f"cannot be read ({error})", hint) from error


def _open_stream(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.name.endswith(".gz") else path.open("rb")


def _checksum(file: str) -> str:
    return path_sha256(_path(file))


@contextmanager
def _as_store_error(file: str, problem: str) -> Iterator[None]:
    """Turn errors of reading into a StoreError with the name of the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise StoreError(file, f"{problem} ({error})", _HINT) from error


# Caches of files have the checksum as a further key, so that a file that changed is read anew.
@lru_cache(maxsize=16)
def _sizes(file: str, checksum: str) -> tuple[int, int]:
    """Return the numbers of words and components from the first line, or by counting lines where it has no numbers."""
    with _as_store_error(file, "cannot be read"), _open_stream(_path(file)) as stream:
        cells = stream.readline().split()
        size = _components(file, cells)
        words = int(cells[0]) if _is_header(cells) else sum(1 for line in stream if line.strip()) + 1
    return words, size


def _components(file: str, cells: Sequence[bytes]) -> int:
    """Return the number of components of a vector, from the cells of the first line."""
    if len(cells) < 2:
        raise StoreError(file, "its first line is not a word with its components", _HINT)
    return int(cells[1]) if _is_header(cells) else len(cells) - 1


def _is_header(cells: Sequence[bytes]) -> bool:
    return len(cells) == 2 and all(cell.isdigit() for cell in cells)


def _words(file: str, checksum: str) -> tuple[str, ...]:
    return tuple(_read(file, checksum, [WORD])[WORD].to_pylist())


@lru_cache(maxsize=1)
def _vectors(file: str, checksum: str) -> Float32[np.ndarray, "word size"]:
    words, size = _sizes(file, checksum)
    names = [f"{place}" for place in range(size)]
    table, vectors_WD = _read(file, checksum, names), np.empty((words, size), np.float32)
    for place, name in enumerate(names):
        vectors_WD[:, place] = table[name].to_numpy()
    return vectors_WD


def _read(file: str, checksum: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of the file: `word`, and the components by number from 0."""
    words, size = _sizes(file, checksum)
    path, names = _path(file), [WORD, *(f"{place}" for place in range(size))]
    with _as_store_error(file, f"is not a table of words with {size} components"):
        with _open_stream(path) as stream:
            first, second = stream.readline(), stream.readline()
        skipped = int(_is_header(first.split()))
        # fastText ends lines with a space, which begins a column without values.
        ends_in_space = (second if skipped else first).rstrip(b"\r\n").endswith(b" ")
        table = csv.read_csv(
            path,
            csv.ReadOptions(skip_rows=skipped, column_names=[*names, "end"] if ends_in_space else names),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(
                column_types={WORD: pa.string(), **dict.fromkeys(names[1:], pa.float32())},
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
    if table.num_rows != words:
        raise StoreError(file, f"has {table.num_rows} words, but its first line says {words}", _HINT)
    return table
