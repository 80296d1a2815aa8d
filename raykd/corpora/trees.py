"""Dependency trees as files write them, and what is no tree.

A tree of T words is its heads, one for each word: 0 for the root, h for the word h − 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

NUMBER = re.compile(r"[0-9]{1,9}")
MOST_WORDS = np.iinfo(np.int16).max
"""Heads are stored in 16 bits."""


class Fault(NamedTuple):
    """What is wrong at a word, by its place from 0."""

    place: int
    problem: str
    hint: str


def read_heads(cells: Sequence[str], words: Sequence[str]) -> tuple[list[int], list[Fault]]:
    """The heads of a sentence as a file writes them, and what is wrong with them: without a fault they are a tree."""
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
    for cycle in _cycles(heads):
        numbers = ", ".join(str(place + 1) for place in sorted(cycle))
        problem = f"words {numbers} are each other's heads, so that none leads to the root"
        faults.append(Fault(min(cycle), problem, "give one of them a head outside of the cycle"))
    return faults


def _cycles(heads: Sequence[int]) -> Iterator[list[int]]:
    """The cycles of heads, each once, as the places of its words."""
    seen = [-1] * len(heads)
    for start in range(len(heads)):
        place, path = start, []
        while place >= 0 and seen[place] < 0:
            seen[place] = start
            path.append(place)
            place = heads[place] - 1
        if place >= 0 and seen[place] == start:
            yield path[path.index(place) :]
