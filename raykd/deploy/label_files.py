"""The form of a file that is to be labelled, its lines, and what labels them.

A file is read as `raykd init`, `evaluate` and training read it: by the same guess of its form, the same cutting of its
lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, RawIOBase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from raykd.corpora.files import BrokenLine, EncodingAdvice, decoded_lines, file_head, open_unpacked, unpack
from raykd.corpora.guess import Guess
from raykd.deploy.label_columns import label_columns
from raykd.deploy.label_json import label_json
from raykd.deploy.label_texts import Numbered, Write, json_line, label_texts, text_cells
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import SpanScheme
from raykd.identity import PlainObject
from raykd.serving.labeller import Labeller
from raykd.storage.store import Storage

Form = Literal["text", "tsv", "conll", "jsonl"]
COLUMN_ENDS = (".conll", ".conllu", ".iob2", ".iob", ".bio")
STANDARD_INPUT = "standard input"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A file to be labelled, and how.

    Args:
        labeller: the exported model.
        lines: of the file.
        name: of the file, for errors.
        settings: of the source that reads such files: the columns of a table.
        column: of the words (conll) or of the text (tsv), from 0; None: the one that they are in.
        scheme: of the labels of columns; None: that of the file's own labels, else BIOES.
        batch: texts or sentences that are read at once.
        write: how a text is written; JSON Lines and columns are written as they were read.
        report: gets a line of text that says how columns are read.
    """

    labeller: Labeller
    lines: Iterator[str]
    name: str
    settings: Mapping[str, Any]
    column: int | None = None
    scheme: SpanScheme | None = None
    batch: int = 32
    write: Write = json_line
    report: Callable[[str], None] = lambda line: None

    @property
    def numbered(self) -> Numbered:
        """The lines with their numbers. Raises CorpusError at one that is not text."""
        for number, line in enumerate(self.lines, start=1):
            if isinstance(line, BrokenLine):
                raise CorpusError(self.name, number, line.problem, line.hint)
            yield number, line


@dataclass(frozen=True)
class FileForm:
    """A form of files."""

    name: Form
    unit: Literal["text", "sentence"]
    """The unit that is labelled at once."""
    label: Callable[[Request], Iterator[str]]
    """Label the lines of a file; of texts JSON Lines, of columns a last column, in their order. It raises CorpusError
    where a line is not of that form, or lacks what the model reads."""
    of_texts: bool = False
    """Each text becomes a line of the output."""
    takes: tuple[Literal["column", "scheme"], ...] = ()
    """The settings of a request that have an effect."""
    keep_marks: bool = True
    """Byte-order marks inside of lines stay: places in texts count them, and words have none."""


def _label_texts(request: Request) -> Iterator[str]:
    return label_texts(request.labeller, request.numbered, request.name, request.batch, request.write)


def _label_table(request: Request) -> Iterator[str]:
    columns, settings = request.settings.get("columns", {}), request.settings
    first = columns.get("text", 0) if request.column is None else request.column
    second = columns.get("second", first + 1) if request.labeller.pairs else None
    cells = text_cells(
        request.lines, request.name, [place for place in (first, second) if place is not None],
        separator=settings.get("separator", "tab"), header=settings.get("header", False),
    )  # fmt: skip
    return label_texts(request.labeller, cells, request.name, request.batch, request.write)


def _label_objects(request: Request) -> Iterator[str]:
    columns = request.settings.get("columns", {})
    return label_json(request.labeller, request.numbered, request.name, columns, request.batch)


def _label_columns(request: Request) -> Iterator[str]:
    return label_columns(
        request.labeller, request.lines, request.name, column=request.column, scheme=request.scheme,
        batch=request.batch, report=request.report,
    )  # fmt: skip


TEXT, TABLE = (
    FileForm("text", "text", _label_texts, of_texts=True),
    FileForm("tsv", "text", _label_table, of_texts=True, takes=("column",)),
)
COLUMNS, OBJECTS = (
    FileForm("conll", "sentence", _label_columns, takes=("column", "scheme"), keep_marks=False),
    FileForm("jsonl", "text", _label_objects),
)
FORMS: Mapping[str, FileForm] = MappingProxyType(
    {form.name: form for form in (TEXT, TABLE, COLUMNS, OBJECTS)}
)
FORM_OF_SOURCE: Mapping[str, FileForm] = MappingProxyType(
    {**FORMS, "conllu": COLUMNS, "xsid": COLUMNS, "spans": OBJECTS}
)
"""Source of corpora → the form in which such files are labelled."""


def recognise_form(
    file: str, labeller: Labeller, requested_form: Form | Literal["auto"]
) -> tuple[FileForm, PlainObject]:
    """The form of a file, and the settings of the source that reads it: as `asked`, or as `raykd init` would take it.

    Raises:
        CorpusError: the file is missing, or of a form that is not labelled.
    """
    form = FORMS.get(requested_form)
    if file == "-":
        return form or TEXT, {}
    if not Path(file).is_file():
        raise CorpusError(file, None, "there is no such file", "give a file, or - for the standard input")
    from raykd.corpora.format_detection import detect_format  # the readers of corpora take a while to import

    guess = detect_format(*_address(file))
    form = form or _recognised_form(file, guess, labeller)
    return form, guess.settings if form is FORM_OF_SOURCE.get(guess.source) else {}


def _recognised_form(file: str, guess: Guess, labeller: Labeller) -> FileForm:
    name = file.lower().removesuffix(".gz")
    if name.endswith(".jsonl"):
        return OBJECTS
    if name.endswith(COLUMN_ENDS):
        return COLUMNS
    # What no format recognises, for want of text, its lines say when they are read.
    if (labeller.pairs and not name.endswith((".tsv", ".csv", ".json"))) or not guess.source:
        return TEXT
    hint = 'write JSON Lines, {"text": "…"} in each, or give --format'
    if not guess.readable:
        raise CorpusError(file, None, f"it is not read: {guess.reason.partition(':')[0]}", hint)
    if (form := FORM_OF_SOURCE.get(guess.source)) is None:
        raise CorpusError(file, None, f"the file is {guess.source}", hint)
    if name.endswith(".tsv"):
        return TABLE if form is TEXT else form
    # Lines of one word each may be texts: columns are known by there being several.
    return TEXT if form is COLUMNS and not guess.labelled and len(guess.columns) < 2 else form


def read_file_lines(file: str, *, keep_marks: bool) -> Iterator[str]:
    """The lines of a file, unpacked where it is packed, or of the standard input (-); none of an empty one.

    `keep_marks`: whether byte-order marks inside of lines stay.
    """
    if file == "-":
        advice = EncodingAdvice("utf-8", may_be_set=False)
        with unpack(BufferedReader(cast(RawIOBase, sys.stdin.buffer)), STANDARD_INPUT) as source:
            yield from decoded_lines(source, STANDARD_INPUT, advice, keep_marks=keep_marks)
        return
    advice = EncodingAdvice("utf-8", may_be_set=False, head=partial(file_head, *_address(file)))
    with open_unpacked(*_address(file)) as source:
        yield from decoded_lines(source, file, advice, keep_marks=keep_marks)


def _address(file: str) -> tuple[Storage, str]:
    path = Path(file)
    return Storage(str(path.parent)), path.name
