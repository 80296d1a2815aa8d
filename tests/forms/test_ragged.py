"""Ragged rows against plain Python lists."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.forms.ragged import Ragged, flatten_lists, offsets_from_lengths

untimed = settings(deadline=None)  # a busy machine is no failure


def ragged_of(rows):
    flat = np.array([value for row in rows for value in row], dtype=np.int32)
    return Ragged(flat, offsets_from_lengths(np.array([len(row) for row in rows])))


rows = st.lists(st.lists(st.integers(-5, 1000), max_size=6), min_size=1, max_size=8)
picks = st.lists(st.integers(0, 7), max_size=10)


@untimed
@given(rows, picks)
def test_take_and_padded_are_what_lists_give(rows, picks):
    ragged = ragged_of(rows)
    indices = np.array([pick % len(rows) for pick in picks], dtype=np.int64)
    chosen = [rows[i] for i in indices]
    width = max(map(len, chosen), default=0)

    rows_taken = ragged.take(indices)
    padded, lengths = ragged.pad(indices, fill=-9)

    assert [
        rows_taken.values[a:b].tolist()
        for a, b in zip(rows_taken.offsets, rows_taken.offsets[1:], strict=False)
    ] == chosen
    assert padded.shape == (len(chosen), width)
    assert padded.tolist() == [row + [-9] * (width - len(row)) for row in chosen]
    assert lengths.tolist() == [len(row) for row in chosen]
    assert ragged.lengths.tolist() == [len(row) for row in rows]


@untimed
@given(rows, st.integers(0, 8), st.integers(1, 3))
def test_arrow_columns_are_read_whole_sliced_and_in_chunks(rows, start, chunks):
    parts = [pa.array(rows[i::chunks], pa.list_(pa.int16())) for i in range(chunks)]
    column = pa.chunked_array(parts, pa.list_(pa.int16())).slice(start)
    expected = [row for part in parts for row in part.to_pylist()][start:]
    flat, offsets = flatten_lists(column)
    assert [flat[a:b].to_pylist() for a, b in pairwise(offsets.tolist())] == expected


def test_padded_keeps_the_shape_of_its_indices():
    padded, lengths = ragged_of([[1], [2, 3]]).pad(np.array([[0, 1], [1, 1]]))
    assert padded.tolist() == [[[1, 0], [2, 3]], [[2, 3], [2, 3]]]
    assert lengths.tolist() == [[1, 2], [2, 2]]


@pytest.mark.parametrize("offsets", [[], [0, 2], [1, 3], [0, 2, 1, 3]])
def test_offsets_that_do_not_cover_the_values_are_refused(offsets):
    with pytest.raises(ValueError, match="ascend from 0 to 3"):
        Ragged(np.arange(3), np.array(offsets, dtype=np.int64))


def test_null_rows_are_refused():
    with pytest.raises(ValueError, match="1 of 2 rows are null"):
        flatten_lists(pa.array([[1], None]))
