"""The form of a file that is to be labelled, its lines, and what labels them.

A file is read as `raykd init`, `evaluate` and training read it: by the same guess of its form, the same cutting of its
lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from raykd.corpora.files import BrokenLine, decoded_lines, opened
from raykd.corpora.guess import Guess
from raykd.corpora.tsv import Separator
from raykd.deploy.label_columns import label_columns
from raykd.deploy.label_json import label_json
from raykd.deploy.label_texts import Write, json_line, label_texts, text_cells
from raykd.errors import CorpusError
from raykd.forms.tag_schemes import SpanScheme
from raykd.serving.labeller import Labeller
from raykd.storage.store import Storage

Form = Literal["text", "tsv", "conll", "jsonl"]
OF_TEXTS: tuple[Form, ...] = ("text", "tsv")
"""Forms of which each text becomes a line."""
COLUMN_ENDS = (".conll", ".conllu", ".iob2", ".iob", ".bio")
OF_COLUMNS = ("conll", "conllu")
"""Sources with a word in each line."""
STANDARD_INPUT, TO_UTF_8 = "standard input", "convert the file to UTF-8"


@dataclass(frozen=True)
class FileForm:
    """How a file is read."""

    form: Form
    columns: Mapping[str, int | str] = field(default_factory=dict)
    """The columns of a table: of TSV their numbers, of JSON Lines their names."""
    header: bool = False
    """Whether the first line has the names of the columns."""
    separator: Separator = "tab"
    """Between the columns of a table of texts."""


def label_file(
    labeller: Labeller,
    file: str,
    form: FileForm,
    opened_files: ExitStack,
    *,
    column: int | None = None,
    scheme: SpanScheme | None = None,
    batch: int = 32,
    write: Write = json_line,
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[str]:
    """Label the lines of a file; of texts JSON Lines, of columns a last column, in their order.

    Args:
        labeller: the exported model.
        file: its name; - is the standard input.
        form: of the file, from `form_of`.
        opened_files: closes the file.
        column: of the words (conll) or of the text (tsv), from 0; None: the one that they are in.
        scheme: of the labels of columns; None: that of the file's own labels, else BIOES.
        batch: texts or sentences that are read at once.
        write: how a text is written; JSON Lines and columns are written as they were read.
        report: is told in a line of text how columns are read.

    Raises:
        CorpusError: a line is not of that form, or lacks what the model reads.
    """
    lines, name = _lines(file, opened_files), STANDARD_INPUT if file == "-" else file
    if form.form == "conll":
        return label_columns(labeller, lines, name, column=column, scheme=scheme, batch=batch, report=report)
    numbered = ((number, _whole(line, name, number)) for number, line in enumerate(lines, start=1))
    if form.form == "jsonl":
        return label_json(labeller, numbered, name, form.columns, batch)
    if form.form == "tsv":
        first = form.columns.get("text", 0) if column is None else column
        second = form.columns.get("second", int(first) + 1) if labeller.pairs else None
        places = [int(place) for place in (first, second) if place is not None]
        numbered = text_cells(lines, name, places, separator=form.separator, header=form.header)
    return label_texts(labeller, numbered, name, batch, write)


def form_of(file: str, labeller: Labeller, asked: Form | Literal["auto"]) -> FileForm:
    """How a file is read: as `asked`, or as `raykd init` would take it.

    Raises:
        CorpusError: the file is missing, or of a form that is not labelled.
    """
    if file == "-":
        return FileForm("text" if asked == "auto" else asked)
    if not Path(file).is_file():
        raise CorpusError(file, None, "there is no such file", "give a file, or - for the standard input")
    from raykd.corpora.look import look_at  # the readers of corpora take a while to import

    guess = look_at(*_address(file))
    form = _form(file, guess, labeller) if asked == "auto" else asked
    if form in ("tsv", "jsonl") and guess.source == form:
        columns = {name: place for name, place in guess.settings.get("columns", {}).items() if place != ""}
        settings = guess.settings
        return FileForm(
            form, columns, header=bool(settings.get("header")), separator=settings.get("separator", "tab")
        )
    return FileForm(form)


def _form(file: str, guess: Guess, labeller: Labeller) -> Form:
    name = file.removesuffix(".gz")
    if name.endswith(".jsonl"):
        return "jsonl"
    if labeller.pairs and not name.endswith(".tsv"):
        return "text"
    if name.endswith(COLUMN_ENDS):
        return "conll"
    if not guess.readable:
        if guess.why == "empty":
            return "text"
        hint = 'write JSON Lines, {"text": "…"} in each, or give --format'
        raise CorpusError(file, None, f"it is not read: {guess.why.partition(':')[0]}", hint)
    if guess.source in OF_COLUMNS:
        # Lines of one word each may be texts: columns are known by their labels.
        return "conll" if guess.labelled or name.endswith(".tsv") else "text"
    if guess.source in ("text", "tsv", "jsonl"):
        return guess.source  # pyright: ignore[reportReturnType]
    hint = "write it as JSON Lines, or give --format"
    raise CorpusError(file, None, f"the file is {guess.source}", hint)


def _address(file: str) -> tuple[Storage, str]:
    path = Path(file)
    return Storage(str(path.parent)), path.name


def _lines(file: str, opened_files: ExitStack) -> Iterator[str]:
    """The lines of a file, unpacked where its name ends in .gz; none of an empty one."""
    if file == "-":
        return decoded_lines(sys.stdin.buffer, STANDARD_INPUT, "utf-8", TO_UTF_8)
    if Path(file).stat().st_size == 0:
        return iter(())
    return decoded_lines(opened_files.enter_context(opened(*_address(file))), file, "utf-8", TO_UTF_8)


def _whole(line: str, file: str, number: int) -> str:
    """The line. Raises CorpusError where it is not text."""
    if isinstance(line, BrokenLine):
        raise CorpusError(file, number, line.problem, line.hint)
    return line
