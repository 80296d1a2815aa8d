import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.transfer.ragged import Ragged, join


def ragged(lengths: list[list[int]], width: int, seed: int) -> tuple[Ragged, list[np.ndarray]]:
    """A column spread over one block per list of lengths, and its rows one by one."""
    draw = np.random.default_rng(seed)
    rows = [[draw.normal(size=(length, width)).astype(np.float16) for length in block] for block in lengths]
    length_G = np.array([length for block in lengths for length in block], np.int32)
    block_G = np.repeat(np.arange(len(lengths)), [len(block) for block in lengths]).astype(np.int32)
    start_G = np.concatenate([np.cumsum(block) - block for block in lengths]).astype(np.int64)
    blocks = tuple(np.concatenate(block) for block in rows)
    return Ragged(blocks, block_G, start_G, length_G), [row for block in rows for row in block]


BLOCKS = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=5), min_size=1, max_size=4)


@given(BLOCKS, st.data())
@settings(max_examples=30, deadline=None)
def test_gather_is_padding_row_by_row(lengths, data):
    column, rows = ragged(lengths, 3, seed=0)
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=9))
    longest = max(len(rows[row]) for row in asked)
    expected = np.zeros((len(asked), longest, 3), np.float16)
    for place, row in enumerate(asked):
        expected[place, : len(rows[row])] = rows[row]
    np.testing.assert_array_equal(column.gather(np.array(asked)), expected)


def test_joined_columns_cover_interleaved_rows():
    one, rows_one = ragged([[2, 1], [4]], 2, seed=1)
    two, rows_two = ragged([[3, 3]], 2, seed=2)
    table = join([one, two], [np.array([4, 0, 2]), np.array([1])], [None, None], 5)
    for row, expected in ((4, rows_one[0]), (0, rows_one[1]), (2, rows_one[2]), (1, rows_two[0])):
        np.testing.assert_array_equal(table.gather(np.array([row]))[0], expected)


def test_joined_columns_may_pick_their_rows_one_of_them_twice():
    one, rows_one = ragged([[2, 1], [4]], 2, seed=1)
    two, rows_two = ragged([[3, 5]], 2, seed=2)
    table = join([one, two], [np.array([4, 0, 2]), np.array([1])], [np.array([2, 0, 2]), np.array([1])], 5)
    for row, expected in ((4, rows_one[2]), (0, rows_one[0]), (2, rows_one[2]), (1, rows_two[1])):
        np.testing.assert_array_equal(table.gather(np.array([row]))[0], expected)


def test_narrowed_columns_hold_the_first_values():
    column, rows = ragged([[2, 1], [4]], 3, seed=1)
    narrow = column.narrowed(2)
    for row, expected in enumerate(rows):
        np.testing.assert_array_equal(narrow.gather(np.array([row]))[0], expected[:, :2])
