"""Label files of texts: a text a line, or a column of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import SEPARATOR
from raykd.corpora.tsv import Separator, refuse_width, table_rows
from raykd.deploy.label_columns import GIVE_POS
from raykd.errors import CorpusError
from raykd.pluralise import pluralise
from raykd.serving.labeller import Labelled, Labeller, check_pair

Numbered = Iterator[tuple[int, str]]
"""(line from 1, its text without the line end)."""
Write = Callable[[Labelled], str]
"""A text with what the model says of it → the line that is written."""


def label_texts(labeller: Labeller, lines: Numbered, file: str, batch: int, write: Write) -> Iterator[str]:
    """Each line, a text, with what the model says of it. Raises CorpusError where the model reads what text lacks."""
    refuse_without_pos(labeller, file)
    for answer in labeller(_check_pairs(labeller, lines, file), batch=batch):
        yield write(answer)


def marked_line(labeller: Labeller, answer: Labelled) -> str:
    """A text with its spans in brackets, each word with its label, or the label of the whole text in front."""
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
    """The text of each row of a table, or its two texts with a tab between them.

    Args:
        lines: of the file.
        file: its name, for errors.
        places: the columns of the texts, from 0.
        separator: between the columns.
        header: whether the first row has the names of the columns.

    Raises:
        CorpusError: a row has other columns than the first one.
    """
    width = 0
    for number, cells in table_rows(lines, separator):
        if isinstance(cells, BrokenLine):
            raise CorpusError(file, number, cells.problem, cells.hint)
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
    """The texts. Raises CorpusError where one is no pair, and the model labels pairs."""
    for number, text in texts:
        if labeller.pairs:
            refuse_single(text, file, number)
        yield text


def refuse_single(text: str | list[str], file: str, number: int) -> None:
    """Raise CorpusError where a text, or its words, is no pair."""
    try:
        check_pair(text)
    except ValueError as error:
        raise CorpusError(file, number, str(error), "see docs/EXPORT.md") from None


def refuse_without_pos(labeller: Labeller, file: str, line: int | None = None) -> None:
    """Raise CorpusError where the model reads parts of speech, which text does not have."""
    if labeller.needs_pos:
        problem = "text has no parts of speech, which the model reads"
        raise CorpusError(file, line, problem, f"{GIVE_POS}, or a file of CoNLL-U")


def json_line(answer: Labelled) -> str:
    """The answer of the model as a line of JSON."""
    fields = {name: value for name, value in asdict(answer).items() if value is not None}
    return json.dumps(fields, ensure_ascii=False) + "\n"
