"""Text classification: a text or a pair of texts with its class per line, separated by tabs or as CSV.

Words are separated by white space.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.corpora.columns import ALMOST
from raykd.corpora.files import BrokenLine
from raykd.corpora.guess import LIKELY, POSSIBLE, Guess, Head
from raykd.corpora.sentence import Faulty, Sentence, Unit, join_pair
from raykd.corpora.source import Name, PerLanguage, TextConfig, for_language
from raykd.corpora.text_columns import (
    LABEL_WORDS,
    TEXT_WORDS,
    Cells,
    find_class_columns,
    find_longest_texts,
    find_text_columns,
)
from raykd.errors import CorpusError
from raykd.pluralise import pluralise
from raykd.spec import Frozen

Place = Annotated[int, Field(ge=0)] | Name
"""A column, from 0, or its name in the header."""
Separator = Literal["tab", "comma", "semicolon"]
SIGNS: Mapping[Separator, str] = MappingProxyType({"tab": "\t", "comma": ",", "semicolon": ";"})
EXCEL = re.compile(r"sep=.?")
"""A first line of CSV in which Excel states the separator."""
ENOUGH = 20
"""Number of lines from which a first line with new values is taken as a header."""
SHOWN = 8
"""Maximum number of values of a column in an error."""


class Columns(Frozen):
    """The columns of the text and the class: from 0, or by names in the header."""

    text: Place = 0
    """The column of the text."""
    second: Place | None = None
    """For pairs of texts: the column of the second text."""
    label: Place = 1
    """The column of the class."""
    part: Place | None = None
    """Column of the part in files with several parts (`part_values`)."""


class TsvSource(TextConfig):
    """One text, or one pair of texts, and its class per line."""

    unit: ClassVar[Unit] = "sentence"
    other_mappings: ClassVar[tuple[str, ...]] = ("labels", "part_values")
    source: Literal["tsv"]
    scheme: Literal["flat"] = "flat"
    columns: PerLanguage[Columns] = Columns()
    """Columns of text and class, counted from 0 or by their names; or a mapping from languages, with `default` for
    the others."""
    separator: Separator | dict[str, Separator] = "tab"
    """Sign between the columns. With `comma` and `semicolon` the files are CSV: cells may stand in quotation marks
    and contain separators and line ends."""
    header: bool | dict[str, bool] = False
    """True if the first line has the names of the columns."""
    labels: dict[Name, Name] = Field(default_factory=dict)
    """New names for the classes of the files, so that all languages have the same: {neutral: NEUTRAL}."""
    part_values: dict[Literal["train", "dev", "test", "unlabelled"], Name] = Field(default_factory=dict)
    """Value of the column `part` in the rows of each part: {train: TRAIN, test: TEST}."""

    @model_validator(mode="after")
    def _columns_are_of_its_languages(self) -> TsvSource:
        columns_by_language = {language: self.columns_of(language) for language in self.languages}
        for language, columns in columns_by_language.items():
            names = [place for place in columns.model_dump().values() if isinstance(place, str)]
            if names and not for_language(self.header, language):
                raise ValueError(f"columns: {names[0]!r} is a name, and there is no header: set header: true")
            missing = [part for part in self.named_parts(language) if part not in self.part_values]
            if columns.part is not None and missing:
                raise ValueError(f"part_values has nothing for {missing[0]}, which is read of {language}")
        if self.part_values and all(columns.part is None for columns in columns_by_language.values()):
            raise ValueError("part_values has no effect: name the column of the part in columns.part")
        single = [language for language, columns in columns_by_language.items() if columns.second is None]
        if 0 < len(single) < len(columns_by_language):
            problem = f"columns: {', '.join(single)} has no second text, and other languages have pairs"
            raise ValueError(f"{problem}: set second for all languages, or for none")
        if not single and self.unlabelled_form != "same":
            raise ValueError("plain text has no pairs: remove unlabelled_form")
        return self

    @property
    @override
    def pairs(self) -> bool:
        """True if sentences are pairs of texts."""
        return self.columns_of(self.languages[0]).second is not None

    def columns_of(self, language: str) -> Columns:
        """Return the columns in the files of a language."""
        return for_language(self.columns, language) or Columns()


def read_rows(lines: Iterable[str], separator: Separator) -> Iterator[tuple[int, list[str] | BrokenLine]]:
    """Yield the nonblank rows of a table.

    Args:
        lines: Lines of a file, without line ends.
        separator: Sign between columns; with any sign but tabs, the lines are CSV (RFC 4180).

    Yields:
        Number of the first line of a row, from 1, and the cells; a broken line in place of cells.
    """
    if separator == "tab":
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, line if isinstance(line, BrokenLine) else line.split("\t")
        return
    broken: list[BrokenLine] = []

    def lines_with_ends() -> Iterator[str]:
        for line in lines:
            broken.extend([line] if isinstance(line, BrokenLine) else [])
            yield f"{line}\n"

    rows = csv.reader(lines_with_ends(), delimiter=SIGNS[separator], strict=True)
    number = 1
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "close the quotation mark, and double those inside a cell"
            yield number, BrokenLine.with_reason("", f"the line is not CSV ({error})", hint)
        else:
            if broken:
                yield number, broken[0]
            elif number == 1 and EXCEL.fullmatch(SIGNS[separator].join(cells)):
                pass
            elif any(map(str.strip, cells)):
                yield number, cells
        broken.clear()
        number = rows.line_num + 1


def refuse_width(columns: int, expected: int, separator: Separator, file: str, number: int) -> None:
    """Raise CorpusError: a line has another number of columns than the first.

    Args:
        columns: Number of columns of the line.
        expected: Number of columns of the first line.
        separator: Sign between columns.
        file: Name of the file.
        number: Number of the line.

    Raises:
        CorpusError: Always.
    """
    problem = f"{pluralise(columns, 'column')} between {separator}s where the first line has {expected}"
    hint = "remove the tab from the text" if separator == "tab" else "put the text in quotation marks"
    raise CorpusError(file, number, problem, f"{hint}, or correct the line")


class _Places(NamedTuple):
    """Numbers of columns; None for a column that is not read."""

    text: int
    second: int | None
    label: int | None
    part: int | None


def parse(
    config: TsvSource, lines: Iterable[str], *, file: str, language: str, part: str
) -> Iterator[Sentence | Faulty]:
    """Parse the sentences of one part in a file.

    Empty lines are skipped. Classes are not read in a part without them.

    Args:
        config: Settings of the corpus.
        lines: Lines of the file.
        file: Name of the file, for errors.
        language: Language of the file.
        part: Part to read; rows of other parts are skipped.

    Raises:
        CorpusError: The header lacks a column, or a file of several parts has no row of this one.
    """
    columns, labelled = config.columns_of(language), config.reads_tags(part, language)
    separator, header = (
        for_language(config.separator, language) or "tab",
        for_language(config.header, language),
    )
    places = None if header else _places(columns, [], file, labelled=labelled)
    part_value = config.part_values.get(part)  # pyright: ignore[reportArgumentType, reportCallIssue]
    other_values, has_rows = set[str](), False
    width = 0  # of the first row
    for number, cells in read_rows(lines, separator):
        if isinstance(cells, BrokenLine):
            yield Faulty(language, (cells.fault(file, number),))
            continue
        if not width and not header and _names_texts(cells):
            problem = f"the line has the names of columns: {', '.join(cells)[:60]}"
            yield Faulty(language, (CorpusError(file, number, problem, "set corpus.header: true"),))
            width = len(cells)
            continue
        if header and not width:
            width = len(cells)
            places = _places(columns, [cell.strip() for cell in cells], file, labelled=labelled)
            continue
        places, width = places or _places(columns, [], file, labelled=labelled), width or len(cells)
        try:
            _refuse_too_few(places, cells, separator, file, number)
            if places.part is not None and (value := cells[places.part].strip()) != part_value:
                other_values |= {value} if len(other_values) < SHOWN else set()
                continue
            has_rows = True
            tokens, tags = _words_and_class(config, places, cells, file, number)
            if len(cells) != width:
                refuse_width(len(cells), width, separator, file, number)
        except CorpusError as error:
            yield Faulty(language, (error,))
        else:
            yield Sentence(tokens, tags, language, (file, number), TsvSource.unit)
    if other_values and not has_rows:
        problem = (
            f"no row has {part_value!r} in the column of the part, but {', '.join(sorted(other_values))}"
        )
        raise CorpusError(file, None, problem, f"set corpus.part_values.{part}")


def _places(columns: Columns, names: list[str], file: str, *, labelled: bool) -> _Places:
    """Numbers of the columns. CorpusError for a name that the header lacks."""

    def place(key: str) -> int | None:
        column = getattr(columns, key)
        if not isinstance(column, str):
            return column
        if column not in names:
            hint = f"set corpus.columns.{key} ({', '.join(names)})"
            raise CorpusError(file, 1, f"there is no column {column!r} in the header", hint)
        return names.index(column)

    text = place("text")
    assert text is not None
    return _Places(text, place("second"), place("label") if labelled else None, place("part"))


def _names_texts(cells: list[str]) -> bool:
    """True for a row of usual names of columns of texts and classes."""
    return len(cells) > 1 and {cell.strip().lower() for cell in cells} <= {*TEXT_WORDS, *LABEL_WORDS}


def _refuse_too_few(places: _Places, cells: list[str], separator: Separator, file: str, number: int) -> None:
    needed = max(place for place in places if place is not None) + 1
    if len(cells) < needed:
        problem = (
            f"{pluralise(len(cells), 'column')} between {separator}s where at least {needed} are expected"
        )
        raise CorpusError(file, number, problem, "correct the line, or set corpus.columns")


def _words_and_class(
    config: TsvSource, places: _Places, cells: list[str], file: str, number: int
) -> tuple[list[str], list[str] | None]:
    """Words of a row, and the class as a list of one; None where classes are not read."""
    tokens = cells[places.text].split()
    if places.second is not None:
        tokens = join_pair(tokens, cells[places.second].split())
    label = None if places.label is None else cells[places.label].strip()
    if not tokens or label == "":
        subject = "the text" if places.second is None else "one of the texts"
        raise CorpusError(file, number, f"{subject} or its class is empty", "correct the line")
    return tokens, None if label is None else [config.labels.get(label, label)]


def guess(head: Head) -> Guess | None:
    """Guess the columns of a table of texts, and whether the first line has names."""
    separator = _separator(head)
    if separator is None:
        if _is_csv(head) and 2 * head.share(re.compile("[,;\t]").search) > 1:
            reason = "CSV: its lines have different numbers of columns; put texts in quotation marks"
            return Guess(source="tsv", reason=reason, confidence=LIKELY, readable=False)
        return None
    _, columns = _columns_of(head.nonblank_lines, separator)
    if find_longest_texts(columns) is not None:
        # Classes are counted in all lines: a file may be sorted by class.
        first, columns = _columns_of(head.all_lines(), separator)
        if (text := find_longest_texts(columns)) is not None:
            return _guess_of_texts(first, columns, text, separator)
    reason = f"columns between {separator}s, none with texts of several words, which are split at white space"
    return Guess(
        source="tsv", reason=reason, confidence=POSSIBLE, readable=False, settings={"separator": separator}
    )


def _separator(head: Head) -> Separator | None:
    """Separator of almost all lines; None for lines without columns."""
    # Commas are in any text: they separate columns only in files that are called CSV.
    likely: dict[Separator, float] = {}
    separators: tuple[Separator, ...] = ("semicolon", "comma", "tab") if _is_csv(head) else ("tab",)
    for separator in separators:
        width, count, total = _usual_width(head.nonblank_lines, separator)
        if count >= ALMOST * total > 0:
            likely[separator] = width
    several: list[Separator] = [separator for separator, width in likely.items() if width > 1]
    if not several and len(likely) == len(SIGNS):  # one column, which only CSV has
        return "comma"
    return max(several, key=lambda separator: likely[separator], default=None)


def _is_csv(head: Head) -> bool:
    return head.name.lower().removesuffix(".gz").endswith(".csv")


def _usual_width(lines: Iterable[str], separator: Separator) -> tuple[int, int, int]:
    """Number of columns of most rows, the number of these rows, and of all rows."""
    widths = Counter(len(cells) for _, cells in read_rows(lines, separator) if isinstance(cells, list))
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    return width, count, widths.total()


def _columns_of(lines: Iterable[str], separator: Separator) -> tuple[list[str], list[Cells]]:
    """Cells of the first row, and counts of the columns in the remaining rows."""
    rows = (
        [cell.strip() for cell in cells]
        for _, cells in read_rows(lines, separator)
        if isinstance(cells, list)
    )
    first = next(rows, [])  # empty where all lines are broken
    columns = [Cells(f"column {place}") for place in range(len(first))]
    # A single line is content, not a header.
    for row in chain([next(rows, first)], rows):
        if len(row) == len(columns):
            for column, cell in zip(columns, row, strict=True):
                column.add(cell)
    return first, columns


def _guess_of_texts(first: list[str], columns: list[Cells], text: Cells, separator: Separator) -> Guess:
    """Guess the settings of a table of texts.

    Args:
        first: Cells of the first row.
        columns: Counts of the columns in the remaining rows.
        text: Column of the longest texts.
        separator: Sign between the columns.
    """
    labels = find_class_columns(columns, text)
    names = dict(zip(columns, first, strict=True))
    header = all(names[column] not in column.values for column in labels or [text])
    # In few lines, the first one always has values that the others lack: that makes it no header.
    has_usual_names = not {name.lower() for name in first}.isdisjoint((*TEXT_WORDS, *LABEL_WORDS))
    header = header and (has_usual_names or (bool(labels) and text.rows >= ENOUGH))
    if header:
        for column, name in names.items():
            column.name = name
    texts = find_text_columns(columns, text, has_names=header)
    tagged = sum(column.tagged for column in columns if column is not texts.text)
    if texts.label is None and 2 * tagged > text.rows:
        reason = "a sentence and all of its tags per line: write one word and its tag per line"
        return Guess(source="tsv", reason=reason, confidence=POSSIBLE, readable=False)
    reason = f"a text per line, {len(first)} columns between {separator}s"
    reason += " with names in the first line" if header else ""
    places = {name: columns.index(column) for name, column in texts.columns.items()}
    return Guess(
        source="tsv", reason=reason, confidence=POSSIBLE, labelled=texts.label is not None, doubts=texts.doubts,
        settings={"columns": places, "header": header} | ({} if separator == "tab" else {"separator": separator}),
    )  # fmt: skip
