"""Detection of text encodings beside UTF-8, as far as bytes tell."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType

MARKS: Mapping[bytes, str] = MappingProxyType(
    {
        codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is its beginning
        codecs.BOM_UTF32_BE: "utf-32",
        codecs.BOM_UTF16_LE: "utf-16",
        codecs.BOM_UTF16_BE: "utf-16",
        codecs.BOM_UTF8: "utf-8",
    }
)
"""Byte-order marks with their encodings."""
SAMPLE = 2**16
"""Number of bytes of words that are examined."""
MOST_OF_WORD = 0.6
"""Maximum share of letters outside ASCII in words of Latin letters; French words with accents have a third."""
FEWEST = 20
"""Minimum number of bytes outside ASCII from which frequencies tell an encoding."""

_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_WORDS = re.compile(rb"[^\s\x00-\x20]*[\x80-\xff][^\s\x00-\x20]*")
_INNER = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f](?=[^\W\d_])")
_CENTRAL = ("cp1250", "iso8859_2")


def likely_encoding(data: bytes) -> str | None:
    """Return the likely encoding of a text.

    Args:
        data: A text or its beginning; a single line tells less.

    Returns:
        A name that Python knows; `utf-8` also where most of what is not ASCII is UTF-8, and single bytes are damaged;
        None where the bytes do not tell.
    """
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return encoding
    if encoding := _with_zero_bytes(data):
        return encoding
    words = b" ".join(_WORDS.findall(data[: 16 * SAMPLE]))[:SAMPLE]
    high = sum(byte > 0x7F for byte in words)
    whole = _MULTIBYTE.findall(words)
    if 3 * sum(map(len, whole)) >= 2 * high:
        return "utf-8"
    western = "cp1252" if any(0x80 <= byte <= 0x9F for byte in words) else "latin-1"
    letters = sum(byte > 0x7F or chr(byte).isalpha() for byte in words)
    if high <= MOST_OF_WORD * letters and _count_inner_symbols(words, western) == 0:
        return western
    return _by_frequencies(words, latin=high <= MOST_OF_WORD * letters)


def _with_zero_bytes(data: bytes) -> str | None:
    """UTF-16 without a mark: in Latin letters, about half of all bytes are zero."""
    sample = data[: SAMPLE - SAMPLE % 2]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if even + odd < max(4, len(sample) / 4) or 10 * min(even, odd) > even + odd:
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _count_inner_symbols(words: bytes, encoding: str) -> int:
    """Number of symbols between letters, for words read in an encoding of single bytes."""
    text = words.decode(encoding, "replace")
    return sum(not sign.isalpha() and sign not in "’‘´·" for sign in _INNER.findall(text))


def _by_frequencies(words: bytes, *, latin: bool) -> str | None:
    """Encoding of single bytes by the frequencies of characters; `latin` is True for words of Latin letters."""
    if latin:
        encoding = min(_CENTRAL, key=lambda name: _count_inner_symbols(words, name))
        return encoding if _count_inner_symbols(words, encoding) == 0 else None
    if sum(byte > 0x7F for byte in words) < FEWEST:
        return None
    # It takes 0.15 s to import, and few files have such text.
    from charset_normalizer import from_bytes

    best = from_bytes(words).best()
    return None if best is None else best.encoding


def same_encoding(first: str, second: str) -> bool:
    """Return True if two names mean one encoding."""
    try:
        return codecs.lookup(first).name.removesuffix("-sig") == codecs.lookup(second).name.removesuffix(
            "-sig"
        )
    except LookupError:
        return False
