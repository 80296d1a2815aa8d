"""The visible characters of a text: white space and invisible signs are left out.

Annotators split texts in other ways than a corpus does, and write spaces differently. Two texts are the same if their
visible characters are; a word finds its place in the annotator's text by its visible characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

KEY_BYTES = 16
_PLANES = 0x20000
"""Characters beyond have no invisible signs but tags, which are left out too."""


@lru_cache(maxsize=1)
def _invisible() -> re.Pattern[str]:
    hidden = (chr(place) for place in range(_PLANES) if unicodedata.category(chr(place)) in ("Cc", "Cf"))
    return re.compile(rf"[\s{''.join(map(re.escape, hidden))}\U000e0000-\U000e0fff]+")


def visible_text(text: str) -> str:
    """Return the visible characters of a text.

    Args:
        text: Any text.
    """
    return _invisible().sub("", text)


def text_key(words: Iterable[str] | str) -> bytes:
    """Return the key under which the answer to a text is stored: a hash of its visible characters.

    Args:
        words: Words of a sentence, or a text.
    """
    text = words if isinstance(words, str) else "".join(words)
    return blake2b(visible_text(text).encode(), digest_size=KEY_BYTES).digest()


def word_places(text: str, words: Sequence[str], *, start: int = 0) -> list[tuple[int, int]]:
    """Return the place of each word in a text: its first character, and the one behind its last.

    Args:
        text: Text of an annotator.
        words: Words of a sentence whose visible characters are in the text.
        start: Number of visible characters before the sentence.

    Raises:
        ValueError: The words are not the text, from `start` on.
    """
    invisible = _invisible()
    places = [place for place, sign in enumerate(text) if not invisible.match(sign)]
    spans, first = list[tuple[int, int]](), start
    for word in words:
        letters = visible_text(word)
        behind = first + len(letters)
        if behind > len(places) or any(text[places[first + i]] != sign for i, sign in enumerate(letters)):
            raise ValueError(f"the text has no {word!r} at its visible character {first}")
        if letters:
            spans.append((places[first], places[behind - 1] + 1))
        else:  # a word of invisible signs: an empty place behind the last word
            end = spans[-1][1] if spans else 0
            spans.append((end, end))
        first = behind
    return spans
