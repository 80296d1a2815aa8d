"""Words as numbers for a model: pieces, characters, and the inputs of a batch.

Shapes: B sentences, P pieces, T words, C characters of a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .folder import LabellerError
from .normalization import UnsupportedError, normalizer, pre_tokenizer
from .signs import NORMALIZATION, normalize_word
from .words import SEPARATOR, UTTERANCE, Sentences

Split = Callable[[str], list[int]]
"""Returns the ids of a word's pieces, or of its characters."""
REMEMBERED_WORDS = 2**18
"""Words whose pieces are cached."""


def splitter(stored: str, *, unknown: int) -> Split:
    """Return the function from a word to the ids of the pieces.

    Args:
        stored: JSON of the vocabulary.
        unknown: Id for a word without pieces.

    Raises:
        UnsupportedError: The tokenizer is of a kind that is not implemented here.
    """
    content = json.loads(stored)
    normal = _normalization(content)
    if content["kind"] == "word":
        ids = {word: row for row, word in enumerate(content["words"], start=2)}
        if content.get("lower_case"):
            return lambda word: [ids.get(normal(word)) or ids.get(normal(word).lower(), unknown)]
        return lambda word: [ids.get(normal(word), unknown)]
    if content["kind"] == "wordpiece":
        split = wordpiece({piece: row for row, piece in enumerate(content["entries"])}, unknown=unknown)
        return lambda word: split(normal(word)) or [unknown]
    definition = json.loads(content["definition"])
    normal, parts = normalizer(definition["normalizer"]), pre_tokenizer(definition["pre_tokenizer"])
    model = definition["model"]
    if model["type"] == "WordPiece":
        split = wordpiece(
            model["vocab"], unknown=model["vocab"][model["unk_token"]],
            mark=model["continuing_subword_prefix"], longest=model["max_input_chars_per_word"],
        )  # fmt: skip
    elif model["type"] == "Unigram" and not model.get("byte_fallback"):
        split = unigram(model["vocab"], unknown=model["unk_id"])
    else:
        raise UnsupportedError(model["type"])
    return lambda word: [row for part in parts(normal(word)) for row in split(part)] or [unknown]


def _normalization(content: Mapping[str, Any]) -> Callable[[str], str]:
    """Return the word normalization of a raykd vocabulary; without one, words stay as they are."""
    return normalize_word if content.get("normalization") == NORMALIZATION else str


def with_package(stored: str, *, unknown: int) -> Split:
    """Return the same function as `splitter`, implemented by the package `tokenizers`.

    Args:
        stored: JSON of the vocabulary.
        unknown: Id for a word without pieces.

    Raises:
        LabellerError: The package is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        problem = "this model's tokenizer needs the package tokenizers, which is not installed"
        raise LabellerError(f"{problem}; run pip install tokenizers") from None
    tokenizer = Tokenizer.from_str(json.loads(stored)["definition"])
    return lambda word: (
        tokenizer.encode([word], is_pretokenized=True, add_special_tokens=False).ids or [unknown]
    )


def with_special_words(split: Split, special: Mapping[str, Any]) -> Split:
    """Return `split` with a cache, and with the special words, which stand for no word of a text.

    Args:
        split: Splitter of ordinary words.
        special: Special pieces of the model: `special` of `export.json`.
    """

    @lru_cache(REMEMBERED_WORDS)
    def split_any(word: str) -> list[int]:
        if word == UTTERANCE and special["prefix"]:
            return []  # it is read at the piece before it
        separator = special.get("separator") if word == SEPARATOR else None
        return separator or split(word)

    return split_any


def wordpiece(ids: Mapping[str, int], *, unknown: int, mark: str = "##", longest: int = 100) -> Split:
    """Return a greedy splitter: the longest piece at the start of a word, then of the rest, and so on.

    A word with a rest that begins with no piece is unknown as a whole.
    """
    longest_piece = max(map(len, ids), default=0)

    def split(word: str) -> list[int]:
        if len(word) > longest:
            return [unknown]
        rows, first = [], 0
        while first < len(word):
            before = mark if first else ""
            for last in range(min(len(word), first + longest_piece), first, -1):
                row = ids.get(before + word[first:last])
                if row is not None:
                    break
            else:
                return [unknown]
            rows.append(row)
            first = last
        return rows

    return split


def unigram(vocab: Sequence[tuple[str, float]], *, unknown: int) -> Split:
    """Return a splitter into the pieces with the largest sum of scores; unknown characters in a row are one piece."""
    rows = {piece: row for row, (piece, _) in enumerate(vocab)}
    scores = [score for _, score in vocab]
    longest_piece, missing = max(map(len, rows)), min(scores) - 10.0

    def split(word: str) -> list[int]:
        # For each end in the word: the best sum of scores up to there, and the start and id of the last piece.
        best: list[tuple[float, int, int]] = [(0.0, 0, 0)] + [(-np.inf, 0, 0)] * len(word)
        for first in range(len(word)):
            so_far = best[first][0]
            for last in range(first + 1, min(len(word), first + longest_piece) + 1):
                row = rows.get(word[first:last])
                if row is not None and (row != unknown) and so_far + scores[row] > best[last][0]:
                    best[last] = (so_far + scores[row], first, row)
            single = rows.get(word[first : first + 1])
            if (single is None or single == unknown) and so_far + missing > best[first + 1][0]:
                best[first + 1] = (so_far + missing, first, unknown)
        pieces: list[int] = []
        last = len(word)
        while last > 0:
            _, first, row = best[last]
            if not (row == unknown and pieces and pieces[-1] == unknown):
                pieces.append(row)
            last = first
        return pieces[::-1]

    return split


def speller(stored: str) -> Split:
    """Return the function from a word to the ids of the characters; of a long word the first and the last.

    Args:
        stored: JSON of the vocabulary.
    """
    content = json.loads(stored)
    ids = {letter: row for row, letter in enumerate(content["characters"], start=2)}
    tail = content["longest"] // 2
    head = content["longest"] - tail
    normal = _normalization(content)

    def split(word: str) -> list[int]:
        word = normal(word)
        if len(word) > content["longest"]:
            word = word[:head] + word[len(word) - tail :]
        return [ids.get(letter, 1) for letter in word] or [1]

    return split


def truncate(words: Sequence[str], row: list[list[int]], width: int) -> list[int]:
    """Return the pieces of a text, truncated to `width`.

    Of a pair, the longer text loses its end first.

    Args:
        words: Words of the text; a pair has a separator.
        row: Pieces of each word.
        width: Most pieces.
    """
    place = words.index(SEPARATOR) if SEPARATOR in words else len(row)
    first, between, second = (
        [piece for pieces in part for piece in pieces]
        for part in (row[:place], row[place : place + 1], row[place + 1 :])
    )
    room = width - len(between)
    half = room - room // 2 if len(first) > len(second) else room // 2
    first_size = max(room - len(second), half)
    return [*first[:first_size], *between, *second[: room - min(first_size, len(first))]]


def model_inputs(rows: Sequence[list[list[int]]], special: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the inputs of a batch. A word without pieces is read at the piece before it.

    Args:
        rows: Pieces of each word of each sentence.
        special: Special pieces of the model.

    Returns:
        `pieces` [B, P], their count `piece_lengths` [B], the place of each word's first piece `first` [B, T], and the
        count of words `lengths` [B].
    """
    prefix, suffix = special["prefix"], special["suffix"]
    flat = [[*prefix, *(id for pieces in row for id in pieces), *suffix] for row in rows]
    first = [np.cumsum([len(prefix), *(len(pieces) for pieces in row[:-1])]) for row in rows]
    first = [places - [not pieces for pieces in row] for places, row in zip(first, rows, strict=True)]
    return {
        "pieces": _padded(flat, special["padding"]),
        "piece_lengths": np.array([len(pieces) for pieces in flat], np.int64),
        "first": _padded(first, 0),
        "lengths": np.array([len(row) for row in rows], np.int64),
    }


def character_inputs(sentences: Sentences, spell: Split) -> dict[str, np.ndarray]:
    """Return the character inputs of a batch.

    Args:
        sentences: Words of each sentence.
        spell: Maps a word to character ids.

    Returns:
        `characters` [B, T, C], zero on padding, and their counts `character_lengths` [B, T].
    """
    spelt = [[spell(word) for word in words] for words in sentences]
    counts_BT = _padded([[len(ids) for ids in row] for row in spelt], 0)
    characters = np.zeros((*counts_BT.shape, int(counts_BT.max())), np.int64)
    for b, row in enumerate(spelt):
        for t, ids in enumerate(row):
            characters[b, t, : len(ids)] = ids
    return {"characters": characters, "character_lengths": counts_BT}


def _padded(rows: Sequence[Sequence[int] | np.ndarray], value: int) -> np.ndarray:
    out = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, values in enumerate(rows):
        out[row, : len(values)] = values
    return out
