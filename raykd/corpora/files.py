"""Finding the files of a corpus by pattern and reading them as lines."""

from __future__ import annotations

import difflib
import fnmatch
import gzip
import zlib
from collections.abc import Callable, Iterator

from raykd.corpora.sentence import PARTS, Sentence
from raykd.corpora.source import FilesConfig, Parts, TextConfig, for_language
from raykd.errors import CorpusError, StoreError
from raykd.storage import Storage

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


def read_bytes(storage: Storage, name: str) -> bytes:
    """A file's bytes, unpacked when its name ends in .gz; CorpusError when it cannot be read or is empty."""
    try:
        data = storage.read(name)
        data = gzip.decompress(data) if name.endswith(".gz") else data
    except (OSError, EOFError, zlib.error, StoreError) as error:
        raise CorpusError(
            place(storage, name), None, f"cannot be read ({error})", "correct the file"
        ) from None
    if not data.strip():
        raise CorpusError(place(storage, name), None, "the file is empty", "fill it, or remove its part")
    return data


def read_lines(storage: Storage, name: str, encoding: str) -> list[str]:
    """The lines of a text file, with Unix or Windows line ends, with or without a byte-order mark.

    Only line feeds end a line: Unicode has other separators, and they occur inside words of real corpora.

    Raises:
        CorpusError: the bytes are not text of `encoding`, or a line holds a carriage return or a zero byte; the error
            names the line.
    """
    data = read_bytes(storage, name)
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not {encoding}"
        raise CorpusError(
            place(storage, name), line, problem, "set corpus.encoding, for example latin-1"
        ) from None
    except LookupError:
        problem = f"there is no text encoding {encoding!r}"
        raise CorpusError(
            place(storage, name), None, problem, "set corpus.encoding, for example utf-8 or latin-1"
        ) from None
    lines = text.replace("\r\n", "\n").split("\n")
    for sign, problem, hint in BROKEN:
        if sign in text:
            for number, line in enumerate(lines, start=1):
                if sign in line:
                    raise CorpusError(place(storage, name), number, problem, hint)
    return lines[:-1] if not lines[-1] else lines


def read_text_files(config: TextConfig, parse: Callable[..., list[Sentence]]) -> Parts:
    """Every file of `config` through `parse(config, lines, file, language, labelled)`, joined by part."""
    storage, parts = Storage(config.root), Parts()
    for part, language, name in files_of(config):
        lines = read_lines(storage, name, for_language(config.encoding, language) or "utf-8")
        file = place(storage, name)
        labelled = config.reads_tags(part, language)
        sentences = parse(config, lines, file=file, language=language, labelled=labelled)
        if not sentences:
            raise CorpusError(file, None, "the file has no sentence", "fill it, or remove its part")
        parts.setdefault(part, []).extend(sentences)
    return parts
