"""Counts with their noun, as messages say them."""

from __future__ import annotations


def pluralise(number: int, noun: str, plural: str = "") -> str:
    """`1 text`, `1,234 texts`; `plural` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
