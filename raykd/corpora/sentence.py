"""A sentence as a file has it, before its tags are brought to the internal scheme."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from raykd.errors import CorpusError
from raykd.forms.marks import UTTERANCE

SEPARATOR = "\t"
"""The word between the two texts of a pair: white space, which no other word is. The labeller in `serving/` has it once
more, as it ships alone."""

Unit = Literal["word", "sentence"]
"""What one tag belongs to: each word, or the whole sentence (text classification)."""


class Sentence(NamedTuple):
    """One sentence: its words, its tags and its language.

    `tags` are in the file's own scheme: one per word, or one for the whole sentence (its class), as `unit` says;
    None when the sentence is unlabelled. `origin` is the file and the 1-based line of the first word, for errors
    that are found later; it takes no part in any identity. Of a pair of texts `tokens` are the words of both, with
    `SEPARATOR` as a word between them. `heads` and `pos` are those of a treebank's sentence, one
    for each word: the number of its head, 0 for the root, and its part of speech; its tags are then relations.
    `text` is the raw text, where the source has it, with the first character of each word and the one behind its last
    in `offsets`.
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
    """The words of a sentence for people, without the one that stands for an utterance."""
    return " ".join(word for word in tokens if word != UTTERANCE)


class Faulty(NamedTuple):
    """What stands in the place of a sentence that cannot be read, or of all that follows in its file."""

    language: str
    faults: tuple[CorpusError, ...]
    whole_file: bool = False
    """The rest of the file cannot be read either."""


Note = Literal["widened", "inner", "rejected", "bare", "wordless", "endless"]
"""Changes of reading, and records that are left out, that are no faults: spans that cut a word, spans that overlap a
longer one, records that annotators rejected, records that nobody annotated, records without a word, documents without
empty lines."""


class ReadingNote(NamedTuple):
    """Something to be counted and reported beside the sentences that are read."""

    language: str
    note: Note
    example: str
    """The place, and what stands there."""
    count: int = 1


def join_pair(first: list[str], second: list[str]) -> list[str]:
    """The words of a pair of texts; empty where one of them has none."""
    return [*first, SEPARATOR, *second] if first and second else []


def check_pair(words: Sequence[str]) -> None:
    """Raise ValueError unless `words` are those of two texts, with `SEPARATOR` as a word between them."""
    parts = " ".join(words).split(SEPARATOR)
    if len(parts) != 2 or not all(map(str.strip, parts)):
        problem = (
            f"the model labels pairs of texts, and {words[:40]!r} is not two texts with one tab between them"
        )
        raise ValueError(f"{problem}; write both, for example 'It rains.\\tIt is wet.'")
