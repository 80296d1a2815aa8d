"""Labelling of texts: a text in each line, or in a column of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import SEPARATOR
from raykd.corpora.tsv import Separator, read_rows, refuse_width
from raykd.deploy.label_columns import GIVE_POS
from raykd.errors import CorpusError
from raykd.pluralise import pluralise
from raykd.serving.labeller import Labelled, Labeller, check_pair

Numbered = Iterator[tuple[int, str]]
"""(line number from 1, line without its end)."""
Write = Callable[[Labelled], str]
"""Labelled text → line of the output."""


def label_texts(labeller: Labeller, lines: Numbered, file: str, batch: int, write: Write) -> Iterator[str]:
    """Yield one line of output per text.

    Args:
        labeller: The exported model.
        lines: Numbered lines, each a text.
        file: Name of the file, for errors.
        batch: Texts labelled at once.
        write: Format of a labelled text.

    Raises:
        CorpusError: The model reads parts of speech, or labels pairs and a text is no pair.
    """
    refuse_without_pos(labeller, file)
    for answer in labeller(_check_pairs(labeller, lines, file), batch=batch):
        yield write(answer)


def marked_line(labeller: Labeller, answer: Labelled) -> str:
    """Return a text with spans in brackets, with labels behind words, or with the label of the text in front.

    Args:
        labeller: The exported model.
        answer: Its answer for the text.
    """
    spans, parts, at = labeller.has_spans, list[str](), 0
    for number, unit in enumerate(answer.spans if spans else answer.words):
        label = unit.label if answer.heads is None else f"{unit.label}:{answer.heads[number]}"
        parts += [answer.text[at : unit.start], f"[{unit.text} {label}]" if spans else f"{unit.text}/{label}"]
        at = unit.end
    text = ("".join(parts) + answer.text[at:]).replace(SEPARATOR, "\t")
    return f"{text}\n" if answer.label is None else f"{answer.label}: {text}\n"


def text_cells(
    lines: Iterable[str], file: str, places: Sequence[int], *, separator: Separator, header: bool
) -> Numbered:
    """Yield the texts of a table's rows, two texts of a row joined by `SEPARATOR`.

    Args:
        lines: Lines of the file.
        file: Name of the file, for errors.
        places: Columns of the texts, from 0.
        separator: Separator of the columns.
        header: True leaves out the first row, with the names of the columns; it still sets the number of columns.

    Raises:
        CorpusError: A row has another number of columns than the first one.
    """
    width = 0
    for number, cells in read_rows(lines, separator):
        if isinstance(cells, BrokenLine):
            raise cells.fault(file, number)
        if len(cells) <= max(places):
            expected = f"the text is expected in column {places[0]}"
            if len(places) > 1:
                expected = f"the texts are expected in columns {places[0]} and {places[1]}"
            problem = f"the line has {pluralise(len(cells), 'column')}, and {expected}"
            raise CorpusError(file, number, problem, "set --column to the column of the text, from 0")
        if width and len(cells) != width:
            refuse_width(len(cells), width, separator, file, number)
        if width or not header:
            yield number, SEPARATOR.join(cells[place] for place in places)
        width = len(cells)


def _check_pairs(labeller: Labeller, texts: Numbered, file: str) -> Iterator[str]:
    """Yield the texts; CorpusError at a text that is no pair, if the model labels pairs."""
    for number, text in texts:
        if labeller.pairs:
            refuse_single(text, file, number)
        yield text


def refuse_single(text: str | list[str], file: str, number: int) -> None:
    """Raise CorpusError if a text, or its words, is no pair."""
    try:
        check_pair(text)
    except ValueError as error:
        raise CorpusError(file, number, str(error), "see docs/EXPORT.md") from None


def refuse_without_pos(labeller: Labeller, file: str, line: int | None = None) -> None:
    """Raise CorpusError if the model reads parts of speech, which text does not have."""
    if labeller.needs_pos:
        problem = "text has no parts of speech, which the model reads"
        raise CorpusError(file, line, problem, f"{GIVE_POS}, or a file of CoNLL-U")


def json_line(answer: Labelled) -> str:
    """Return the model's answer as a line of JSON.

    Args:
        answer: The labelled text; fields without a value are left out.
    """
    fields = {name: value for name, value in asdict(answer).items() if value is not None}
    return json.dumps(fields, ensure_ascii=False) + "\n"
