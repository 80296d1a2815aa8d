"""Finding the files of a corpus by pattern and reading them as lines."""

from __future__ import annotations

import codecs
import fnmatch
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import chain
from typing import BinaryIO

from raykd.corpora.faults import Faults
from raykd.corpora.sentence import Faulty
from raykd.corpora.source import FilesConfig
from raykd.errors import CorpusError, StoreError
from raykd.spec.messages import nearest
from raykd.storage.layout import PARTS
from raykd.storage.store import Storage
from raykd.storage.streams import BLOCK

WILD = "*?["
BROKEN = (
    ("\r", "a carriage return is inside the line", "end lines with LF or CR LF, not with CR alone"),
    ("\0", "a zero byte is inside the line", "restore the file: a part of it is lost, or it is not text"),
)
"""Signs that are in no line of a text, with the message for each."""
_BROKEN = re.compile("[\r\0\ud800-\udfff]").search
_SURROGATES = re.compile("[\ud800-\udfff]").findall

ENCODING_HINT = "set corpus.encoding, for example latin-1"


class BrokenLine(str):
    """A line that is not text, with why and what helps."""

    problem: str
    hint: str

    @classmethod
    def of(cls, line: str, problem: str, hint: str) -> BrokenLine:
        broken = cls(line)
        broken.problem, broken.hint = problem, hint
        return broken


def files_of(config: FilesConfig) -> list[tuple[str, str, str]]:
    """(part, language, name below the root) of every file.

    Raises:
        CorpusError: patterns find none; some of them are named together.
    """
    storage, faults = Storage(config.root), Faults()
    found: list[tuple[str, str, str]] = []
    for part in PARTS:
        for language in config.languages:
            pattern = config.named_parts(language).get(part)
            try:
                names = find(storage, pattern) if pattern is not None else ()
            except CorpusError as error:
                faults.note(part, Faulty(language, (error,), whole_file=True))
            else:
                found += [(part, language, name) for name in names]
    faults.refuse()
    return found


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
    near = nearest(pattern, present, most=3, cutoff=0.5) or present[:3]
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
    """The lines of a text file, as `decoded_lines` gives them.

    Raises:
        CorpusError: the file is empty, or its bytes cannot be cut into lines.
    """
    file, blank = place(storage, name), list[str]()
    with opened(storage, name) as source:
        lines = decoded_lines(source, file, encoding)
        for line in lines:
            blank.append(line)
            if line.strip():
                yield from blank
                yield from lines
                return
    raise CorpusError(file, None, "the file is empty", "fill it, or remove its part")


def decoded_lines(
    source: BinaryIO | BufferedIOBase, file: str, encoding: str, hint: str = ENCODING_HINT
) -> Iterator[str]:
    """The lines of a stream of bytes, with Unix or Windows line ends, with or without a byte-order mark.

    Only line feeds end a line: Unicode has other separators, and they occur inside words of real corpora.

    A line with bytes that are not text of `encoding` (`hint`: what to do then), a carriage return or a zero byte is a
    `BrokenLine`.

    Raises:
        CorpusError: its bytes cannot be cut into lines.
    """
    return chain.from_iterable(_blocks(source, file, encoding, hint))


def _blocks(source: BinaryIO | BufferedIOBase, file: str, encoding: str, hint: str) -> Iterator[list[str]]:
    number = 1
    codec = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    # A pipe gives what it has, not as much as is asked for.
    read = getattr(source, "read1", source.read)
    texts = codecs.iterdecode(iter(lambda: read(BLOCK), b""), codec, errors="surrogateescape")
    try:
        for lines, ended in _lines(texts):
            number += len(lines)
            if _BROKEN("".join(lines)):
                lines = [line.removesuffix("\r") for line in lines] if ended else lines
                lines = [_checked(line, encoding, hint) for line in lines]
            yield lines
    except LookupError:
        problem = f"there is no text encoding {encoding!r}"
        hint = "set corpus.encoding, for example utf-8 or latin-1"
        raise CorpusError(file, None, problem, hint) from None
    except UnicodeDecodeError as error:
        line = number + error.object.count(b"\n", 0, error.start)
        problem = f"byte 0x{error.object[error.start]:02x} is not {encoding}"
        raise CorpusError(file, line, problem, hint) from None


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


def _checked(line: str, encoding: str, hint: str) -> str:
    for sign, problem, otherwise in BROKEN:
        if sign in line:
            return BrokenLine.of(line, problem, otherwise)
    if lost := lost_bytes(line):
        return BrokenLine.of(line, f"byte 0x{lost[0]:02x} is not {encoding}", hint)
    return line


def lost_bytes(line: str) -> bytes:
    """The bytes of a line that are no text, as `surrogateescape` keeps them."""
    return bytes(ord(sign) & 0xFF for sign in _SURROGATES(line))
