"""Values of a JSON file with line numbers: one in a line (JSON Lines), items of an array, or longer objects.

At most one value is held in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal, NamedTuple

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty
from raykd.errors import CorpusError

HINT = "correct the file: write one JSON object in each line, or an array of objects"
_STRINGS_AND_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{}]')


class Item(NamedTuple):
    """A value of a file.

    Attributes:
        line: First line of the value, from 1.
        number: Place in the array of the file, from 1; None without an array.
        value: The value.
    """

    line: int
    number: int | None
    value: Any


def read_items(lines: Iterable[str], file: str, language: str) -> Iterator[Item | Faulty]:
    """Yield the values of a file, and the faults.

    Args:
        lines: Lines without their ends, from the first line on.
        file: Address of the file, for messages.
        language: Language of the file, for faults.
    """
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    if (first := next(numbered, None)) is None:
        return
    one_a_line = type(first[1]) is BrokenLine or _is_one_a_line(first[1].strip())
    read = _one_a_line if one_a_line else _between_brackets
    yield from read(chain([first], numbered), file, language)


def is_pair(value: object) -> bool:
    """Return True for a text with annotations in the form of spaCy 2: `["text", {"entities": […]}]`."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], dict | list)
    )


def _is_one_a_line(first: str) -> bool:
    try:
        value = parse_json(first)
    except ValueError:
        # Where values go on in the next line, the first ends in the middle of something.
        return not (first.startswith("[") or first.endswith(("{", "[", ",", ":")))
    return not isinstance(value, list) or is_pair(value)


def parse_json(text: str) -> Any:
    """Parse a JSON text; NaN and Infinity are no JSON.

    Args:
        text: The text.

    Raises:
        ValueError: The text is no JSON, or is nested too deep; the message says where.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"character {error.colno}" if error.lineno == 1 else f"its line {error.lineno}"
        raise ValueError(f"not JSON ({error.msg}, {place})") from None
    except RecursionError:
        raise ValueError("not read: its brackets are nested too deep") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"not JSON ({name} is no number)")


def _one_a_line(lines: Iterable[tuple[int, str]], file: str, language: str) -> Iterator[Item | Faulty]:
    for number, line in lines:
        if type(line) is BrokenLine:
            yield Faulty(language, (line.fault(file, number),))
            continue
        try:
            yield Item(number, None, parse_json(line))
        except ValueError as error:
            yield Faulty(language, (CorpusError(file, number, f"the line is {error}", HINT),))


def _between_brackets(lines: Iterable[tuple[int, str]], file: str, language: str) -> Iterator[Item | Faulty]:
    """Yield items of an array, or objects over several lines.

    No JSON string crosses the end of a line, so brackets outside of strings show where an item begins and ends.
    """
    scan = _Scan()

    def fault(line: int, problem: str) -> Faulty:
        place = f"item {scan.number}: " if scan.floor and scan.number else ""
        return Faulty(language, (CorpusError(file, line, place + problem, HINT),), whole_file=True)

    for number, line in lines:
        if type(line) is BrokenLine:
            yield Faulty(language, (line.fault(file, number),), whole_file=True)
            return
        for begun, text in scan.complete(number, line):
            scan.number += 1
            try:
                value = parse_json(text)
            except ValueError as error:
                yield fault(begun, f"what begins here is {error}")
                return
            yield Item(begun, scan.number if scan.floor else None, value)
        if outside := scan.outside.strip(" \t\r,"):
            scan.number += 1
            yield fault(number, f"expected an object, got {outside[:40]!r}")
            return
    if scan.depth:
        scan.number += scan.pieces is not None
        yield fault(scan.begun, "the file ends inside of what begins here")


class _Scan:
    """Line-by-line search for the first and last lines of values."""

    def __init__(self) -> None:
        self.floor, self.depth = 0, 0
        """The number of brackets around a value, and of those that are open."""
        self.number = self.begun = 0
        """The values so far, and the line in which the last one begins."""
        self.pieces: list[str] | None = None
        """The lines so far of the value that is open."""
        self.outside = ""
        """The rest of the last line, which is in no value."""
        self.state: Literal["before", "inside", "behind"] = "before"
        """The end of the last line: before the first bracket, behind it, or behind the array."""

    def complete(self, number: int, line: str) -> Iterator[tuple[int, str]]:
        """Yield (first line, text) of the values that end in this line."""
        self.outside, start = "", 0
        for match in _STRINGS_AND_BRACKETS.finditer(line):
            sign, step = match[0], {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
            if not step or self.state == "behind":
                continue
            self.depth += step
            if self.state == "before" and sign == "[":  # the array begins
                self.floor, self.begun = 1, number
            elif self.pieces is None and step == 1:  # a value begins
                self.outside += line[start : match.start()]
                self.pieces, self.begun, start = [], number, match.start()
            elif self.pieces is None:  # the array ends
                self.outside += line[start : match.start()] + ("" if (sign, self.depth) == ("]", 0) else sign)
                self.state, start = "behind", match.end()
                continue
            elif self.depth == self.floor:  # the value ends
                text = "\n".join([*self.pieces, line[start : match.end()]])
                self.pieces, start = None, match.end()
                yield self.begun, text
            self.state = "inside"
            start = match.end() if self.pieces is None else start
        if self.pieces is None:
            self.outside += line[start:]
        else:
            self.pieces.append(line[start:])
