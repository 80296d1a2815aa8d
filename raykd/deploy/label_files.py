"""Files to be labelled: recognition of their form, reading of their lines, and the function that labels each form.

A file is read as `raykd init`, `evaluate` and training read it: its form is guessed and its lines are cut in the same
way.
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
    """A file to be labelled, and the settings.

    Attributes:
        labeller: The exported model.
        lines: Lines of the file.
        name: Name of the file, for errors.
        settings: Settings of the corpus source for such files: the columns of a table.
        column: Column of the words (conll) or of the text (tsv), from 0; None finds it.
        scheme: Scheme of the labels in columns; None takes that of the file's labels, or else BIOES.
        batch: Texts or sentences labelled at once.
        write: Format of a labelled text; text and TSV only: JSON Lines and columns keep the format of the file.
        report: Receives a line of text on how columns are read.
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
        """The numbered lines, from 1; CorpusError at a line that is not text."""
        for number, line in enumerate(self.lines, start=1):
            if isinstance(line, BrokenLine):
                raise line.fault(self.name, number)
            yield number, line


@dataclass(frozen=True)
class FileForm:
    """A form of files to be labelled.

    Attributes:
        name: Name in `--format`.
        unit: The unit that is labelled at once.
        label: Labels the lines of a file, in order: of texts as JSON Lines, of columns with a last column. CorpusError
            if a line is not of that form, or lacks an input of the model.
        of_texts: True if each text becomes a line of the output.
        takes: Settings of a request that have an effect.
        keep_marks: True if byte-order marks inside lines stay. Offsets in texts count them; words have none.
    """

    name: Form
    unit: Literal["text", "sentence"]
    label: Callable[[Request], Iterator[str]]
    of_texts: bool = False
    takes: tuple[Literal["column", "scheme"], ...] = ()
    keep_marks: bool = True


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
"""Corpus source → form in which such files are labelled."""


def recognise_form(
    file: str, labeller: Labeller, requested_form: Form | Literal["auto"]
) -> tuple[FileForm, PlainObject]:
    """Find the form of a file, and the settings of the corpus source that reads it.

    Args:
        file: Name of the file; `-` for the standard input.
        labeller: The exported model.
        requested_form: The form; `auto` recognises it as `raykd init` does.

    Returns:
        The form, and the settings of the detected source: empty for the standard input, or if the file is labelled in
        another form.

    Raises:
        CorpusError: The file is missing, or has a form that cannot be labelled.
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
    # A file without text is recognised by no format; an error follows when its lines are read.
    if (labeller.pairs and not name.endswith((".tsv", ".csv", ".json"))) or not guess.source:
        return TEXT
    hint = 'write JSON Lines, {"text": "…"} in each, or give --format'
    if not guess.readable:
        raise CorpusError(file, None, f"the file is not read: {guess.reason.partition(':')[0]}", hint)
    if (form := FORM_OF_SOURCE.get(guess.source)) is None:
        raise CorpusError(file, None, f"the file is {guess.source}", hint)
    if name.endswith(".tsv"):
        return TABLE if form is TEXT else form
    # Lines with one word each may be texts: only a file with several columns is surely one of columns.
    return TEXT if form is COLUMNS and not guess.labelled and len(guess.columns) < 2 else form


def read_file_lines(file: str, *, keep_marks: bool) -> Iterator[str]:
    """Yield the lines of a file, unpacked if packed, or of the standard input; no lines of an empty file.

    Args:
        file: Name of the file; `-` for the standard input.
        keep_marks: True keeps byte-order marks inside lines.
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
