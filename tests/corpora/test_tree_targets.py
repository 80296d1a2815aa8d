"""Batches of trees against plain lists."""

import numpy as np
import pyarrow as pa
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.conversion import TREES
from raykd.corpora.tree_targets import UNKNOWN, TreeColumn

POS = ("NOUN", "VERB", "X")


@st.composite
def sentences(draw: st.DrawFn) -> dict:
    """A sentence as a table has it: with a tree or without, with parts of speech or without."""
    words = draw(st.integers(1, 5))
    labelled = draw(st.booleans())

    def of(most: int) -> list[int]:
        return draw(st.lists(st.integers(0, most), min_size=words, max_size=words))

    return {
        "tokens": [f"w{i}" for i in range(words)],
        "tags": of(6) if labelled else None,
        "language": "en",
        "heads": of(words) if labelled else None,
        "pos": of(2) if labelled or draw(st.booleans()) else None,
    }


def table_of(rows: list[dict], chunks: int = 1) -> pa.Table:
    """In as many chunks, and cut out of a larger table."""
    cuts = np.array_split(np.arange(len(rows)), chunks)
    parts = [pa.Table.from_pylist([rows[i] for i in cut.tolist()], schema=TREES) for cut in cuts]
    return pa.concat_tables([parts[0].slice(0, 0), *parts])


def padded(rows, name, width, fill):
    return [[*(row[name] or []), *[fill] * (width - len(row[name] or []))] for row in rows]


@given(
    st.lists(sentences(), min_size=1, max_size=6), st.integers(1, 3), st.lists(st.integers(0, 5), max_size=6)
)
def test_trees_are_padded_to_the_longest_sentence(rows, chunks, picks):
    picked = np.array([pick % len(rows) for pick in picks], dtype=np.int64)
    column = TreeColumn.of(table_of(rows, chunks), POS)
    targets = column.gather(picked)
    chosen = [rows[row] for row in picked]
    width = max([len(row["tokens"]) for row in chosen], default=1)
    assert targets.heads_BT.shape == (len(picked), width)
    assert targets.heads_BT.tolist() == padded(chosen, "heads", width, 0)
    assert targets.relations_BT.tolist() == padded(chosen, "tags", width, 0)
    assert targets.pos_BT.tolist() == padded(chosen, "pos", width, UNKNOWN)
    assert targets.labelled_B.tolist() == [row["heads"] is not None for row in chosen]
    assert {targets.heads_BT.dtype, targets.relations_BT.dtype, targets.pos_BT.dtype} == {torch.int64}


@given(st.lists(sentences(), min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 3))
def test_rows_also_of_chunked_and_sliced_tables(rows, chunks, start):
    column, expected = TreeColumn.of(table_of(rows, chunks).slice(start), POS), rows[start:]
    assert len(column) == len(expected)
    assert column.lengths.tolist() == [len(row["heads"] or []) for row in expected]
    trees = [(heads.tolist(), relations.tolist()) for heads, relations in column.trees()]
    assert trees == [(row["heads"] or [], row["tags"] or []) for row in expected]
    assert [own.tolist() for own in column.parts_of_speech()] == [row["pos"] or [] for row in expected]
    assert list(column.texts()) == [row["tokens"] for row in expected]


def test_moving_targets_moves_all_tensors():
    row = {"tokens": ["a"], "tags": [1], "language": "en", "heads": [0], "pos": [2]}
    targets = TreeColumn.of(table_of([row]), POS).gather(np.array([0])).to("meta")
    assert {tensor.device.type for tensor in vars(targets).values()} == {"meta"}
