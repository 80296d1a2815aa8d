"""The likely content of each column in a file with one word per line, judged by the first lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from raykd.corpora.column_files import Beginning, Layout, is_header, sentence_rows, starts_document
from raykd.corpora.files import BrokenLine
from raykd.forms.tag_schemes import has_span_form
from raykd.forms.tag_spellings import find_spelling, outside_tag
from raykd.forms.tree.codes import UPOS
from raykd.metrics.bioes import OUTSIDE

Kind = Literal["index", "words", "spans", "runs", "flat", "sentence", "constant", "other"]
"""Content of a column. `spans`: tags with letters (B-PER); `runs`: the type alone on each word of a span (PER PER O);
`flat`: one tag per word; `sentence`: the same value in all lines of a sentence; `constant`: one value in the file.
"""
Rows = list[list[str]]

WORD_ID = re.compile(r"[0-9]+([-.][0-9]+)?")
_CHUNKS = "NP VP PP ADVP ADJP SBAR PRT CONJP INTJ LST UCP PC NC VC"
CHUNKS = frozenset(_CHUNKS.split())
MOST_FLAT, MOST_TYPES = 300, 60
"""Maximum number of different tags in a `flat` column, and of different types in a `runs` column."""
ALMOST = 0.98
"""Share of the values that must be of one kind: real files have some faulty lines, which the reader reports."""


@dataclass(frozen=True)
class Column:
    """A column and its likely content.

    Attributes:
        place: Number of the column, from 0.
        kind: Kind of content.
        distinct: Number of different values; for spans, of different types.
        examples: The most frequent values; for spans, the most frequent types.
        inside: Share of words inside spans; 0 for other columns.
    """

    place: int
    kind: Kind
    distinct: int
    examples: tuple[str, ...]
    inside: float = 0

    def describe(self) -> str:
        """Return the content in words."""
        some = ", ".join(self.examples[:4]) + (", …" if self.distinct > 4 else "")
        return {
            "index": "running numbers",
            "words": f"words ({some})",
            "spans": f"spans ({some})",
            "runs": f"one tag for each word of a span ({some})",
            "flat": f"one tag for each word ({some})",
            "sentence": f"one value for each sentence ({some})",
            "constant": f"always {some}",
            "other": f"other values ({some})",
        }[self.kind]


def classify_columns(start: Beginning) -> list[Column]:
    """Classify the columns of a file by the first lines.

    Args:
        start: Beginning of the file.

    Returns:
        All columns; an empty list if the file does not have one word per line and empty lines between sentences.
    """
    sentences, lines = _sentences(start), start.lines
    rows = [row for sentence in sentences for row in sentence]
    content = sum(not line.startswith("#") for line in lines if line.strip() and not starts_document(line))
    if not rows or len(rows) < ALMOST * content:
        return []
    width = len(rows[0])
    spaces = [sum(len(row[place].split()) for row in rows) / len(rows) for place in range(width)]
    # Words of Vietnamese corpora have a few spaces inside; cells with more are texts.
    # With fewer than two lines between empty lines, the lines are names or short texts, not words.
    short = len(rows) < 2 * len(sentences) and (width == 1 or start.separator == " ")
    if max(spaces) > 3 or short:
        return []
    columns = [
        _classify_column(place, [[row[place] for row in rows] for rows in sentences])
        for place in range(width)
    ]
    words = _find_word_column(columns)
    return [_as_word_column(column, sentences) if column.place == words else column for column in columns]


def describe_columns(columns: Sequence[Column], *, tag: int | None = None) -> str:
    """Describe the columns in words.

    Args:
        columns: Columns of a file.
        tag: Number of the column read as tags, which is marked; None marks no column.
    """
    return "; ".join(
        f"{column.place} {column.describe()}{', taken as the tags' if column.place == tag else ''}"
        for column in columns
    )


def tag_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that may hold tags, the likeliest first.

    Columns of spans come before those of flat tags. Among columns of spans, names come before chunks, then columns
    with more words in spans, then later columns. Columns of flat tags begin with universal parts of speech.
    """
    flat = [column for column in columns if column.kind == "flat"]
    flat.sort(key=lambda column: not set(column.examples) <= UPOS)
    return [*span_columns(columns), *flat]


def span_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of kind `spans`, then those of kind `runs`, each the likeliest first.

    Args:
        columns: All columns of a file.
    """
    spans = [column for column in reversed(columns) if column.kind == "spans"]
    # In files with nested names, as GermEval, the column of the outer names has more words in spans.
    spans.sort(key=lambda column: (bool(CHUNKS & set(column.examples)), -round(column.inside, 2)))
    return [*spans, *(column for column in columns if column.kind == "runs")]


def _classify_column(place: int, sentences: list[list[str]]) -> Column:
    counts = Counter(value for values in sentences for value in values)
    frequent = tuple(value for value, _ in counts.most_common(5))
    total = counts.total()
    if _is_index(sentences):
        return Column(place, "index", len(counts), frequent)
    if len(counts) == 1 and total > len(sentences):
        return Column(place, "constant", 1, frequent)
    spelling = find_spelling(counts, "auto")
    read = {value: spelling.read(value) for value in counts}
    spans = {value: name for value, name in read.items() if name and has_span_form(name)}
    inside = sum(counts[value] for value in spans)
    outside = sum(counts[value] for value, name in read.items() if name == OUTSIDE)
    # A file that mixes forms of tags is still one of spans: the reader then reports the rare forms by line.
    mixed = counts["O"] > 0.4 * total and {"B", "I"} <= {name[0] for name in spans.values()}
    if spans and (mixed or inside + outside >= ALMOST * total):
        types = Counter[str]()
        for value, name in spans.items():
            types[name[2:]] += counts[value]
        return Column(
            place, "spans", len(types), tuple(kind for kind, _ in types.most_common(5)), inside / total
        )
    no_span = outside_tag(counts) or OUTSIDE
    names = tuple(value for value, _ in counts.most_common(6) if value != no_span)[:5]
    span_values = set(counts) - {no_span}
    if (
        0 < len(span_values) <= MOST_TYPES
        and counts[no_span] > 0.4 * total
        and all(map(_may_be_type, span_values))
    ):
        return Column(place, "runs", len(span_values), names)
    long = [values for values in sentences if len(values) > 1]
    if len(long) > 2 and len(counts) < len(sentences) and all(len(set(values)) == 1 for values in long):
        return Column(place, "sentence", len(counts), frequent)
    numbers = sum(count for value, count in counts.items() if value.isdigit())
    # `_` and `-` mark an empty cell.
    varied = counts.most_common(1)[0][1] < 0.95 * total and len(set(counts) - {"_", "-"}) > 1
    if varied and len(counts) <= min(MOST_FLAT, max(5, total / 3)) and numbers < total / 2:
        return Column(place, "flat", len(counts), frequent)
    return Column(place, "other", len(counts), frequent)


def _may_be_type(value: str) -> bool:
    return len(value) > 1 and not value.isdigit()


def _is_index(sentences: list[list[str]]) -> bool:
    """Return True for 0, 1, 2… or 1, 2, 3… in almost all sentences, with or without CoNLL-U's 3-4 and 8.1."""
    if sum(map(len, sentences)) <= len(sentences):
        return False
    running = 0
    for values in sentences:
        plain = [
            value for value in values if not ("-" in value or "." in value) or not WORD_ID.fullmatch(value)
        ]
        numbers = [[str(first + i) for i in range(len(plain))] for first in (0, 1)]
        running += bool(plain) and plain in numbers  # a sentence of ids like 8.1 alone has no running numbers
    return running >= ALMOST * len(sentences)


def _find_word_column(columns: Sequence[Column]) -> int | None:
    """Return the first column that may hold words, unless a later one has far more different values."""
    could = [column for column in columns if column.kind in ("flat", "sentence", "other", "constant", "runs")]
    if not could:
        return None
    richest = max(could, key=lambda column: column.distinct)
    first = could[0]
    return first.place if 3 * first.distinct >= richest.distinct else richest.place


def _as_word_column(column: Column, sentences: Sequence[Rows]) -> Column:
    counts = Counter(row[column.place] for rows in sentences for row in rows)
    letters = [word for word, _ in counts.most_common() if word.isalpha() and len(word) > 2][:5]
    return Column(column.place, "words", len(counts), tuple(letters) or column.examples)


def _sentences(start: Beginning) -> list[Rows]:
    """Return the cells of each sentence, without comments, header, and lines that have too few columns."""
    layout = Layout(start.cut, start.width, 0, None, exact=False, comment="#")
    blocks = [
        [row[: start.width] for row in rows if type(row) is not BrokenLine and len(row) >= start.width]
        for _, rows in sentence_rows(start.lines, layout)
    ]
    if blocks and blocks[0] and is_header(blocks[0][0]):
        blocks[0] = blocks[0][1:]
    return [block for block in blocks if block]
