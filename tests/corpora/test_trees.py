"""Trees: what is none, projectivity against its definition, and drawings that can be read back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.trees import MOST_WORDS, read_heads
from raykd.forms.tree.drawing import draw_tree, is_projective

WORDS = "abcdefgh"


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """The heads of any tree: words are hung up in any order, each below one that hangs already."""
    length = draw(st.integers(1, 8))
    order = draw(st.permutations(range(length)))
    heads = [0] * length
    for place, word in enumerate(order[1:], 1):
        heads[word] = order[draw(st.integers(0, place - 1))] + 1
    return heads


def leads_to_the_root(heads: list[int], word: int) -> bool:
    visited = set()
    while heads[word] and word not in visited:
        visited.add(word)
        word = heads[word] - 1
    return heads[word] == 0


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_heads_without_a_fault_are_one_tree(heads):
    read, faults = read_heads([str(head) for head in heads], WORDS)
    words = range(len(heads))
    is_tree = (
        all(head <= len(heads) for head in heads)
        and heads.count(0) == 1
        and all(leads_to_the_root(heads, word) for word in words)
    )
    assert read == heads
    assert (not faults) == is_tree
    assert all(fault.place in words and fault.hint for fault in faults)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["x", "0"], [(0, "the head of 'a' is 'x', which is no number")]),
        (["", "0"], [(0, "the head of 'a' is '', which is no number")]),
        (["-1", "0"], [(0, "the head of 'a' is '-1', which is no number")]),
        (["_", "+1"], [(0, "'_', which is no number"), (1, "'+1', which is no number")]),
        (["9" * 5000, "0"], [(0, "which is no number")]),
        (["3", "0"], [(0, "the head of 'a' is word 3, and the sentence has 2")]),
        (["1", "0"], [(0, "the head of 'a' is the word itself")]),
        (["2", "1"], [(0, "the sentence has no root")]),
        (["0", "0", "0"], [(1, "'b' is another root beside 'a'"), (2, "'c' is another root beside 'a'")]),
        (["0", "3", "2"], [(1, "words 2, 3 are each other's heads")]),
        (["0", "3", "4", "2", "2", "7", "6"], [(1, "words 2, 3, 4 are"), (5, "words 6, 7 are")]),
        (["1"] * (MOST_WORDS + 1), [(0, "32768 words, and a tree has at most 32767")]),
    ],
)
def test_faults_name_the_word(cells, expected):
    _, faults = read_heads(cells, WORDS)
    assert len(faults) == len(expected)
    for fault, (place, problem) in zip(faults, expected, strict=True):
        assert fault.place == place
        assert problem in fault.problem


@given(trees())
def test_a_tree_is_projective_where_all_words_below_an_arc_hang_from_its_head(heads):
    def hangs_from(word: int, head: int) -> bool:
        while word not in (head, -1):
            word = heads[word] - 1
        return word == head

    expected = all(
        hangs_from(between, head - 1)
        for word, head in enumerate(heads)
        if head
        for between in range(min(word, head - 1) + 1, max(word, head - 1))
    )
    assert is_projective(heads) == is_projective(np.array(heads)) == expected


def test_a_drawn_tree():
    words = ["They", "buy", "good", "books", "from", "old", "shops"]
    assert draw_tree([2, 0, 4, 2, 2, 7, 5], words) == [
        "  ┌──     They",
        "──┤       buy",
        "  │ ┌──   good",
        "  ├─┘     books",
        "  └─┐     from",
        "    │ ┌── old",
        "    └─┘   shops",
    ]


@given(trees())
def test_every_word_is_on_its_line_and_its_branch_begins_below_its_head(heads):
    lines = draw_tree(heads, WORDS[: len(heads)])
    assert [line[-1] for line in lines] == list(WORDS[: len(heads)])
    for word, line in enumerate(lines):
        column = 2 * words_above(heads, word)
        assert line[column] in ("─" if heads[word] == 0 else "└┌├┴┬┼")
        assert line[column + 1] == "─"


def words_above(heads: list[int], word: int) -> int:
    return 1 + words_above(heads, heads[word] - 1) if heads[word] else 0


def test_a_line_is_as_wide_as_the_deepest_word():
    lines = draw_tree([0, 1, 2, 3], ["x"] * 4)
    assert all(len(line) == len(next_line) for line, next_line in pairwise(lines))
