from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad

from raykd.layers import BiLSTMTagger, BiLSTMTaggerShape
from tests.layers.batches import CHARACTERS, PIECES, make_batch


def make_tagger(**sizes):
    torch.manual_seed(0)
    shape = {"pieces": PIECES.size, "tags": 5, "embedding_dim": 6, "hidden_dim": 4} | sizes
    return BiLSTMTagger(BiLSTMTaggerShape(**shape)).eval()


SPELLING = {"characters": CHARACTERS.size, "character_dim": 4, "character_hidden": 3}


def test_one_row_of_emissions_per_word():
    batch = make_batch()
    chain = make_tagger()(batch)
    assert chain.emissions_BTY.shape == (4, 8, 5)
    assert chain.lengths_B.tolist() == [5, 1, 8, 2]


def test_a_word_is_predicted_at_its_first_piece():
    batch, tagger = make_batch(), make_tagger()
    states = tagger.encoder(tagger.embedding(batch.pieces_BP), batch.piece_lengths_B)
    assert int(batch.piece_lengths_B[2]) > int(batch.lengths_B[2])  # some word has several pieces
    first = batch.first_BT[2, 7]
    torch.testing.assert_close(tagger(batch).emissions_BTY[2, 7], tagger.head.emissions(states[2, first]))


@pytest.mark.parametrize("sizes", [{}, SPELLING, {"decoder": "maxent", "layers": 2}])
def test_neighbours_in_the_batch_and_padding_change_nothing(sizes):
    tagger, batch = make_tagger(**sizes), make_batch()
    whole = tagger(batch)
    wide = replace(batch, pieces_BP=pad(batch.pieces_BP, (0, 3), value=7))
    torch.testing.assert_close(tagger(wide).emissions_BTY[whole.mask_BT], whole.emissions_BTY[whole.mask_BT])
    for row in range(4):
        alone = tagger(make_batch((row,)))
        torch.testing.assert_close(
            alone.emissions_BTY[0], whole.emissions_BTY[row, : int(whole.lengths_B[row])]
        )


def test_characters_tell_words_apart_that_pieces_do_not():
    batch = make_batch((0,))
    unknown = replace(batch, pieces_BP=torch.ones_like(batch.pieces_BP))
    changed = replace(unknown, characters_BTC=unknown.characters_BTC.flip(1))
    plain, spelling = make_tagger(), make_tagger(**SPELLING)
    assert torch.equal(plain(unknown).emissions_BTY, plain(changed).emissions_BTY)
    assert not torch.allclose(spelling(unknown).emissions_BTY, spelling(changed).emissions_BTY)


def test_a_batch_without_characters_is_refused_where_they_are_read():
    with pytest.raises(ValueError, match="the batch has none"):
        make_tagger(**SPELLING)(make_batch(characters=False))


def test_emissions_are_float32_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert make_tagger(**SPELLING)(make_batch()).dtype == torch.float32
