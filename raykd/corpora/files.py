"""Files of a corpus: found by pattern, unpacked, and read as lines."""

from __future__ import annotations

import codecs
import fnmatch
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from io import BufferedIOBase, BufferedReader
from itertools import chain
from types import MappingProxyType
from typing import BinaryIO

from raykd.corpora.faults import Faults
from raykd.corpora.sentence import Faulty
from raykd.corpora.source import FilesConfig
from raykd.corpora.text_encoding import likely_encoding, same_encoding
from raykd.errors import CorpusError, StoreError
from raykd.spec.messages import nearest_words
from raykd.storage.layout import PARTS
from raykd.storage.store import Storage
from raykd.storage.streams import BLOCK

WILD = "*?["
GZIP = b"\x1f\x8b"
PACKED = MappingProxyType(
    {b"PK\x03\x04": "zip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf\x27\x1c": "7-zip"}
    | {b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)}
)
"""First bytes of packed files that are not read → name of the format."""
BROKEN = (
    ("\r", "a carriage return is inside the line", "end lines with LF or CR LF, not with CR alone"),
    ("\0", "a zero byte is inside the line", "restore the file: a part of it is lost, or it is not text"),
)
"""Character that no line of text has, problem and hint."""
BYTE_ORDER_MARK = "\ufeff"
"""The byte-order mark as a character; it is part of no word."""
HEAD_BYTES = 2**20
"""Number of first bytes that decide the encoding of a file."""
_ODD = re.compile(f"[\r\0{BYTE_ORDER_MARK}\ud800-\udfff]").search
_SURROGATES = re.compile("[\ud800-\udfff]").findall


class BrokenLine(str):
    """A line of broken text, with problem and hint."""

    problem: str
    hint: str

    @classmethod
    def with_reason(cls, line: str, problem: str, hint: str) -> BrokenLine:
        """Return the line with problem and hint.

        Args:
            line: The line.
            problem: Reason why the line is not text.
            hint: Advice in the imperative.
        """
        broken = cls(line)
        broken.problem, broken.hint = problem, hint
        return broken

    def fault(self, file: str, number: int) -> CorpusError:
        """Return the error for the line.

        Args:
            file: Name of the file.
            number: Line number, from 1.
        """
        return CorpusError(file, number, self.problem, self.hint)


def list_files(config: FilesConfig) -> list[tuple[str, str, str]]:
    """Return (part, language, name below the root) of all files of a corpus.

    Args:
        config: Configuration of the source.

    Raises:
        CorpusError: A pattern matches no file; several such patterns are reported together.
    """
    storage, faults = Storage(config.root), Faults()
    files: list[tuple[str, str, str]] = []
    for part in PARTS:
        for language in config.languages:
            pattern = config.named_parts(language).get(part)
            try:
                names = find_files(storage, pattern) if pattern is not None else ()
            except CorpusError as error:
                faults.record(part, Faulty(language, (error,), whole_file=True))
            else:
                files += [(part, language, name) for name in names]
    faults.refuse()
    return files


def find_files(storage: Storage, pattern: str) -> list[str]:
    """Return the matches of a pattern below `storage`, sorted.

    A file whose name is exactly the pattern is the only match, even if the name has `*`, `?` or `[`.

    Args:
        storage: The folder.
        pattern: Pattern below the folder.

    Raises:
        CorpusError: No file matches; the hint has the most similar names.
    """
    wild = any(sign in pattern for sign in WILD)
    # On an object store this saves a request: file names with wildcards are rare there.
    if (storage.is_local or not wild) and storage.exists(pattern):
        return [pattern]
    present = _names_below(storage, pattern)
    matches = [name for name in present if fnmatch.fnmatchcase(name, pattern)] if wild else []
    if matches:
        return matches
    near = nearest_words(pattern, present, limit=3, cutoff=0.5) or present[:3]
    hint = f"use one of {', '.join(near)}" if near else f"set corpus.root: {storage.address} has no files"
    raise CorpusError(
        file_address(storage, pattern), None, "no file matches" if wild else "no such file", hint
    )


def file_address(storage: Storage, name: str) -> str:
    """Return the whole address of a file, for messages.

    Args:
        storage: The folder.
        name: Name below the folder.
    """
    return f"{storage.address.rstrip('/')}/{name}"


def _names_below(storage: Storage, pattern: str) -> list[str]:
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
def open_unpacked(storage: Storage, name: str) -> Iterator[BufferedIOBase]:
    """Open a file as a stream of unpacked bytes; errors as in `unpack`.

    Args:
        storage: The folder.
        name: Name below the folder.
    """
    with (
        _read_errors(file_address(storage, name)),
        storage.open(name) as file,
        unpack(file, file_address(storage, name)) as source,
    ):
        yield source


@contextmanager
def unpack(file: BufferedReader, name: str) -> Iterator[BufferedIOBase]:
    """Unpack a stream of gzip, whatever the name of the file; pass other streams through.

    Args:
        file: The bytes.
        name: Name of the file, for errors.

    Raises:
        CorpusError: The file is packed in another format, or cannot be read; the second may also happen while the
            stream is read.
    """
    begins = file.peek(max(map(len, PACKED)))
    if packed := next((form for sign, form in PACKED.items() if begins.startswith(sign)), None):
        raise CorpusError(name, None, f"the file is packed with {packed}", "unpack it, or pack it with gzip")
    with _read_errors(name):
        yield gzip.GzipFile(fileobj=file) if begins.startswith(GZIP) else file


@contextmanager
def _read_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, StoreError) as error:
        raise CorpusError(
            name, None, f"the file cannot be read ({error})", "check that it is complete"
        ) from None


def read_lines(
    storage: Storage, name: str, encoding: str, *, may_be_set: bool = True, keep_marks: bool = True
) -> Iterator[str]:
    """Yield the lines of a text file, as `decoded_lines` does.

    Args:
        storage: The folder.
        name: Name below the folder.
        encoding: Encoding of the text.
        may_be_set: True if the source has the setting `corpus.encoding`, for hints.
        keep_marks: True keeps byte-order marks inside lines: offsets of characters count them.

    Raises:
        CorpusError: The file is empty, or its bytes cannot be cut into lines.
    """
    file, blank = file_address(storage, name), list[str]()
    advice = EncodingAdvice(encoding, may_be_set, partial(file_head, storage, name))
    with open_unpacked(storage, name) as source:
        lines = decoded_lines(source, file, advice, keep_marks=keep_marks)
        for line in lines:
            blank.append(line)
            if line.strip():
                yield from blank
                yield from lines
                return
    raise CorpusError(file, None, "the file is empty", "add sentences, or leave the file out")


def file_head(storage: Storage, name: str) -> bytes:
    """Return the first bytes of a file, unpacked.

    Args:
        storage: The folder.
        name: Name below the folder.
    """
    with open_unpacked(storage, name) as source:
        return source.read(HEAD_BYTES)


def decoded_lines(
    source: BinaryIO | BufferedIOBase, file: str, advice: EncodingAdvice, *, keep_marks: bool = True
) -> Iterator[str]:
    """Yield the lines of a stream of bytes, without line ends and without byte-order marks at their beginnings.

    A file joined from several files may have byte-order marks in the middle. A line ends with a line feed, or with a
    carriage return and a line feed: the further separators of Unicode occur inside words of real corpora. A line
    with bytes that are not text, a carriage return or a zero byte is a `BrokenLine`.

    Args:
        source: The bytes.
        file: Name of the file, for errors.
        advice: Encoding of the text, and hints for bytes that do not fit it.
        keep_marks: True keeps byte-order marks inside lines: offsets of characters count them.

    Raises:
        CorpusError: The bytes cannot be cut into lines.
    """
    return chain.from_iterable(_blocks(source, file, advice, keep_marks))


def _blocks(
    source: BinaryIO | BufferedIOBase, file: str, advice: EncodingAdvice, keep_marks: bool
) -> Iterator[list[str]]:
    number, encoding = 1, advice.encoding
    # With `read1`, lines from a pipe are read as they come; `read` waits for a whole block.
    read = getattr(source, "read1", source.read)
    texts = codecs.iterdecode(iter(lambda: read(BLOCK), b""), encoding, errors="surrogateescape")
    try:
        for lines, ended in _lines(texts):
            number += len(lines)
            if _ODD("".join(lines)):
                lines = [line.removesuffix("\r") for line in lines] if ended else lines
                lines = [
                    line.lstrip(BYTE_ORDER_MARK) if keep_marks else line.replace(BYTE_ORDER_MARK, "")
                    for line in lines
                ]
                lines = [_check_line(line, advice) for line in lines]
            yield lines
    except LookupError:
        problem = f"there is no text encoding {encoding!r}"
        hint = "set corpus.encoding, for example utf-8 or cp1252"
        raise CorpusError(file, None, problem, hint) from None
    except UnicodeDecodeError as error:
        line = number + error.object.count(b"\n", 0, error.start)
        problem = f"byte 0x{error.object[error.start]:02x} is not {encoding}"
        raise CorpusError(file, line, problem, advice.hint()) from None
    except UnicodeError as error:  # UTF-16 without its mark
        raise CorpusError(file, number, f"the file is not {encoding} ({error})", advice.hint()) from None


def _lines(texts: Iterable[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield lists of lines from pieces of a text; the flag is False for a last line without a line feed."""
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


class EncodingAdvice:
    """Hints for a file that is not text of the given encoding; its first bytes are read only when a hint is needed.

    Args:
        encoding: Encoding of the text.
        may_be_set: True if the source has the setting `corpus.encoding`, for hints.
        head: Function that returns the first bytes; the default returns none, for a stream that is read once.
    """

    def __init__(self, encoding: str, may_be_set: bool, head: Callable[[], bytes] = bytes):
        self.encoding, self._may_be_set, self._read_head = encoding, may_be_set, head

    @cached_property
    def _head(self) -> bytes:
        return self._read_head()

    def likely(self, line: bytes = b"") -> str | None:
        """Return the likely encoding of the file; None if none fits. `line` is a further line to judge by."""
        return likely_encoding(self._head + b"\n" + line)

    def hint(self, line: bytes = b"") -> str:
        """Return a hint that has the likely encoding, and `line` decoded with it."""
        encoding = self.likely(line)
        if encoding and same_encoding(encoding, self.encoding):
            return "correct the line: the rest of the file is in this encoding"
        if not self._may_be_set:
            return f"write the file in UTF-8{f': it looks like {encoding}' if encoding else ''}"
        if encoding is None:
            return "set corpus.encoding to the encoding of the file, or write the file in UTF-8"
        text = line.decode(encoding, "replace")
        return f"set corpus.encoding: {encoding}{f'; the line then reads {text[:60]!r}' if line else ''}"


def _check_line(line: str, advice: EncodingAdvice) -> str:
    if "\0" in line and (encoding := advice.likely()) and encoding.startswith(("utf-16", "utf-32")):
        return BrokenLine.with_reason(line, f"the file is {encoding}, not {advice.encoding}", advice.hint())
    for sign, problem, otherwise in BROKEN:
        if sign in line:
            return BrokenLine.with_reason(line, problem, otherwise)
    if lost := lost_bytes(line):
        hint = advice.hint(line.encode(advice.encoding, "surrogateescape"))
        return BrokenLine.with_reason(line, f"byte 0x{lost[0]:02x} is not {advice.encoding}", hint)
    return line


def lost_bytes(line: str) -> bytes:
    """Return the bytes of a line that are not text, as kept by `surrogateescape`.

    Args:
        line: The line.
    """
    return bytes(ord(sign) & 0xFF for sign in _SURROGATES(line))
