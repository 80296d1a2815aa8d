"""Numbers with a noun in the singular or plural, for messages."""

from __future__ import annotations


def pluralise(number: int, noun: str, plural: str = "") -> str:
    """Return a number and a noun: `1 text`, `1,234 texts`.

    Args:
        number: the count.
        noun: the noun in the singular.
        plural: the plural, if it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
