"""Messages about changes during reading, which are no faults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raykd.corpora.column_files import LONGEST
from raykd.pluralise import pluralise

NOTES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "widened": ("span", "cut{s} a word and {were} extended to whole words"),
        "inner": ("span", "overlap{s} a longer one and {were} left out (nested: outermost)"),
        "rejected": ("record", "{were} rejected, ignored or cancelled by annotators and left out"),
        "bare": (
            "record",
            "{have} no annotations and {were} left out (named in corpus.unlabelled, they are text without labels)",
        ),
        "endless": (
            "document",
            "{have} no empty lines and {were} cut into sentences of at most " + f"{LONGEST:,} words",
        ),
        "wordless": ("record", "{have} no word and {were} left out"),
    }
)
"""Note → the noun that is counted, and the end of the message."""


def note_message(note: str, count: int, place: str = "") -> str:
    """Return a note in words: `3 spans of train en cut a word and were extended to whole words`.

    Args:
        note: Key in `NOTES`.
        count: Number of cases.
        place: Part and language, or empty.
    """
    noun, change = NOTES[note]
    singular = count == 1
    change = change.format(
        were="was" if singular else "were", have="has" if singular else "have", s="s" if singular else ""
    )
    return f"{pluralise(count, noun)}{f' of {place}' if place else ''} {change}"
