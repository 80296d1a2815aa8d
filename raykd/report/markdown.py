"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def markdown_table(
    headings: Sequence[str], rows: Iterable[Iterable[object]], *, left_aligned: Collection[int] = (0,)
) -> list[str]:
    """Return the lines of a table.

    Args:
        headings: Headings of the columns.
        rows: Cells of each row.
        left_aligned: Indices of the columns that are aligned left; the others are aligned right.
    """
    rules = ["---" if place in left_aligned else "---:" for place in range(len(headings))]
    return ["| " + " | ".join(map(_cell, row)) + " |" for row in (headings, rules, *rows)]


def _cell(cell: object) -> str:
    return str(cell).replace("|", "\\|")
