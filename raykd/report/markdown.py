"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def markdown_table(
    headings: Sequence[str], rows: Iterable[Iterable[object]], *, left: Collection[int] = (0,)
) -> list[str]:
    """The lines of a table. The columns at the places `left` are aligned left, the others right."""
    rules = ["---" if place in left else "---:" for place in range(len(headings))]
    return ["| " + " | ".join(map(_cell, row)) + " |" for row in (headings, rules, *rows)]


def _cell(cell: object) -> str:
    return str(cell).replace("|", "\\|")
