"""Changes of reading that are no faults, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
        "endless": ("document", "{have} no empty lines and {were} cut into sentences of at most 1,000 words"),
        "wordless": ("record", "{have} no word and {were} left out"),
    }
)
"""Note → what is counted, and what became of it."""


def note_message(note: str, count: int, place: str = "") -> str:
    """A note in words: `3 spans of train en cut a word and were extended to whole words`."""
    noun, what = NOTES[note]
    one = count == 1
    what = what.format(were="was" if one else "were", have="has" if one else "have", s="s" if one else "")
    return f"{pluralise(count, noun)}{f' of {place}' if place else ''} {what}"
