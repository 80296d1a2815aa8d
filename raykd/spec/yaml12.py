"""YAML 1.2 (core schema) to plain data, with the line of every value.

ruamel.yaml reads the syntax. What a plain word means is decided here, by the tables of the YAML 1.2.2
specification, section 10.3.2, so that `no` is text and `1e-4` a number in every version of the parser. Duplicate
keys are found here too, because the parser stops at the first and does not report both lines.
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


class BadYamlError(Exception):
    """The text is not YAML 1.2; `line` is 1-based, None if the parser does not report it."""

    def __init__(self, line: int | None, message: str):
        super().__init__(line, message)
        self.line, self.message = line, message


@dataclass
class Parsed:
    """Plain data, the 1-based line of each key path, and faults as (key path, line, message)."""

    value: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[tuple[KeyPath, int, str]] = field(default_factory=list)


def parse(text: str) -> Parsed:
    """Parse one YAML 1.2 document.

    Raises:
        BadYamlError: the syntax is broken, there is more than one document, or a tag, a key or a number is
            not plain data.
    """
    try:
        events = list(YAML(typ="safe", pure=True).parse(text))
    except MarkedYAMLError as error:
        raise _bad_syntax(error) from error
    except YAMLError as error:
        raise BadYamlError(None, f"not YAML: {str(error).splitlines()[0]}") from error
    starts = [event for event in events if isinstance(event, DocumentStartEvent)]
    if len(starts) > 1:
        raise BadYamlError(_line(starts[1]), "a second document starts here (`---`); write one file for each")
    if not starts:
        return Parsed()
    builder = _Builder(iter(events[events.index(starts[0]) + 1 :]))
    builder.parsed.value = builder.build(next(builder.events), ())
    return builder.parsed


def scalar(word: str) -> Any:
    """The value of a plain (unquoted) word under the YAML 1.2 core schema.

    Raises:
        ValueError: the word is `.inf` or `.nan`, or a number too large for a float.

    Examples:
        >>> [scalar(word) for word in ("no", "1e-4", "0x10", "true", "~", "1_000")]
        ['no', 0.0001, 16, True, None, '1_000']
    """
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word):
        return int(word)
    if _OCTAL.fullmatch(word) or _HEXADECIMAL.fullmatch(word):
        return int(word, base=0)
    if _NOT_FINITE.fullmatch(word):
        raise ValueError(f"{word} is not a finite number; write a finite number, or null for no value")
    if not _NUMBER.fullmatch(word):
        return word
    if not math.isfinite(number := float(word)):
        raise ValueError(f"{word} is too large for a floating-point number; write a smaller one")
    return number


class _Builder:
    """Turns the events of one document into values, depth first."""

    def __init__(self, events: Iterator[Any]):
        self.events = events
        self.parsed = Parsed()
        self.anchors: dict[str, Any] = {}

    def build(self, event: Any, key_path: KeyPath) -> Any:
        self.parsed.lines.setdefault(key_path, _line(event))
        if isinstance(event, AliasEvent):
            return self._alias(event)
        self._refuse_tag(event)
        if isinstance(event, MappingStartEvent):
            value = self._mapping(key_path)
        elif isinstance(event, SequenceStartEvent):
            value = self._sequence(key_path)
        else:
            value = self._scalar(event)
        # Only now: an anchor that holds its own alias would be an infinite tree.
        if event.anchor is not None:
            self.anchors[event.anchor] = value
        return value

    def _alias(self, event: AliasEvent) -> Any:
        if event.anchor not in self.anchors:
            raise BadYamlError(
                _line(event),
                f"the alias *{event.anchor} stands before or inside its anchor &{event.anchor}; "
                "write the anchor first",
            )
        return self.anchors[event.anchor]

    def _refuse_tag(self, event: Any) -> None:
        tag = event.tag
        if tag not in (None, "!", _TEXT_TAG) or (tag == _TEXT_TAG and not isinstance(event, ScalarEvent)):
            raise BadYamlError(_line(event), f"the tag {tag} is not supported; write a plain value")

    def _mapping(self, key_path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise BadYamlError(
                    _line(event), "a key must be one word; put it in quotes if it holds brackets or `*`"
                )
            below, line = (*key_path, event.value), _line(event)
            if event.value in mapping:
                first = self.parsed.lines[below]
                message = f"written twice, on line {first} and on line {line}; keep one of them"
                self.parsed.faults.append((below, line, message))
                below = (*key_path, f"{event.value} (again)")  # keeps the lines of the first one
                self.build(next(self.events), below)
                continue
            self.parsed.lines[below] = line
            mapping[event.value] = self.build(next(self.events), below)
        return mapping

    def _sequence(self, key_path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self.build(event, (*key_path, len(items))))
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
    where = f", column {mark.column + 1}" if mark else ""
    return BadYamlError(mark.line + 1 if mark else None, f"not YAML: {problem}{context}{where}{hint}")
