"""Markdown tables, printed row by row as their figures come."""

from __future__ import annotations


def print_head(*names: str) -> None:
    print(f"| {' | '.join(names)} |")
    print("|---" + "|---:" * (len(names) - 1) + "|")


def print_row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |")
