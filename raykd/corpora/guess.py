"""What a file may be: its beginning, and how a format would read it.

Each format has a function `guess(head) -> Guess | None` in its file. Of several guesses the surest holds.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from raykd.corpora.column_files import cut_at_spaces, cut_at_tabs
from raykd.corpora.columns import Column, columns_in
from raykd.corpora.files import BrokenLine, opened, read_lines
from raykd.storage.store import Storage
from raykd.storage.streams import BLOCK

LINES, BYTES = 4000, 2**20
"""What is looked at of a file's beginning."""
CERTAIN, LIKELY, POSSIBLE, FALLBACK = 1.0, 0.8, 0.5, 0.1
"""How sure a format is: nothing else looks like this; most files like this are of it; some are; where nothing fits."""


@dataclass(frozen=True)
class Target:
    """Labels of which a file may have several kinds: the settings that read one kind, and some of its labels."""

    settings: Mapping[str, Any]
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Guess:
    """How a format would read a file."""

    source: str
    """The name of the format in a sweep file."""
    why: str
    """How the format was recognised; of a file that is not readable, why it is not."""
    sure: float
    """From 0 to 1."""
    readable: bool = True
    labelled: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the source that reads the file."""
    targets: tuple[Target, ...] = ()
    """Where a file has labels of several kinds: the likeliest first."""
    trees: Mapping[str, str] = field(default_factory=dict)
    """The settings by which its trees are read, where it has any."""
    columns: tuple[Column, ...] = ()
    """What each column holds, where the format does not say it."""
    languages: tuple[str, ...] = ()
    """Those that a column of the file names."""
    doubts: tuple[str, ...] = ()
    name: str = ""
    """The file."""
    encoding: str = "utf-8"
    """`ascii` where every text encoding reads the same."""


class Head:
    """The beginning of a file."""

    def __init__(self, storage: Storage, name: str):
        self.storage, self.name = storage, name
        with opened(storage, name) as source:
            self.data: bytes = source.read(BYTES)

    @cached_property
    def encoded(self) -> tuple[str | None, str]:
        """The encoding of the whole file, None where it is no text; and what is odd about it."""
        return _encoding(self.storage, self.name)

    @property
    def encoding(self) -> str:
        """The encoding, `ascii` where every one reads the same."""
        return self.encoded[0] or "utf-8"

    @property
    def problem(self) -> str:
        """Why no line of the file can be looked at."""
        return self.encoded[1] if self.encoded[0] is None else "nothing but white space in its beginning"

    @cached_property
    def lines(self) -> list[str]:
        """The first lines; none where the file is no text, or blank."""
        if self.encoded[0] is None:
            return []
        encoding = "utf-8-sig" if self.encoding in ("utf-8", "ascii") else self.encoding
        text = self.data.decode(encoding, "replace")
        lines = [line.removesuffix("\r") for line in islice(text.split("\n"), LINES)]
        # The last line may be cut off, and after a line feed there is none.
        cut = len(lines) > 1 and (len(self.data) == BYTES or not lines[-1])
        lines = lines[:-1] if cut else lines
        return lines if any(map(str.strip, lines)) else []

    @cached_property
    def filled(self) -> list[str]:
        """Those of the first lines that are not blank."""
        return [line for line in self.lines if line.strip()]

    @cached_property
    def in_tabs(self) -> bool:
        """Whether most lines have tabs."""
        return 2 * sum("\t" in line for line in self.filled) > len(self.filled)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a file with one word in each line; none of other files."""
        return tuple(columns_in(self.lines, cut_at_tabs if self.in_tabs else cut_at_spaces))

    def share(self, test: Callable[[str], object]) -> float:
        """The share of the filled lines that pass a test."""
        return sum(map(bool, map(test, self.filled))) / max(len(self.filled), 1)

    def all_lines(self) -> Iterator[str]:
        """Every line of the file that is text and not blank."""
        lines = read_lines(self.storage, self.name, self.encoding.replace("ascii", "utf-8"))
        return (line for line in lines if type(line) is not BrokenLine and line.strip())


def no_guess(head: Head) -> Guess | None:
    """The guess of a source that is not recognised by a file."""
    return None


def merged(values: Mapping[str, Any]) -> Any:
    """One value for all languages, or a mapping from languages."""
    first = next(iter(values.values()))
    return first if all(value == first for value in values.values()) else dict(values)


def settle(by_language: Mapping[str, list[Guess]]) -> tuple[dict[str, Any], list[str]]:
    """The settings of a corpus by those of the labelled files of each language, and doubts about them."""
    first = {language: files[0].settings for language, files in by_language.items()}
    keys = sorted({key for settings in first.values() for key in settings})
    found = {
        key: merged({language: settings.get(key) for language, settings in first.items()}) for key in keys
    }
    return {key: value for key, value in found.items() if value is not False}, []


def _encoding(storage: Storage, name: str) -> tuple[str | None, str]:
    decoder, lines, plain = codecs.getincrementaldecoder("utf-8")(), 0, True
    with opened(storage, name) as source:
        first = True
        while block := source.read(BLOCK):
            if first and block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                return "utf-16", ""
            first = False
            if b"\0" in block:
                return None, f"a zero byte in line {lines + block[: block.index(0)].count(10) + 1}: no text"
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                return _other_encoding(error, lines, plain)
            plain = plain and text.isascii()
            lines += block.count(b"\n")
    return "ascii" if plain else "utf-8", ""


def _other_encoding(error: UnicodeDecodeError, lines: int, plain: bool) -> tuple[str, str]:
    block = error.object
    line = lines + block.count(b"\n", 0, error.start) + 1
    text = block.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(not sign.isascii() for sign in text) - broken
    byte = f"byte 0x{block[error.start]:02x} in line {line} is not UTF-8"
    if whole > broken or not plain:
        return "utf-8", f"{byte}, and the rest is: correct the line"
    other = "cp1252" if any(0x80 <= sign <= 0x9F for sign in block) else "latin-1"
    return (
        other,
        f"{byte}: taken as {other}; look at the example, and set corpus.encoding where it is wrong",
    )
