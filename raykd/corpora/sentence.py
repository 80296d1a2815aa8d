"""Sentences as files have them, before tags are converted to the internal scheme."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from raykd.errors import CorpusError
from raykd.forms.utterance_marks import UTTERANCE

SEPARATOR = "\t"
"""The word between the two texts of a pair: white space, as no other word is.

The labeller in `serving/` defines it again, as it ships alone."""

Unit = Literal["word", "sentence"]
"""Unit that one tag belongs to: each word, or the whole sentence (text classification)."""


class Sentence(NamedTuple):
    """One sentence of a file.

    Attributes:
        tokens: Words; for a pair of texts the words of both, with `SEPARATOR` as a word between them.
        tags: Tags in the file's scheme: one per word, or one for the whole sentence, as `unit` says; None:
            unlabelled.
        language: Language of the sentence.
        origin: File, and 1-based line of the first word, for errors found later. It is no part of any identity.
        unit: Unit that one tag belongs to.
        heads: In a treebank, the number of each word's head, 0 for the root; tags are then relations.
        pos: In a treebank, the part of speech of each word.
        text: Raw text, where the source has it.
        offsets: First character of each word in `text`, and the one behind its last.
    """

    tokens: list[str]
    tags: list[str] | None
    language: str
    origin: tuple[str, int | None] | None = None
    unit: Unit = "word"
    heads: list[int] | None = None
    pos: list[str] | None = None
    text: str | None = None
    offsets: Sequence[tuple[int, int]] | None = None


def display_words(tokens: Sequence[str]) -> str:
    """Return the words of a sentence for people, without the artificial word of utterances.

    Args:
        tokens: Words of a sentence.
    """
    return " ".join(word for word in tokens if word != UTTERANCE)


class Faulty(NamedTuple):
    """An unreadable sentence, or the unreadable rest of a file."""

    language: str
    faults: tuple[CorpusError, ...]
    whole_file: bool = False
    """True if the rest of the file cannot be read either."""


Note = Literal["widened", "inner", "rejected", "bare", "wordless", "endless"]
"""Changes during reading, and records left out, that are no faults.

widened: a span cuts a word. inner: a span overlaps a longer one. rejected: annotators rejected the record. bare:
nobody annotated it. wordless: it has no word. endless: a document has no empty lines."""


class ReadingNote(NamedTuple):
    """A change or an omission to be counted and reported beside the sentences."""

    language: str
    note: Note
    example: str
    """Place and content of an example."""
    count: int = 1


def join_pair(first: list[str], second: list[str]) -> list[str]:
    """Return the words of a pair of texts; empty where one of them has none.

    Args:
        first: Words of the first text.
        second: Words of the second text.
    """
    return [*first, SEPARATOR, *second] if first and second else []


def check_pair(words: Sequence[str]) -> None:
    """Check the words of a pair of texts.

    Args:
        words: Words of the sentence, with `SEPARATOR` as a word between the texts.

    Raises:
        ValueError: There are not two texts.
    """
    parts = " ".join(words).split(SEPARATOR)
    if len(parts) != 2 or not all(map(str.strip, parts)):
        problem = (
            f"the model labels pairs of texts, and {words[:40]!r} is not two texts with one tab between them"
        )
        raise ValueError(f"{problem}; write both, for example 'It rains.\\tIt is wet.'")
