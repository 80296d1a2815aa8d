"""Places of the words in running text, and the normal form of words in vocabularies.

Invisible signs (soft hyphens, zero-width spaces, marks of direction, byte order marks) are no words and cut none in
two: words are those of the visible text, and their places count in the text as it came.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

SIGNS, WHITESPACE = "signs", "whitespace"
SPLITS = (SIGNS, WHITESPACE)
"""Ways to split a text into words: at white space and at signs; or at white space alone."""
NORMALIZATION = "NFC"
"""Unicode form of the words in raykd's vocabularies."""
Places = Sequence[tuple[int, int]]
"""Start and end of each word of a text, in characters."""


def _between(*ranges: str) -> set[str]:
    """Return the signs of ranges, each written as its first and its last sign."""
    return {chr(place) for first, last in ranges for place in range(ord(first), ord(last) + 1)}


def _class(signs: Iterable[str]) -> str:
    """Return the signs as the inside of a character class, neighbours as ranges."""
    places = sorted(map(ord, signs))
    firsts = [place for i, place in enumerate(places) if i == 0 or place != places[i - 1] + 1]
    lasts = [place for i, place in enumerate(places, 1) if i == len(places) or place + 1 != places[i]]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(firsts, lasts, strict=True))


# Above U+1FFFF these categories have no signs but the selectors and tags below.
_CATEGORIES = [unicodedata.category(chr(place)) for place in range(0x20000)]


def _of_category(*categories: str) -> set[str]:
    return {chr(place) for place, category in enumerate(_CATEGORIES) if category in categories}


_JOINERS = "\u200c\u200d"
_TONES = "\U0001f3fb-\U0001f3ff"  # of skin
_TAGS = "\U000e0020-\U000e007f"
_REGIONS = "\U0001f1e6-\U0001f1ff"  # two of them are a flag
# Marks that choose the form of a sign, or join letters: without a sign before them they are invisible.
_SELECTORS = _between("\u034f\u034f", "\u17b4\u17b5", "\u180b\u180d", "\u180f\u180f", "\ufe00\ufe0f")
_SELECTORS |= _between("\U000e0100\U000e01ef")
_FILLERS = _between("\u115f\u1160", "\u2065\u2065", "\u3164\u3164", "\uffa0\uffa0", "\ufff0\ufff8")
_FILLERS |= _between("\U000e0000\U000e0fff") - _SELECTORS
_HIDDEN = _FILLERS | {sign for sign in _of_category("Cc", "Cf") if not sign.isspace()} - {*_JOINERS}
# Halfwidth kana have their voicing in a sign of its own.
_MARKS = _of_category("Mn", "Mc", "Me") | _SELECTORS | _between("\uff9e\uff9f")
_VIRAMAS = {sign for sign in _MARKS if unicodedata.combining(sign) == 9}
_PICTURES = (_of_category("So") | _between("\U0001f000\U0001faff")) - _between("\U0001f3fb\U0001f3ff")
# Kana, and the scripts of South-East Asia (line break class SA), have no spaces between words.
_SPACELESS = _between(
    "\u3005\u3007", "\u3021\u3029", "\u3031\u3035", "\u3038\u303c", "\u3041\u309f", "\u30a1\u30ff", "\u31f0\u31ff",
    "\uff66\uff9d", "\U0001aff0\U0001b16f", "\u0e01\u0eff", "\u1000\u109f", "\u1780\u17ff", "\u1950\u19df",
    "\u1a20\u1aaf", "\ua9e0\ua9ff", "\uaa60\uaadf", "\U00011700\U0001174f", "\U000116d0\U000116ff",
)  # fmt: skip
# Ideographs have no spaces between words either, in any script.
_IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00016fe0-\U00018dff\U0001b170-\U0001b2ff\U00020000-\U0003ffff"
)
# Without digits, which are written together in these scripts too, and without marks, which follow a letter.
_ALONE = _class(sign for sign in _SPACELESS if sign.isalnum() and not sign.isdecimal()) + _IDEOGRAPHS

_MARK = f"(?:[{_class(_MARKS)}]|[{_JOINERS}]+(?=[{_class(_MARKS)}])|(?<=[{_class(_VIRAMAS)}])[{_JOINERS}]+)"
_LETTERS = rf"(?:[^\W_0-9\u2139{_ALONE}]+|[0-9](?!\ufe0f?\u20e3)|\u2139(?!\ufe0f)){_MARK}*"
_RUN = f"{_LETTERS}(?:[{_JOINERS}]*{_LETTERS})*"
_SIGN = rf"[^\s\w{_JOINERS}{_class(_SELECTORS)}]"
_SIGN_OR_LETTER = rf"(?:\w|{_SIGN})"
_LOOKS = f"[{_TONES}{_class(_MARKS)}]*"
_WORDS = re.compile(
    rf"[{_ALONE}]{_MARK}*"
    rf"|{_RUN}(?:['’.,\-·\u0387]{_RUN})*"
    rf"|(?:[0-9#*]\ufe0f?\u20e3|\u2139\ufe0f|[{_REGIONS}]{{2}}|\U0001f3f4[{_TAGS}]+){_LOOKS}"
    rf"|[{_class(_PICTURES)}]{_LOOKS}(?:\u200d{_SIGN}{_LOOKS})*"
    rf"|{_SIGN}[{_class(_MARKS)}]*"
    rf"|_+[{_class(_MARKS)}]*"
)
"""A word of visible text: an ideograph, or a letter of a script without spaces; letters and digits, with what joins
them (O'Neill, 3.5, Jean-Luc); a keycap, a flag, a picture with its skin tone and what is joined to it; another sign."""
# Only from the beginning of a run: otherwise a run of joiners would be tried from each joiner, in quadratic time.
_BY_SPACE = re.compile(rf"(?<!\S)[{_JOINERS}{_class(_SELECTORS)}]*{_SIGN_OR_LETTER}\S*")
_PATTERNS = {SIGNS: _WORDS, WHITESPACE: _BY_SPACE}
# The tags of a flag (England's) are invisible, and say which one it is.
_INVISIBLE = re.compile(rf"(\U0001f3f4[{_TAGS}]+)|[{_class(_HIDDEN)}]+")


def word_places(text: str, split: str = SIGNS) -> Places:
    """Return the places of the words of `text`, in order.

    Args:
        text: Any text.
        split: One of `SPLITS`.
    """
    if not _INVISIBLE.search(text):
        return [match.span() for match in _PATTERNS[split].finditer(text)]
    places: list[int] = []
    end = 0
    for match in _INVISIBLE.finditer(text):
        if match[1] is None:
            places += range(end, match.start())
            end = match.end()
    places += range(end, len(text))
    visible = "".join(text[place] for place in places)
    spans = (match.span() for match in _PATTERNS[split].finditer(visible))
    return [(places[first], places[last - 1] + 1) for first, last in spans]


def words_in(text: str, split: str = SIGNS) -> list[str]:
    """Return the words of `text`; see `word_places`."""
    return [text[first:last] for first, last in word_places(text, split)]


def normalize_word(word: str) -> str:
    """Return a word in the form of raykd's vocabularies: in NFC, without invisible signs.

    Args:
        word: Any word.
    """
    if word.isascii() and word.isprintable():
        return word
    return unicodedata.normalize(NORMALIZATION, _INVISIBLE.sub(lambda match: match[1] or "", word))
