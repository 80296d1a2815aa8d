"""A sentence as a file holds it, before its tags are brought to the internal scheme."""

from typing import NamedTuple

PARTS = ("train", "unlabelled", "dev", "test")
"""The parts of a corpus, in the order in which they are stored and shown."""


class Sentence(NamedTuple):
    """One sentence: its words, its tags and its language.

    `tags` has one tag per word in the file's own scheme, None when the sentence is unlabelled. `label` is the
    class of the whole sentence (text classification). `origin` is the file and the 1-based line of the first
    word, so that a fault found later can still be told with its place; it takes no part in any identity.
    """

    tokens: list[str]
    tags: list[str] | None
    language: str
    label: str | None = None
    origin: tuple[str, int | None] | None = None
