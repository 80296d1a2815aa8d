"""Batches of labels against plain lists."""

import numpy as np
import pyarrow as pa
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.forms.targets import LabelColumn

NAMES = ("O", "A", "B", "C")
# Lists of tags as a corpus holds them: one number per word, exactly one per sentence, null where unlabelled.
words = st.lists(st.integers(0, 3), min_size=1, max_size=6)
classes = st.lists(st.integers(0, 3), min_size=1, max_size=1)
columns = st.one_of(*(st.lists(st.none() | tags, min_size=1, max_size=8) for tags in (words, classes)))


def column(tags):
    return LabelColumn.from_table(pa.table({"tags": pa.array(tags, pa.list_(pa.int16()))}))


@given(columns, st.lists(st.integers(0, 7), max_size=10))
def test_targets_are_padded_with_0_and_mark_what_is_labelled(tags, picks):
    rows = np.array([pick % len(tags) for pick in picks], dtype=np.int64)
    targets = column(tags).gather(rows)
    chosen = [tags[row] or [] for row in rows]
    width = max(1, max(map(len, chosen), default=1))
    assert targets.tags_BT.tolist() == [[*row, *[0] * (width - len(row))] for row in chosen]
    assert targets.tags_BT.shape == (len(rows), width)
    assert targets.labelled_B.tolist() == [tags[row] is not None for row in rows]
    assert (targets.tags_BT.dtype, targets.labelled_B.dtype) == (torch.int64, torch.bool)


@given(columns, st.integers(1, 3), st.integers(0, 3))
def test_lengths_and_lists_also_of_chunked_and_sliced_tables(tags, chunks, start):
    ordered = [row for i in range(chunks) for row in tags[i::chunks]]
    parts = [pa.array(tags[i::chunks], pa.list_(pa.int16())) for i in range(chunks)]
    labels = LabelColumn.from_table(pa.table({"tags": pa.chunked_array(parts)}).slice(start))
    expected = ordered[start:]
    assert len(labels) == len(expected)
    assert labels.lengths.tolist() == [len(row or []) for row in expected]
    if expected:
        assert labels.lists(NAMES) == [[NAMES[tag] for tag in row or []] for row in expected]


def test_targets_do_not_share_memory_with_the_column():
    labels = column([[1], [2]])
    targets = labels.gather(np.array([0, 1]))
    targets.tags_BT.zero_()
    targets.labelled_B.zero_()
    assert labels.lists(NAMES) == [["A"], ["B"]]
    assert labels.labelled.all()


def test_moving_targets_moves_both_tensors():
    targets = column([[1, 2], None]).gather(np.array([0, 1])).to("meta")
    assert {targets.tags_BT.device.type, targets.labelled_B.device.type} == {"meta"}
