"""Finding the files of a corpus by pattern and reading them as lines."""

from __future__ import annotations

import codecs
import difflib
import fnmatch
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase

from raykd.corpora.sentence import PARTS, Sentence
from raykd.corpora.source import FilesConfig, Stream, TextConfig, for_language
from raykd.errors import CorpusError, StoreError
from raykd.storage import Storage
from raykd.streams import BLOCK

WILD = "*?["
BROKEN = (
    ("\r", "a carriage return is inside the line", "end lines with LF or CR LF, not with CR alone"),
    ("\0", "a zero byte is inside the line", "restore the file: a part of it is lost, or it is not text"),
)
"""Signs that are in no line of a text, with the message for each."""


def files_of(config: FilesConfig) -> Iterator[tuple[str, str, str]]:
    """(part, language, name below the root) of every file; CorpusError where a pattern finds none."""
    storage = Storage(config.root)
    for part in PARTS:
        for language in config.languages:
            pattern = config.named_parts(language).get(part)
            for name in find(storage, pattern) if pattern is not None else ():
                yield part, language, name


def find(storage: Storage, pattern: str) -> list[str]:
    """The names below `storage` that `pattern` matches, in order; a pattern without `*`, `?` or `[` is a name.

    Raises:
        CorpusError: there is none; the hint gives the nearest names.
    """
    wild = any(sign in pattern for sign in WILD)
    if not wild and storage.exists(pattern):
        return [pattern]
    present = _below(storage, pattern)
    found = [name for name in present if fnmatch.fnmatchcase(name, pattern)] if wild else []
    if found:
        return found
    near = difflib.get_close_matches(pattern, present, n=3, cutoff=0.5) or present[:3]
    hint = f"nearest files: {', '.join(near)}" if near else f"{storage.address} has no files: set corpus.root"
    raise CorpusError(place(storage, pattern), None, "no file matches" if wild else "no such file", hint)


def place(storage: Storage, name: str) -> str:
    """A file's whole address, as error messages give it."""
    return f"{storage.address.rstrip('/')}/{name}"


def _below(storage: Storage, pattern: str) -> list[str]:
    folders = pattern.split("/")[:-1]
    fixed = 0
    while fixed < len(folders) and not any(sign in folders[fixed] for sign in WILD):
        fixed += 1
    prefix = "".join(folder + "/" for folder in folders[:fixed])
    try:
        return storage.names(prefix) or storage.names()
    except (OSError, StoreError):
        return []


@contextmanager
def opened(storage: Storage, name: str) -> Iterator[BufferedIOBase]:
    """A file's bytes as a stream, unpacked when its name ends in .gz; CorpusError, also later, when it cannot be
    read."""
    try:
        with storage.open(name) as file:
            yield gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file
    except (OSError, EOFError, zlib.error, StoreError) as error:
        raise CorpusError(
            place(storage, name), None, f"cannot be read ({error})", "correct the file"
        ) from None


def read_lines(storage: Storage, name: str, encoding: str) -> Iterator[str]:
    """The lines of a text file, with Unix or Windows line ends, with or without a byte-order mark.

    Only line feeds end a line: Unicode has other separators, and they occur inside words of real corpora.

    Raises:
        CorpusError: the file is empty, the bytes are not text of `encoding`, or a line holds a carriage return or a
            zero byte; the error names the line.
    """
    file, number = place(storage, name), 0
    with opened(storage, name) as source:
        for lines, ended in _lines(_texts(source, file, encoding)):
            together = "".join(lines)
            if any(sign in together for sign, _, _ in BROKEN):
                lines = [line.removesuffix("\r") for line in lines] if ended else lines
                _refuse_broken(lines, file, number)
            yield from lines
            number += len(lines)


def _refuse_broken(lines: list[str], file: str, before: int) -> None:
    for number, line in enumerate(lines, start=before + 1):
        for sign, problem, hint in BROKEN:
            if sign in line:
                raise CorpusError(file, number, problem, hint)


def _texts(source: BufferedIOBase, file: str, encoding: str) -> Iterator[str]:
    """The text of a file, block by block; CorpusError where there is nothing but white space."""
    decoder, lines, empty = _decoder(encoding, file), 0, True
    blank: list[str] = []
    while block := source.read(BLOCK):
        blank.append(_decoded(decoder, block, lines, file, encoding))
        lines += block.count(b"\n")
        if block.strip():
            yield "".join(blank)
            blank, empty = [], False
    if empty:
        raise CorpusError(file, None, "the file is empty", "fill it, or remove its part")
    yield "".join([*blank, _decoded(decoder, b"", lines, file, encoding)])


def _decoder(encoding: str, file: str) -> codecs.IncrementalDecoder:
    try:
        return codecs.getincrementaldecoder(
            "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        )()
    except LookupError:
        problem = f"there is no text encoding {encoding!r}"
        hint = "set corpus.encoding, for example utf-8 or latin-1"
        raise CorpusError(file, None, problem, hint) from None


def _decoded(decoder: codecs.IncrementalDecoder, block: bytes, lines: int, file: str, encoding: str) -> str:
    """The text of a block (the last one is empty), before which `lines` lines have ended."""
    try:
        return decoder.decode(block, not block)
    except UnicodeDecodeError as error:
        # What a block before this one left undecided was decoded again, and its lines were counted before.
        left = error.object[: max(len(error.object) - len(block), 0)]
        line = lines - left.count(b"\n") + error.object.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{error.object[error.start]:02x} is not {encoding}"
        raise CorpusError(file, line, problem, "set corpus.encoding, for example latin-1") from None


def _lines(texts: Iterable[str]) -> Iterator[tuple[list[str], bool]]:
    """The lines of a text that comes in pieces, some at a time, without their line feeds; and whether they had one:
    a file's last line may have none."""
    rest: list[str] = []
    for text in texts:
        lines = text.split("\n")
        rest.append(lines[0])
        if len(lines) > 1:
            lines[0] = "".join(rest)
            rest = [lines.pop()]
            yield lines, True
    if last := "".join(rest):
        yield [last], False


def read_text_files(config: TextConfig, parse: Callable[..., Iterator[Sentence]]) -> Stream:
    """Every file of `config` through `parse(config, lines, file, language, labelled)`, one after the other."""
    storage = Storage(config.root)
    for part, language, name in files_of(config):
        lines = read_lines(storage, name, for_language(config.encoding, language) or "utf-8")
        file = place(storage, name)
        sentences = parse(
            config, lines, file=file, language=language, labelled=config.reads_tags(part, language)
        )
        empty = True
        for sentence in sentences:
            empty = False
            yield part, sentence
        if empty:
            raise CorpusError(file, None, "the file has no sentence", "fill it, or remove its part")
