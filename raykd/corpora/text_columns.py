"""Columns of texts and classes in a table: for TSV, Parquet and JSON Lines alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from raykd.corpora.columns import ALMOST

LABEL_WORDS = (
    "label", "class", "intent", "category", "sentiment", "judgment", "judgement", "gold", "topic", "emotion",
    "polarity", "stars", "rating", "target",
)  # fmt: skip
TEXT_WORDS = ("text", "sentence", "review", "utterance", "content", "tweet", "document", "body")
MOST_CLASSES = 200
"""Maximum number of values in a column of classes."""
SEVERAL_WORDS = 1.2
"""Minimum mean number of words in a column of texts."""
PAIRS = (("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage"))
"""Names of the columns of two texts that belong together, beside names that end in 1 and 2 or a and b."""


class Cells:
    """Counts of a column's cells.

    Attributes:
        name: Name of the column.
        rows: Number of cells.
        filled: Number of cells that are not blank.
        words: Number of words in all cells.
        tagged: Number of cells that look like the tags of a sentence.
        values: Distinct filled cells, up to one more than `MOST_CLASSES`.
    """

    def __init__(self, name: str):
        self.name = name
        self.filled = self.rows = self.words = self.tagged = 0
        self.values: set[str] = set()

    def add(self, value: object) -> None:
        """Count a cell; None is empty."""
        cell = "" if value is None else str(value).strip()
        self.rows += 1
        self.filled += bool(cell)
        self.words += len(cell.split())
        self.tagged += cell.split(maxsplit=1)[:1] == ["O"] or "B-" in cell
        if cell and len(self.values) <= MOST_CLASSES:
            self.values.add(cell)

    @property
    def mean_words(self) -> float:
        """Mean number of words of a filled cell."""
        return self.words / max(self.filled, 1)


@dataclass(frozen=True)
class TextTable:
    """The columns to read from a table of texts."""

    text: Cells
    second: Cells | None
    label: Cells | None
    doubts: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, Cells]:
        """Columns by their keys in the settings of a source."""
        optional = {"text": self.text, "label": self.label, "second": self.second}
        return {name: column for name, column in optional.items() if column is not None}


def find_longest_texts(columns: Iterable[Cells]) -> Cells | None:
    """Return the column of the longest texts; None where no column has texts of several words."""
    longest = max(columns, key=lambda column: column.mean_words, default=None)
    return longest if longest is not None and longest.mean_words >= SEVERAL_WORDS else None


def find_class_columns(columns: Iterable[Cells], text: Cells) -> list[Cells]:
    """Return the possible columns of the classes of `text`: short, hardly ever empty, and of few values."""
    return [
        column for column in columns
        if column is not text and column.mean_words < 4 and column.filled >= ALMOST * column.rows
        and len(column.values) <= min(MOST_CLASSES, max(2, column.rows / 3))
    ]  # fmt: skip


def find_text_columns(columns: Sequence[Cells], text: Cells, *, has_names: bool = True) -> TextTable:
    """Choose the columns of texts and classes, by their names where they have any.

    Args:
        columns: All columns.
        text: Column of the longest texts.
        has_names: False if the table has no names of columns.
    """
    class_columns = find_class_columns(columns, text)
    text_columns = [column for column in columns if 2 * column.mean_words >= text.mean_words]
    text = _named_like(text_columns, TEXT_WORDS) or text
    class_columns = [column for column in class_columns if column is not text]
    candidates = sorted(
        (column for column in class_columns if len(column.values) > 1), key=lambda column: len(column.values)
    )
    label = _named_like(class_columns, LABEL_WORDS) or next(iter(candidates), None)
    if label is None:
        return TextTable(text, None, None)
    doubts, second = [], None
    if has_names and (
        pair := next((pair for pair in permutations(text_columns, 2) if _is_pair(*pair)), None)
    ):
        text, second = pair
    elif other_columns := [column for column in text_columns if column is not text]:
        names = ", ".join(column.name for column in other_columns[:3])
        hint = "of pairs name the other column too (columns.second, task: pairs)"
        doubts.append(f"several columns have texts: {text.name} is taken, not {names}; {hint}")
    if other_columns := [column for column in columns if column in candidates and column is not label]:
        names = ", ".join(f"{column.name} ({len(column.values)} values)" for column in other_columns[:4])
        doubts.append(
            f"{label.name} ({len(label.values)} values) is taken as the class; also possible: {names}"
        )
    return TextTable(text, second, label, tuple(doubts))


def _named_like(columns: Sequence[Cells], words: Sequence[str]) -> Cells | None:
    return next((column for word in words for column in columns if word in column.name.lower()), None)


def _is_pair(first_column: Cells, second_column: Cells) -> bool:
    first, second = first_column.name.lower(), second_column.name.lower()
    same = first[:-1] == second[:-1] and (first[-1:], second[-1:]) in (("1", "2"), ("a", "b"))
    return same or (first, second) in PAIRS
