"""Projectivity and drawings of dependency trees.

A tree of T words is its heads, one for each word: 0 for the root, h for the word h − 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WAYS = " │││─└┌├─┘┐┤─┴┬┼"
"""Characters of a drawing, indexed by the sum of their directions: 1 up, 2 down, 4 right, 8 left."""
UP, DOWN, RIGHT, LEFT = 1, 2, 4, 8


def is_projective(heads: Sequence[int] | np.ndarray) -> bool:
    """Return True if no two arcs cross. The arc of the root counts; it comes from before the first word.

    Args:
        heads: Head of each word.
    """
    heads_T = np.asarray(heads)
    words_T = np.arange(1, len(heads_T) + 1)
    starts_T, ends_T = np.minimum(heads_T, words_T), np.maximum(heads_T, words_T)
    begins_inside_TT = (starts_T[:, None] < starts_T) & (starts_T < ends_T[:, None])
    return not bool((begins_inside_TT & (ends_T[:, None] < ends_T)).any())


def draw_tree(heads: Sequence[int], rows: Sequence[str]) -> list[str]:
    """Return a tree as lines, one for each word: its branch, then its row of text.

    Args:
        heads: Head of each word.
        rows: Text of each word.
    """
    depths = [_depth(heads, place) for place in range(len(heads))]
    ways = np.zeros((len(heads), 2 * max(depths, default=0) + 3), int)
    for place, head in enumerate(heads):
        column = 2 * depths[place]
        ways[place, column] |= RIGHT
        ways[place, column + 1] |= LEFT | RIGHT
        ways[place, column + 2] |= LEFT
        if head:
            top, bottom = sorted((place, head - 1))
            ways[top:bottom, column] |= DOWN
            ways[top + 1 : bottom + 1, column] |= UP
    branches = ["".join(WAYS[way] for way in row) for row in ways.tolist()]
    return [f"{branch} {row}".rstrip() for branch, row in zip(branches, rows, strict=True)]


def _depth(heads: Sequence[int], place: int) -> int:
    """Depth of a word in the tree; the root has depth 0."""
    depth = 0
    while heads[place]:
        place, depth = heads[place] - 1, depth + 1
    return depth
