"""Texts and sentences from callers: checked, read once, and split into words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from .signs import Places, word_places

SEPARATOR = "\t"
"""Word between the two texts of a pair: white space, unlike any other word."""
UTTERANCE = "<utterance>"
"""Word in front of an utterance that stands for the whole of it."""

Sentences = Sequence[Sequence[str]]
"""Sentences, each a list of its words."""
PosOf = Sequence[Sequence[str] | None]
"""Parts of speech of each sentence, one for every word; None without parts of speech."""
Text = str | Iterable[str] | Iterable[tuple[str, str]]
"""A text, its words, or its words with their parts of speech."""
_HALF = re.compile(r"[\ud800-\udfff]")


def read_text(text: Any, split: str, *, pairs: bool) -> tuple[str, Places, Sequence[str] | None]:
    """Return a text, the places of its words, and their parts of speech if given.

    Words become a text with a space between them.

    Args:
        text: A `Text`.
        split: Way to split a text, one of `SPLITS`.
        pairs: Whether the text must be a pair of texts.

    Raises:
        TypeError: The text is neither a string nor words.
        ValueError: The text is not Unicode, or does not pass `check_pair`.
    """
    if isinstance(text, str):
        check_unicode(text)
        if not pairs:
            return text, word_places(text, split), None
        check_pair(text)
        between = text.index(SEPARATOR)
        after = [(a + between + 1, b + between + 1) for a, b in word_places(text[between + 1 :], split)]
        return text, [*word_places(text[:between], split), (between, between + 1), *after], None
    words, pos = _words_and_pos(text)
    if pairs:
        check_pair(words)
    ends = list(accumulate(len(word) + 1 for word in words))
    places = [(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
    return " ".join(words), places, pos


def _words_and_pos(text: Any) -> tuple[list[str], list[str] | None]:
    items = _as_list(text, "a text is a string, or a list of its words")
    if not items or isinstance(items[0], str):
        return checked_words(items), None
    if not all(isinstance(item, tuple | list) and len(item) == 2 for item in items):
        raise TypeError(
            f"a word is a string, or a pair of a word and its part of speech; got {_abbreviate(items)}"
        )
    return checked_words([word for word, _ in items]), checked_words([pos for _, pos in items])


def checked_sentences(sentences: Any, *, pairs: bool = False) -> list[list[str]]:
    """Return sentences as lists of words, checked and read once.

    Args:
        sentences: Iterable of iterables of words.
        pairs: Whether sentences must be pairs.

    Raises:
        TypeError: A sentence is a string, not a list of words; or a word is no string.
        ValueError: A sentence has no words, or is no pair although `pairs` is set; or a word is not Unicode.
    """
    checked = []
    for words in _as_list(sentences, "sentences are lists of words"):
        checked.append(checked_words(_as_list(words, "a sentence is a list of words")))
        if not checked[-1]:
            raise ValueError("a sentence has no words; remove it")
        if pairs:
            check_pair(checked[-1])
    return checked


def checked_words(words: list[Any]) -> list[str]:
    """Return the words of one sentence; TypeError if one is no string, ValueError if one is not Unicode."""
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"a word is a string, got {_abbreviate(word)} in {_abbreviate(words)}")
    check_unicode(" ".join(words))
    return words


def check_unicode(text: str) -> None:
    """Raise ValueError if `text` has half of a surrogate pair, which JSON can write and no model reads."""
    if not text.isascii() and (half := _HALF.search(text)):
        problem = (
            f"{_abbreviate(text)} is not Unicode: it has half of a surrogate pair at character {half.start()}"
        )
        raise ValueError(f"{problem}; remove it, or decode the text again")


def refuse_no_texts(texts: Any) -> None:
    """Raise TypeError unless `texts` is an iterable of texts.

    Args:
        texts: The caller's argument.
    """
    if not _iterable(texts):
        raise TypeError(f"give a text (a string), or a list of texts; got {_abbreviate(texts)}{_hint(texts)}")


def _as_list(values: Any, expected: str) -> list[Any]:
    if isinstance(values, str):
        problem = f"{expected}, got the string {_abbreviate(values)}"
        raise TypeError(f"{problem}; call the labeller itself with text")
    if not _iterable(values):
        raise TypeError(f"{expected}, got {_abbreviate(values)}{_hint(values)}")
    return list(values)


def _iterable(values: Any) -> bool:
    # Bytes would be read as numbers, and a mapping as its keys.
    return isinstance(values, Iterable) and not isinstance(values, bytes | bytearray | Mapping)


def _hint(value: Any) -> str:
    return "; decode it: text.decode('utf-8')" if isinstance(value, bytes | bytearray) else ""


def _abbreviate(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def join_pair(first: str, second: str) -> str:
    """Return a pair of texts as first text, with a tab between them and no second tab.

    Args:
        first: First text.
        second: Second text.
    """
    return f"{first.replace(SEPARATOR, ' ')}{SEPARATOR}{second.replace(SEPARATOR, ' ')}"


def check_pair(pair: str | Sequence[str]) -> None:
    """Raise ValueError unless `pair` is two texts separated by a tab, or their words with a tab as a word.

    Args:
        pair: A text, or its words.
    """
    parts = (pair if isinstance(pair, str) else " ".join(pair)).split(SEPARATOR)
    if len(parts) != 2 or not all(map(str.strip, parts)):
        problem = (
            f"the model labels pairs of texts, and {pair[:40]!r} is not two texts with one tab between them"
        )
        raise ValueError(f"{problem}; write both, for example 'It rains.\\tIt is wet.'")
