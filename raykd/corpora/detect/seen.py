"""What is known of one file after a look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from raykd.corpora.detect.columns import Column
from raykd.corpora.utterances import PARSERS as UTTERANCES

Format = Literal["conll", "conllu", "tsv", "atis", "xsid", "multiatis", "parquet", "jsonl", "text"]
TEXT_FILES = ("conll", "conllu", "tsv", *UTTERANCES)
"""The formats whose files are lines of text with labels, in any encoding."""
LABEL_WORDS = (
    "label", "class", "intent", "category", "sentiment", "judgment", "judgement", "gold", "topic", "emotion",
    "polarity", "stars", "rating", "target",
)  # fmt: skip
TEXT_WORDS = ("text", "sentence", "review", "utterance", "content", "tweet", "document", "body")
MOST_CLASSES = 200
PAIRS = (("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage"))
"""Names of the columns of two texts that belong together, beside those that end in 1 and 2 or a and b."""
PAIRS_HINT = "of pairs name the other column too (columns.second, task: pairs)"


def pair_of(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two of these columns that are a pair of texts by their names; None where none are."""
    return next((pair for pair in permutations(names, 2) if _is_pair(*map(str.lower, pair))), None)


def _is_pair(first: str, second: str) -> bool:
    same = first[:-1] == second[:-1] and (first[-1:], second[-1:]) in (("1", "2"), ("a", "b"))
    return same or (first, second) in PAIRS


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One file that may be part of a corpus."""

    name: str
    format: Format
    encoding: str = "utf-8"
    """`ascii` where every text encoding reads the same."""
    columns: tuple[Column, ...] = ()
    """Of CoNLL files."""
    separator: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    """Of tables of texts and CoNLL-U: the settings of the source that read it."""
    languages: tuple[str, ...] = ()
    """Those that a column of it names."""
    labelled: bool = True
    why: str = ""
    """How it was recognised."""
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unclear:
    """One file that is not read, and why."""

    name: str
    why: str
