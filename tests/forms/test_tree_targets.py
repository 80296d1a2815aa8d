"""Batches of trees against plain lists."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.conversion import TREES
from raykd.forms import FLAT
from raykd.forms.tree.codes import TreeLabels, encode_part, encode_tree
from raykd.forms.tree.tree_column import TreeColumn

POS = ("NOUN", "VERB", "X")
RELATIONS = FLAT.tag_set([f"r{number}" for number in range(7)])


@st.composite
def sentences(draw: st.DrawFn) -> dict:
    """Draw a table row: with or without a tree, with or without parts of speech."""
    words = draw(st.integers(1, 5))
    labelled = draw(st.booleans())

    def of(limit: int) -> list[int]:
        return draw(st.lists(st.integers(0, limit), min_size=words, max_size=words))

    return {
        "tokens": [f"w{i}" for i in range(words)],
        "tags": of(6) if labelled else None,
        "language": "en",
        "heads": [head if head != word + 1 else 0 for word, head in enumerate(of(words))]
        if labelled
        else None,
        "pos": of(2) if labelled or draw(st.booleans()) else None,
    }


def table_of(rows: list[dict], chunks: int = 1) -> pa.Table:
    """In as many chunks, and cut out of a larger table."""
    cuts = np.array_split(np.arange(len(rows)), chunks)
    parts = [pa.Table.from_pylist([rows[i] for i in cut.tolist()], schema=TREES) for cut in cuts]
    return pa.concat_tables([parts[0].slice(0, 0), *parts])


def padded(rows, name, width, fill):
    return [[*(row[name] or []), *[fill] * (width - len(row[name] or []))] for row in rows]


rows_and_picks = given(
    st.lists(sentences(), min_size=1, max_size=6), st.integers(1, 3), st.lists(st.integers(0, 5), max_size=6)
)


@rows_and_picks
def test_a_parsers_targets_are_the_numbers_of_its_labelled_arcs_padded_to_the_longest_sentence(
    rows, chunks, picks
):
    picked = np.array([pick % len(rows) for pick in picks], dtype=np.int64)
    column = TreeColumn.from_table(table_of(rows, chunks), POS, RELATIONS)
    targets = column.gather(picked)
    chosen = [rows[row] for row in picked]
    width = max([len(row["tokens"]) for row in chosen], default=1)
    heads, tags = (np.array(padded(chosen, name, width, 0)).reshape(-1, width) for name in ("heads", "tags"))
    assert targets.tags_BT.tolist() == (heads * len(RELATIONS) + tags).tolist()
    assert targets.labelled_B.tolist() == [row["heads"] is not None for row in chosen]
    assert targets.tags_BT.dtype == torch.int64


@rows_and_picks
def test_a_students_targets_are_its_labels_and_mean_the_heads_that_they_were_made_of(rows, chunks, picks):
    picked = np.array([pick % len(rows) for pick in picks], dtype=np.int64)
    table = table_of(rows, chunks)
    names = {"pos": POS, "relations": RELATIONS.tags}
    written = [
        encode_tree(row["heads"], RELATIONS.decode(row["tags"]), [POS[p] for p in row["pos"]], "relative_pos")
        for row in rows
        if row["heads"] is not None
    ]
    assert list(encode_part(table, **names, encoding="relative_pos")) == written
    labels = TreeLabels.from_sentences([*written, ["-1@ROOT@r0"]], **names, encoding="relative_pos")
    column = TreeColumn.from_table(table, POS, labels)
    targets, heads_BTY = column.gather(picked), column.label_heads(picked)
    for b, row in enumerate(rows[row] for row in picked):
        if row["heads"] is not None:
            labels_T = targets.tags_BT[b, : len(row["heads"])].tolist()
            assert [labels.tags[number] for number in labels_T] == written[
                [earlier["heads"] is not None for earlier in rows[: picked[b]]].count(True)
            ]
            assert [heads_BTY[b, t, number] for t, number in enumerate(labels_T)] == row["heads"]


def test_relations_alone_mean_no_heads():
    row = {"tokens": ["a"], "tags": [1], "language": "en", "heads": [0], "pos": [2]}
    with pytest.raises(TypeError, match="relations alone"):
        TreeColumn.from_table(table_of([row]), POS, RELATIONS).label_heads(np.array([0]))


@given(st.lists(sentences(), min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 3))
def test_rows_also_of_chunked_and_sliced_tables(rows, chunks, start):
    column, expected = (
        TreeColumn.from_table(table_of(rows, chunks).slice(start), POS, RELATIONS),
        rows[start:],
    )
    assert len(column) == len(expected)
    assert column.lengths.tolist() == [len(row["heads"] or []) for row in expected]
    trees = [(heads.tolist(), relations.tolist()) for heads, relations, _, _ in column.trees()]
    assert trees == [(row["heads"] or [], row["tags"] or []) for row in expected]
    assert [[POS.index(name) for name in tree.pos] for tree in column.trees()] == [
        row["pos"] or [] for row in expected
    ]
    assert [tree.words for tree in column.trees()] == [row["tokens"] for row in expected]
