"""Text as words: where the words of a text are, and what is asked of words that come as a list."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

_MARKS = "".join(
    sign for sign in map(chr, range(0x300, 0x20000)) if unicodedata.category(sign)[0] == "M"
) + "\u200c\u200d"  # fmt: skip
WORDS = re.compile(
    # Ideographs, kana and the scripts of South-East Asia have no spaces: each character is a word.
    rf"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff][{_MARKS}]*"
    rf"|(?:[^\W_][{_MARKS}]*)+(?:['’.,\-·](?:[^\W_][{_MARKS}]*)+)*"
    rf"|[^\s\w][{_MARKS}]*|_+"
)
"""A word of a text: letters and digits, with what joins them (O'Neill, 3.5, Jean-Luc); any other sign is one alone.
Accents, vowel signs and joiners belong to the character before them."""
SEPARATOR = "\t"
"""The word between the two texts of a pair: white space, which no other word is."""
UTTERANCE = "<utterance>"
"""The word in front of an utterance that stands for the whole of it."""

Sentences = Sequence[Sequence[str]]
"""Sentences, each a list of its words."""
PosOf = Sequence[Sequence[str] | None]
"""The parts of speech of each sentence, one for every word; None where there are none."""
Places = Sequence[tuple[int, int]]
"""Start and end of each word of a text, in characters."""
Text = str | Sequence[str] | Sequence[tuple[str, str]]
"""A text, its words, or its words with their parts of speech."""


def word_pattern(unit: str, *, pairs: bool) -> re.Pattern[str]:
    """The pattern of a word in texts of a model with one label for each `unit`, a word or a sentence."""
    if unit != "sentence":
        return WORDS
    # Training too splits texts with one label each at white space.
    return re.compile(rf"{SEPARATOR}|\S+" if pairs else r"\S+")


def divided(text: Text, word: re.Pattern[str], *, pairs: bool) -> tuple[str, Places, Sequence[str] | None]:
    """A text, the place of each of its words, and their parts of speech where they have some. Words become a text with
    a space between them. With `pairs` it raises what `check_pair` raises."""
    words: Any = text
    pos = None
    if text and not isinstance(text[0], str):
        words, pos = [word for word, _ in words], [pos for _, pos in words]
    if pairs:
        check_pair(words)
    if isinstance(words, str):
        return words, [match.span() for match in word.finditer(words)], pos
    ends = list(accumulate(len(word) + 1 for word in words))
    return (
        " ".join(words),
        [(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)],
        pos,
    )


def checked_sentences(sentences: Sentences, *, pairs: bool = False) -> list[Sequence[str]]:
    """The sentences as a list.

    Raises:
        TypeError: a sentence is a string, not a list of words.
        ValueError: a sentence has no words, or is no pair although `pairs` is set.
    """
    for words in sentences:
        if isinstance(words, str):
            problem = f"a sentence is a list of words, got the string {words[:40]!r}"
            raise TypeError(f"{problem}; call the labeller itself with text")
        if not len(words):
            raise ValueError("a sentence has no words; remove it")
    for words in sentences if pairs else ():
        check_pair(words)
    return list(sentences)


def joined(one: str, other: str) -> str:
    """A pair of texts as one text, with a tab between them and no other."""
    return f"{one.replace(SEPARATOR, ' ')}{SEPARATOR}{other.replace(SEPARATOR, ' ')}"


def check_pair(pair: str | Sequence[str]) -> None:
    """Raise ValueError unless `pair` is two texts with a tab between them, or their words with a tab as a word."""
    parts = (pair if isinstance(pair, str) else " ".join(pair)).split(SEPARATOR)
    if len(parts) != 2 or not all(map(str.strip, parts)):
        problem = (
            f"the model labels pairs of texts, and {pair[:40]!r} is not two texts with one tab between them"
        )
        raise ValueError(f"{problem}; write both, for example 'It rains.\\tIt is wet.'")
