"""Normalization and division of words before the look-up of pieces, as in the package `tokenizers`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

IDEOGRAPH = (
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class UnsupportedError(Exception):
    """A part of a tokenizer implemented in the package `tokenizers` alone."""


def normalizer(definition: Mapping[str, Any] | None) -> Callable[[str], str]:
    """Return a tokenizer's normalization of a word.

    Args:
        definition: `normalizer` in the tokenizer's JSON.

    Raises:
        UnsupportedError: This kind is not implemented here.
    """
    if definition is None:
        return lambda word: word
    kind = definition["type"]
    if kind in _NORMALIZERS:
        return _NORMALIZERS[kind]
    if kind == "Sequence":
        steps = [normalizer(part) for part in definition["normalizers"]]
        return lambda word: reduce(lambda text, step: step(text), steps, word)
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return lambda word: unicodedata.normalize(kind, word)
    if kind == "Replace":
        pattern = definition["pattern"]
        regex = re.compile(pattern["Regex"] if "Regex" in pattern else re.escape(pattern["String"]))
        return lambda word: regex.sub(lambda _: definition["content"], word)
    if kind == "BertNormalizer":
        return lambda word: _bert_normal(word, definition)
    raise UnsupportedError(kind)


def pre_tokenizer(definition: Mapping[str, Any] | None) -> Callable[[str], list[str]]:
    """Return a tokenizer's division of a normalized word into parts, which the model splits into pieces.

    Args:
        definition: `pre_tokenizer` in the tokenizer's JSON.

    Raises:
        UnsupportedError: This kind is not implemented here.
    """
    if definition is None:
        return lambda word: [word] if word else []
    kind = definition["type"]
    if kind == "Sequence":
        steps = [pre_tokenizer(part) for part in definition["pretokenizers"]]
        return lambda word: reduce(
            lambda parts, step: [x for part in parts for x in step(part)], steps, [word]
        )
    if kind == "WhitespaceSplit":
        return str.split
    if kind == "BertPreTokenizer":
        return lambda word: [part for spaced in word.split() for part in _split_word_at_signs(spaced)]
    if kind == "Metaspace" and definition.get("prepend_scheme", "always") == "always":
        mark, several = definition["replacement"], definition.get("split", True)

        def split(word: str) -> list[str]:
            if not word:
                return []
            word = word.replace(" ", mark)
            word = word if word.startswith(mark) else mark + word
            return re.findall(f"{mark}[^{mark}]*", word) if several else [word]

        return split
    raise UnsupportedError(kind)


def _nmt(word: str) -> str:
    """Normalize as SentencePiece's `nmt`: remove control characters, and turn any white space into a space."""
    removed = {*range(1, 9), 11, *range(14, 32), 127, 143, 159}
    spaces = {9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD}
    letters = (letter for letter in word if ord(letter) not in removed)
    return "".join(" " if ord(letter) in spaces else letter for letter in letters)


def _lower(word: str) -> str:
    # Letter by letter, as `tokenizers` does: str.lower would write a final sigma differently.
    return "".join(map(str.lower, word))


def _without_accents(word: str) -> str:
    return "".join(c for c in word if unicodedata.category(c) != "Mn")


_NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "Nmt": _nmt, "Lowercase": _lower, "StripAccents": _without_accents,
}  # fmt: skip


def _bert_normal(word: str, options: Mapping[str, Any]) -> str:
    if options["clean_text"]:
        letters = (
            c for c in word if c not in "\0\ufffd" and (c in "\t\n\r" or unicodedata.category(c)[0] != "C")
        )
        word = "".join(" " if c.isspace() else c for c in letters)
    if options["handle_chinese_chars"]:
        word = re.sub(IDEOGRAPH, r" \g<0> ", word)
    if options["strip_accents"] or (options["strip_accents"] is None and options["lowercase"]):
        word = _without_accents(unicodedata.normalize("NFD", word))
    return _lower(word) if options["lowercase"] else word


def _split_word_at_signs(word: str) -> list[str]:
    """Split a word at signs; each sign is a part too."""
    parts, rest = [], ""
    for c in word:
        if (c.isascii() and not c.isalnum() and c.isprintable()) or unicodedata.category(c)[0] == "P":
            parts += [rest, c]
            rest = ""
        else:
            rest += c
    return [part for part in [*parts, rest] if part]
