"""Text classification: one text and its class per line, a tab between them; words are separated by white space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from raykd.corpora.files import BrokenLine
from raykd.corpora.sentence import Faulty, Sentence, Unit
from raykd.corpora.source import Stream, TextConfig, for_language, form_of, refuse_unknown_languages
from raykd.corpora.text_files import read_text_files
from raykd.counted import counted
from raykd.errors import CorpusError
from raykd.spec import Frozen

Place = Annotated[int, Field(ge=0)]


class Columns(Frozen):
    """The columns of the text and its class, from 0."""

    text: Place = 0
    """The column of the text."""
    label: Place = 1
    """The column of its class."""


ColumnsOfEach = Annotated[
    Annotated[Columns, Tag("one")] | Annotated[dict[str, Columns], Tag("each")], Discriminator(form_of)
]


class TsvSource(TextConfig):
    """One text and its class per line."""

    unit: ClassVar[Unit] = "sentence"
    source: Literal["tsv"]
    scheme: Literal["flat"] = "flat"
    columns: ColumnsOfEach = Columns()
    """The columns of text and class, counted from 0; or a mapping from languages, with `default` for the others."""
    header: bool = False
    """Whether the first line has the names of the columns."""

    @model_validator(mode="after")
    def _columns_are_of_its_languages(self) -> TsvSource:
        refuse_unknown_languages("columns", self.columns, self.languages)
        return self


def read(config: TsvSource, *, most: int | None = None) -> Stream:
    """Every part of the corpus: sentences with one tag, their class; of each file the first `most`.

    Raises:
        CorpusError: a file is missing.
    """
    return read_text_files(config, parse, most=most)


def parse(
    config: TsvSource, lines: Iterable[str], *, file: str, language: str, labelled: bool
) -> Iterator[Sentence | Faulty]:
    """The sentences of one file's lines; empty lines are skipped. Without `labelled` the class is not read."""
    columns, width = for_language(config.columns, language) or Columns(), 0
    for number, line in enumerate(lines, start=1):
        if type(line) is BrokenLine:
            yield Faulty(language, (CorpusError(file, number, line.problem, line.hint),))
            continue
        if not line.strip():
            continue
        cells = line.split("\t")
        width = width or len(cells)
        if config.header and number == 1:
            continue
        try:
            tokens, tags = _cells(columns, cells, file, number, labelled)
            if len(cells) != width:
                problem = f"{counted(len(cells), 'column')} between tabs where the first line has {width}"
                raise CorpusError(file, number, problem, "remove the tab from the text, or correct the line")
        except CorpusError as error:
            yield Faulty(language, (error,))
        else:
            yield Sentence(tokens, tags, language, (file, number), TsvSource.unit)


def _cells(
    columns: Columns, cells: list[str], file: str, number: int, labelled: bool
) -> tuple[list[str], list[str] | None]:
    needed = max(columns.text, columns.label if labelled else 0) + 1
    if len(cells) < needed:
        problem = f"{counted(len(cells), 'column')} between tabs where at least {needed} are expected"
        raise CorpusError(file, number, problem, "correct the line, or set corpus.columns")
    tokens = cells[columns.text].split()
    tags = [cells[columns.label].strip()] if labelled else None
    if not tokens or tags == [""]:
        raise CorpusError(file, number, "the text or its class is empty", "correct the line")
    return tokens, tags
