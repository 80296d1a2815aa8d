"""YAML 1.2 (core schema) as plain data, with the line of every value.

ruamel.yaml reads the syntax. The meaning of a plain word is decided here, by the tables of the YAML 1.2.2
specification, section 10.3.2, so that `no` is text and `1e-4` a number in every version of the parser. Duplicate keys
are found here too, because the parser stops at the first and does not report both lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from raykd.identity import PlainValue
from raykd.spec.places import KeyPath

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_TEXT_TAG = "tag:yaml.org,2002:str"

# A sweep file is written by hand. A larger file is another file, or is made to exhaust memory (aliases of aliases).
MOST_BYTES, MOST_VALUES, MOST_KEYS, DEEPEST = 1_000_000, 20_000, 1_000, 50
LARGEST = 2**53
"""The largest whole number that JSON and floating point represent exactly."""


class BadYamlError(Exception):
    """The text is not YAML 1.2.

    Attributes:
        line: 1-based line, None if the parser does not report it.
        message: The problem and a hint.
    """

    def __init__(self, line: int | None, message: str):
        super().__init__(line, message)
        self.line, self.message = line, message


@dataclass
class Parsed:
    """Plain data, the 1-based line of each key path, and faults as (key path, line, message)."""

    value: PlainValue = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[tuple[KeyPath, int, str]] = field(default_factory=list)


def parse(text: str) -> Parsed:
    """Parse one YAML 1.2 document.

    Raises:
        BadYamlError: The syntax is broken, there is more than one document, or a tag, a key or a number is not plain
            data.
    """
    if len(text) > MOST_BYTES:
        problem = f"the file has {len(text):,} characters; a sweep file has at most {MOST_BYTES:,}"
        raise BadYamlError(None, f"{problem}: is it another file?")
    try:
        events = list(_events(text))
    except MarkedYAMLError as error:
        raise _bad_syntax(error) from error
    except YAMLError as error:
        raise BadYamlError(None, f"not YAML: {str(error).splitlines()[0]}") from error
    # An escape that is no character, or a %YAML that is no version.
    except (ValueError, OverflowError) as error:
        raise BadYamlError(None, f"not YAML: {error}") from error
    starts = [event for event in events if isinstance(event, DocumentStartEvent)]
    if len(starts) > 1:
        raise BadYamlError(_line(starts[1]), "a second document starts here (`---`); write one file for each")
    if not starts:
        return Parsed()
    builder = _Builder(iter(events[events.index(starts[0]) + 1 :]))
    builder.parsed.value = builder.build(next(builder.events), ())
    return builder.parsed


def _events(text: str) -> Iterator[Any]:
    """Yield the events of a text; stop if it gets too deep: the parser's time grows with the square of the depth."""
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        depth += isinstance(event, MappingStartEvent | SequenceStartEvent)
        depth -= isinstance(event, MappingEndEvent | SequenceEndEvent)
        if depth > DEEPEST + 1:
            raise _too_deep(event)
        yield event


def _too_deep(event: Any) -> BadYamlError:
    return BadYamlError(_line(event), f"more than {DEEPEST} levels deep; is it a sweep file?")


def scalar(word: str) -> str | int | float | bool | None:
    """Return the value of a plain (unquoted) word under the YAML 1.2 core schema.

    Raises:
        ValueError: The word is `.inf` or `.nan`, or a number too large.

    Examples:
        >>> [scalar(word) for word in ("no", "1e-4", "0x10", "true", "~", "1_000")]
        ['no', 0.0001, 16, True, None, '1_000']
    """
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        return _whole(word, 10)
    if _OCTAL.fullmatch(word) or _HEXADECIMAL.fullmatch(word):
        return _whole(word, 0)
    if _NOT_FINITE.fullmatch(word):
        raise ValueError(f"{word} is not a finite number; write a finite number, or null for no value")
    if not _NUMBER.fullmatch(word):
        return word
    if not math.isfinite(number := float(word)):
        raise ValueError(f"{word} is too large for a floating-point number; write a smaller one")
    return number


def _whole(word: str, base: int) -> int:
    # Python refuses to read a number of 5,000 digits.
    number = int(word, base) if len(word) <= 40 else LARGEST + 1
    if abs(number) > LARGEST:
        raise ValueError(f"{word[:40]} is too large for a whole number; write one up to {LARGEST:,}")
    return number


class _Builder:
    """Turns the events of one document into values, depth first."""

    def __init__(self, events: Iterator[Any]):
        self.events = events
        self.parsed = Parsed()
        self.anchors: dict[str, tuple[Any, int, int]] = {}
        """Anchor → its value, the number of values in it, and its number of levels."""
        self.values = 0
        self.levels = 0
        """Number of levels of the value that was built last."""

    def build(self, event: Any, key_path: KeyPath) -> Any:
        self.parsed.lines.setdefault(key_path, _line(event))
        before = self.values
        self._count(1, len(key_path), event)
        if isinstance(event, AliasEvent):
            return self._alias(event, len(key_path))
        self._refuse_tag(event)
        self.levels = 0
        if isinstance(event, MappingStartEvent):
            value = self._mapping(key_path)
        elif isinstance(event, SequenceStartEvent):
            value = self._sequence(key_path)
        else:
            value = self._scalar(event)
        # Only now: an anchor that contains its own alias would be an infinite tree.
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.values - before, self.levels
        return value

    def _count(self, values: int, depth: int, event: Any) -> None:
        self.values += values
        if self.values > MOST_VALUES:
            raise BadYamlError(
                _line(event), f"more than {MOST_VALUES:,} values up to here; is it a sweep file?"
            )
        if depth > DEEPEST:
            raise _too_deep(event)

    def _alias(self, event: AliasEvent, depth: int) -> Any:
        if event.anchor not in self.anchors:
            raise BadYamlError(
                _line(event),
                f"the alias *{event.anchor} stands before or inside its anchor &{event.anchor}; "
                "write the anchor first",
            )
        value, values, self.levels = self.anchors[event.anchor]
        self._count(values, depth + self.levels, event)
        return value

    def _refuse_tag(self, event: Any) -> None:
        tag = event.tag
        if tag not in (None, "!", _TEXT_TAG) or (tag == _TEXT_TAG and not isinstance(event, ScalarEvent)):
            raise BadYamlError(_line(event), f"the tag {tag} is not supported; write a plain value")

    def _mapping(self, key_path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        levels = 0
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise BadYamlError(
                    _line(event), "a key must be one word; put it in quotes if it holds brackets or `*`"
                )
            value_path, line = (*key_path, event.value), _line(event)
            if event.value in mapping:
                first = self.parsed.lines[value_path]
                message = f"written twice, on line {first} and on line {line}; keep one of them"
                self.parsed.faults.append((value_path, line, message))
                # Another key path: the lines recorded for the first value must stay.
                self.build(next(self.events), (*key_path, f"{event.value} (again)"))
                continue
            if len(mapping) == MOST_KEYS:
                raise BadYamlError(line, f"a mapping of more than {MOST_KEYS:,} keys; is it a sweep file?")
            self.parsed.lines[value_path] = line
            mapping[event.value] = self.build(next(self.events), value_path)
            levels = max(levels, self.levels + 1)
        self.levels = levels
        return mapping

    def _sequence(self, key_path: KeyPath) -> list[Any]:
        items: list[Any] = []
        levels = 0
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self.build(event, (*key_path, len(items))))
            levels = max(levels, self.levels + 1)
        self.levels = levels
        return items

    def _scalar(self, event: ScalarEvent) -> Any:
        plain = event.style in (None, "") and event.tag is None
        if not plain:
            return event.value
        try:
            return scalar(event.value)
        except ValueError as error:
            raise BadYamlError(_line(event), str(error)) from error


def _line(event: Any) -> int:
    return event.start_mark.line + 1


def _bad_syntax(error: MarkedYAMLError) -> BadYamlError:
    mark = error.problem_mark or error.context_mark
    problem = (error.problem or "it cannot be parsed").replace("'\\t'", "a tab")
    opened = error.context_mark
    context = (
        f" ({error.context}, which starts on line {opened.line + 1})" if error.context and opened else ""
    )
    hint = "; indent with spaces, never tabs" if "a tab" in problem else ""
    column = f", column {mark.column + 1}" if mark else ""
    return BadYamlError(mark.line + 1 if mark else None, f"not YAML: {problem}{context}{column}{hint}")
