"""Hashes of sentences: equal words and nothing else, found again, also where half of a hash is shared."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora.hashes import HashLookup, number_distinct, sentence_hashes

SENTENCES = [["a", "b"], ["ab"], ["a b"], ["Zoë"], ["a", "b"], [""], ["", ""]]


def test_equal_words_equal_hash_in_every_layout():
    plain = sentence_hashes(pa.array(SENTENCES))
    assert plain.shape == (7, 2)
    assert len({tuple(row) for row in plain.tolist()}) == 6
    assert plain[0].tolist() == plain[4].tolist()
    padded = pa.array([["no"], *SENTENCES], pa.list_(pa.string()))
    large = padded.cast(pa.large_list(pa.large_string()))
    for column in (padded.slice(1), large.slice(1), pa.chunked_array([padded.slice(1, 2), padded.slice(3)])):
        assert np.array_equal(sentence_hashes(column), plain)
    assert sentence_hashes(pa.chunked_array([], pa.list_(pa.string()))).shape == (0, 2)


HASHES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30)


def as_hashes(pairs):
    return np.array(pairs, dtype="<u8").reshape(-1, 2)


@given(HASHES, HASHES)
def test_both_halves_count(stored, sought):
    """Few different halves: most hashes share one with another."""
    numbers = number_distinct(as_hashes(stored))
    for i, first in enumerate(stored):
        assert [second == first for second in stored] == (numbers == numbers[i]).tolist()
    last = {pair: row for row, pair in enumerate(stored)}
    assert HashLookup(as_hashes(stored)).rows(as_hashes(sought)).tolist() == [
        last.get(pair, -1) for pair in sought
    ]
