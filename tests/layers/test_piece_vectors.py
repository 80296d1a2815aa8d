"""Vectors of words and pieces, against a loop over words."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.corpora.encoded_text import TokenBatch
from raykd.layers.piece_vectors import first_of_pieces, mean_of_pieces, word_of_piece, words_to_pieces

SPELLINGS = given(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(0, 2),
    st.integers(0, 2),
)


def make_batch(spelt, prefix, suffix):
    """Return sentences with given numbers of pieces per word, special pieces around them, and two pieces of padding."""
    firsts = [[prefix + sum(words[:t]) for t in range(len(words))] for words in spelt]
    lengths_B = torch.tensor([prefix + sum(words) + suffix for words in spelt])
    return TokenBatch(
        pieces_BP=torch.zeros(len(spelt), int(lengths_B.max()) + 2, dtype=torch.int64),
        piece_lengths_B=lengths_B,
        first_BT=torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in firsts], batch_first=True),
        lengths_B=torch.tensor([len(words) for words in spelt]),
    )


def test_each_piece_knows_its_word():
    first_BT, lengths_B = torch.tensor([[1, 2, 5], [0, 3, 0]]), torch.tensor([3, 2])
    assert word_of_piece(first_BT, lengths_B, 7).tolist() == [[-1, 0, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1]]


@settings(max_examples=40)
@SPELLINGS
def test_words_read_their_own_pieces_alone(spelt, prefix, suffix):
    batch = make_batch(spelt, prefix, suffix)
    pieces_BPD = torch.randn(*batch.pieces_BP.shape, 3, dtype=torch.float64)
    mean_BTD = mean_of_pieces(pieces_BPD, batch, suffix=suffix)
    first_BTD = first_of_pieces(pieces_BPD, batch)
    for b, words in enumerate(spelt):
        start = prefix
        for t, count in enumerate(words):
            torch.testing.assert_close(mean_BTD[b, t], pieces_BPD[b, start : start + count].mean(0))
            assert torch.equal(first_BTD[b, t], pieces_BPD[b, start])
            start += count
        assert (mean_BTD[b, len(words) :] == 0).all()


@settings(max_examples=40)
@SPELLINGS
def test_pieces_get_their_words_vector(spelt, prefix, suffix):
    batch = make_batch(spelt, prefix, suffix)
    words_BTD = torch.randn(*batch.first_BT.shape, 2)
    pieces_BPD = words_to_pieces(words_BTD, batch)
    for b, words in enumerate(spelt):
        expected = [t for t, count in enumerate(words) for _ in range(count)]
        assert torch.equal(pieces_BPD[b, prefix : prefix + len(expected)], words_BTD[b, expected])
        assert (pieces_BPD[b, :prefix] == 0).all()
