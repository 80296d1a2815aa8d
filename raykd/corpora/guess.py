"""Guesses of file formats: the beginning of a file, and the settings with which a format would read it.

Each format has a function `guess(head) -> Guess | None` in its file. The guess with the highest confidence wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from raykd.corpora.column_files import Beginning, read_beginning
from raykd.corpora.columns import Column, classify_columns
from raykd.corpora.files import BYTE_ORDER_MARK, HEAD_BYTES, BrokenLine, lost_bytes, open_unpacked, read_lines
from raykd.corpora.text_encoding import MARKS, likely_encoding
from raykd.identity import PlainObject
from raykd.storage.store import Storage

LINES = 4000
"""Number of first lines from which a format is recognised."""
CHECK_ENCODING = "look at the example, and set corpus.encoding if it is wrong"
CERTAIN, LIKELY, POSSIBLE, FALLBACK = 1.0, 0.8, 0.5, 0.1
"""Confidence of a guess: no other format looks like this; most such files have this format; some have; none fits."""


@dataclass(frozen=True)
class Target:
    """One kind of labels in a file that may have several kinds.

    Attributes:
        settings: Settings of the source that read these labels.
        labels: Some of the labels.
    """

    settings: Mapping[str, Any]
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A guess of the settings with which a format would read a file.

    Attributes:
        source: Name of the format in a sweep file.
        reason: Evidence for the format; for an unreadable file, the reason why it cannot be read.
        confidence: From 0 to 1.
        readable: False if the file cannot be read.
        labelled: True if the file has labels.
        settings: Settings of the source that reads the file.
        targets: Kinds of labels, the likeliest first; empty if there is one kind.
        trees: Settings that read trees; empty if there are none.
        columns: Content of the columns, if the format does not fix it.
        languages: Languages named in a column of the file.
        doubts: Points that the user should check, as messages.
        name: Name of the file.
        encoding: Encoding of the text; `ascii` if all encodings read the same.
    """

    source: str
    reason: str
    confidence: float
    readable: bool = True
    labelled: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    trees: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    languages: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    name: str = ""
    encoding: str = "utf-8"


class Head:
    """The beginning of a file."""

    def __init__(self, storage: Storage, name: str):
        self.storage, self.name = storage, name
        with open_unpacked(storage, name) as source:
            self.data: bytes = source.read(HEAD_BYTES)

    @cached_property
    def encoded(self) -> tuple[str | None, str]:
        """Encoding of the whole file and a doubt about it ("" for none), or None and the reason why it is not text."""
        if not self.data.strip():
            return None, "its beginning has nothing but white space"
        likely = likely_encoding(self.data)
        if likely is not None and likely.startswith(("utf-16", "utf-32")):
            has_mark = likely in MARKS.values()
            return likely, "" if has_mark else f"many zero bytes: taken as {likely}; {CHECK_ENCODING}"
        # Lines with bytes that are not UTF-8, a message on the first one, and the number of characters outside ASCII.
        undecoded, first, decoded = bytearray(), "", 0
        for number, line in enumerate(read_lines(self.storage, self.name, "utf-8"), start=1):
            if "\0" in line:
                return None, f"a zero byte in line {number}: not text"
            if line.isascii():
                continue
            lost = lost_bytes(line)
            decoded += sum(not sign.isascii() for sign in line) - len(lost)
            if lost and not undecoded:
                first = f"byte 0x{lost[0]:02x} in line {number} is not UTF-8"
            if lost and len(undecoded) < HEAD_BYTES:
                undecoded += line.encode("utf-8", "surrogateescape") + b"\n"
        if not undecoded:
            return ("utf-8" if decoded else "ascii"), ""
        if decoded > len(lost_bytes(undecoded.decode("utf-8", "surrogateescape"))):
            return "utf-8", f"{first}, but the rest of the file is: correct the line"
        encoding = likely_encoding(bytes(undecoded))
        if encoding is None or encoding == "utf-8":
            return None, f"{first}, and the encoding is not recognised: write the file in UTF-8"
        return encoding, f"{first}: taken as {encoding}; {CHECK_ENCODING}"

    @property
    def encoding(self) -> str:
        """Encoding of the file, `ascii` if all encodings read the same."""
        return self.encoded[0] or "utf-8"

    @cached_property
    def lines(self) -> list[str]:
        """The first lines; empty if the file is not text."""
        if self.encoded[0] is None:
            return []
        text = self.data.decode(self.encoding.replace("ascii", "utf-8"), "replace").lstrip(BYTE_ORDER_MARK)
        # JSON keeps its byte-order marks: offsets of characters in it count them.
        text = text if text.lstrip()[:1] in ("{", "[") else text.replace(BYTE_ORDER_MARK, "")
        lines = [line.removesuffix("\r").lstrip(BYTE_ORDER_MARK) for line in islice(text.split("\n"), LINES)]
        # The last line may be incomplete; after a final line feed it is empty.
        cut = len(lines) > 1 and (len(self.data) == HEAD_BYTES or not lines[-1])
        return lines[:-1] if cut else lines

    @cached_property
    def nonblank_lines(self) -> list[str]:
        """The first lines without blank ones."""
        return [line for line in self.lines if line.strip()]

    @cached_property
    def beginning(self) -> Beginning:
        """The first lines, and the way in which all lines are cut."""
        return read_beginning(iter(self.lines), "#")

    @property
    def has_tabs(self) -> bool:
        """True if most lines have tabs."""
        return self.beginning.separator == "\t"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of a file with one word in a line; empty for other files."""
        return tuple(classify_columns(self.beginning))

    def share(self, test: Callable[[str], object]) -> float:
        """Return the share of nonblank lines that pass a test."""
        return sum(map(bool, map(test, self.nonblank_lines))) / max(len(self.nonblank_lines), 1)

    def all_lines(self) -> Iterator[str]:
        """Yield all lines of the file that are text and not blank."""
        lines = read_lines(self.storage, self.name, self.encoding.replace("ascii", "utf-8"))
        return (line for line in lines if type(line) is not BrokenLine and line.strip())


def no_guess(head: Head) -> Guess | None:
    """Return None: files of this source are not recognised."""
    return None


def merge_values(values: PlainObject) -> Any:
    """Return the value that all languages share; if they differ, return the mapping of languages to values."""
    first = next(iter(values.values()))
    return first if all(value == first for value in values.values()) else dict(values)


def combine_guesses(by_language: Mapping[str, list[Guess]]) -> tuple[PlainObject, list[str]]:
    """Combine settings of labelled files into settings of a corpus.

    Args:
        by_language: Language → guesses of its files; the settings of the first file are taken.

    Returns:
        Settings of the corpus, and an empty list of doubts.
    """
    first = {language: files[0].settings for language, files in by_language.items()}
    corpus_settings: dict[str, Any] = {}
    for key in sorted({key for settings in first.values() for key in settings}):
        values = {language: settings.get(key) for language, settings in first.items()}
        if (value := merge_values(values)) == values:  # a language without a value has the default
            corpus_settings[key] = {
                language: setting for language, setting in values.items() if setting is not None
            }
        elif value is not False:
            corpus_settings[key] = value
    return corpus_settings, []
