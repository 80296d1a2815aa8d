import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.transfer.ragged import gather

BLOCKS = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=5), min_size=1, max_size=4)


@given(BLOCKS, st.data())
@settings(max_examples=30, deadline=None)
def test_gather_is_padding_row_by_row(lengths, data):
    """Rows spread over one block per list of lengths."""
    draw = np.random.default_rng(0)
    rows = [[draw.normal(size=(length, 3)).astype(np.float16) for length in block] for block in lengths]
    blocks, flat = [np.concatenate(block) for block in rows], [row for block in rows for row in block]
    length_G = np.array([length for block in lengths for length in block])
    block_G = np.repeat(np.arange(len(lengths)), [len(block) for block in lengths])
    start_G = np.concatenate([np.cumsum(block) - block for block in lengths])
    rows_B = np.array(data.draw(st.lists(st.integers(0, len(flat) - 1), min_size=1, max_size=9)))
    expected = np.zeros((len(rows_B), length_G[rows_B].max(), 3), np.float16)
    for place, row in enumerate(rows_B):
        expected[place, : length_G[row]] = flat[row]
    touched = []

    def block_of(number: int) -> np.ndarray:
        touched.append(number)
        return blocks[number]

    np.testing.assert_array_equal(
        gather(block_of, block_G[rows_B], start_G[rows_B], length_G[rows_B]), expected
    )
    assert sorted(touched) == sorted(set(block_G[rows_B]))
