"""Dependency trees in files, and their faults.

A tree of T words is its heads, one for each word: 0 for the root, h for the word h − 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

NUMBER = re.compile(r"[0-9]{1,9}")
MOST_WORDS = np.iinfo(np.int16).max
"""Maximum number of words: heads are stored in 16 bits."""


class Fault(NamedTuple):
    """A problem at a word."""

    place: int
    problem: str
    hint: str


def read_heads(cells: Sequence[str], words: Sequence[str]) -> tuple[list[int], list[Fault]]:
    """Convert the heads of a sentence.

    Args:
        cells: Heads as a file writes them, one for each word.
        words: Words of the sentence, for messages.

    Returns:
        The heads, and faults; without a fault the heads are a tree.
    """
    if len(cells) > MOST_WORDS:
        problem = f"the sentence has {len(cells)} words, and a tree has at most {MOST_WORDS}"
        return [], [Fault(0, problem, "end each sentence with an empty line")]
    heads = [int(cell) if NUMBER.fullmatch(cell) else -1 for cell in cells]
    faults = [
        Fault(
            place,
            f"the head of {words[place]!r} is {problem}",
            "write the number of a word, or 0 for the root",
        )
        for place, (head, cell) in enumerate(zip(heads, cells, strict=True))
        if (problem := _out_of_place(head, cell, place, len(cells)))
    ]
    return heads, faults or _no_tree(heads, words)


def _out_of_place(head: int, cell: str, place: int, words: int) -> str:
    if head < 0:
        return f"{cell!r}, which is no number"
    if head > words:
        return f"word {head}, and the sentence has {words}"
    return "the word itself" if head == place + 1 else ""


def _no_tree(heads: Sequence[int], words: Sequence[str]) -> list[Fault]:
    roots = [place for place, head in enumerate(heads) if head == 0]
    if not roots:
        return [Fault(0, "the sentence has no root", "give one word the head 0")]
    faults = [
        Fault(
            place, f"{words[place]!r} is another root beside {words[roots[0]]!r}", "give one word the head 0"
        )
        for place in roots[1:]
    ]
    for cycle in find_cycles(heads):
        numbers = ", ".join(str(place + 1) for place in sorted(cycle))
        problem = f"words {numbers} are each other's heads, so that none leads to the root"
        faults.append(Fault(min(cycle), problem, "give one of them a head outside of the cycle"))
    return faults


def find_cycles(heads: Sequence[int]) -> Iterator[list[int]]:
    """Yield the cycles of heads, as the places of their words from 0.

    Args:
        heads: Head of each word: 0 is the root, h the word h − 1.
    """
    visited_from = [-1] * len(heads)
    for start in range(len(heads)):
        place, path = start, []
        while place >= 0 and visited_from[place] < 0:
            visited_from[place] = start
            path.append(place)
            place = heads[place] - 1
        if place >= 0 and visited_from[place] == start:
            yield path[path.index(place) :]
