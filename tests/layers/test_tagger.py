from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad

from raykd.layers.piece_vectors import last_states
from raykd.layers.tagger import Tagger, TaggerShape
from tests.layers.batches import CHARACTERS, PIECES, make_batch


def make_tagger(**sizes):
    torch.manual_seed(0)
    shape = {"pieces": PIECES.size, "tags": 5, "embedding_dim": 6, "hidden_dim": 4} | sizes
    return Tagger(TaggerShape(**shape)).eval()


def chain_of(tagger, batch):
    return tagger(batch).distribution


SPELLING = {"characters": CHARACTERS.size, "character_dim": 4, "character_hidden": 3}


def test_one_row_of_emissions_per_word():
    batch = make_batch()
    chain = chain_of(make_tagger(), batch)
    assert chain.emissions_BTY.shape == (4, 8, 5)
    assert chain.lengths_B.tolist() == [5, 1, 8, 2]


def test_a_word_is_predicted_at_its_first_piece():
    batch, tagger = make_batch(), make_tagger()
    states = tagger.encoder(tagger.embedding(batch.pieces_BP), batch.piece_lengths_B)
    assert int(batch.piece_lengths_B[2]) > int(batch.lengths_B[2])  # some word has several pieces
    first = batch.first_BT[2, 7]
    emissions_Y = chain_of(tagger, batch).emissions_BTY[2, 7]
    torch.testing.assert_close(emissions_Y, tagger.head.emissions(states[2, first]))


@pytest.mark.parametrize("sizes", [{}, SPELLING, {"decoder": "maxent", "layers": 2}])
def test_neighbours_in_the_batch_and_padding_change_nothing(sizes):
    tagger, batch = make_tagger(**sizes), make_batch()
    whole = chain_of(tagger, batch)
    wide = replace(batch, pieces_BP=pad(batch.pieces_BP, (0, 3), value=7))
    torch.testing.assert_close(
        chain_of(tagger, wide).emissions_BTY[whole.mask_BT], whole.emissions_BTY[whole.mask_BT]
    )
    for row in range(4):
        alone = chain_of(tagger, make_batch((row,)))
        torch.testing.assert_close(
            alone.emissions_BTY[0], whole.emissions_BTY[row, : int(whole.lengths_B[row])]
        )


def test_characters_distinguish_words_that_pieces_do_not():
    batch = make_batch((0,))
    unknown = replace(batch, pieces_BP=torch.ones_like(batch.pieces_BP))
    changed = replace(unknown, characters_BTC=unknown.characters_BTC.flip(1))
    plain, spelling = make_tagger(), make_tagger(**SPELLING)
    assert torch.equal(*(chain_of(plain, batch).emissions_BTY for batch in (unknown, changed)))
    assert not torch.allclose(*(chain_of(spelling, batch).emissions_BTY for batch in (unknown, changed)))


def test_a_batch_without_characters_is_refused_where_they_are_read():
    with pytest.raises(ValueError, match="which the batch lacks"):
        make_tagger(**SPELLING)(make_batch(characters=False))


def test_emissions_are_float32_under_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert chain_of(make_tagger(**SPELLING), make_batch()).dtype == torch.float32


def test_a_sentence_gets_one_label_from_the_last_state_of_each_direction():
    """The reference is torch's LSTM over single sentences, with its final states."""
    batch, tagger = make_batch(), make_tagger(unit="sentence", layers=2)
    chain = chain_of(tagger, batch)
    assert chain.emissions_BTY.shape == (4, 1, 5)
    assert chain.lengths_B.tolist() == [1, 1, 1, 1]
    for b, length in enumerate(batch.piece_lengths_B.tolist()):
        states_1PD = tagger.embedding(batch.pieces_BP[b : b + 1, :length])
        for lstm in tagger.encoder.layers:
            states_1PD, (final, _) = lstm(states_1PD)
        expected_Y = tagger.head.emissions(torch.cat([final[0, 0], final[1, 0]]))
        torch.testing.assert_close(chain.emissions_BTY[b, 0], expected_Y)


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_hidden_states_are_the_input_and_the_output_of_each_layer(unit):
    batch, tagger = make_batch(), make_tagger(layers=2, unit=unit)
    states = tagger(batch, layers=(0, 1, 2, -1)).hidden
    inputs_BPD = tagger.embedding(batch.pieces_BP)
    outputs_BPD = tagger.encoder(inputs_BPD, batch.piece_lengths_B)
    if unit == "word":
        first_BT1 = batch.first_BT[:, :, None]
        torch.testing.assert_close(states[0], inputs_BPD.take_along_dim(first_BT1, 1))
        torch.testing.assert_close(states[2], outputs_BPD.take_along_dim(first_BT1, 1))
    else:
        lengths = batch.piece_lengths_B.tolist()
        means = [vectors_PD[:n].mean(0) for vectors_PD, n in zip(inputs_BPD, lengths, strict=True)]
        torch.testing.assert_close(states[0][:, 0], torch.stack(means))
        torch.testing.assert_close(states[2], last_states(outputs_BPD, batch.piece_lengths_B))
    assert torch.equal(states[-1], states[2])
    assert not torch.equal(states[1], states[2])


def test_a_layer_that_is_not_there_is_refused():
    tagger = make_tagger(layers=2)
    for ask in (lambda: tagger(make_batch(), layers=(3,)), lambda: tagger.hidden_size(-4)):
        with pytest.raises(
            ValueError, match=r"has no layer (3|-4); choose from 0 \(the encoder's input\) to 2"
        ):
            ask()


@pytest.mark.parametrize("decoder", ["crf", "maxent"])
def test_a_head_that_is_drawn_anew_is_another_one_by_the_generator(decoder):
    tagger = make_tagger(decoder=decoder)
    parameters = list(tagger.parameters())
    before = {name: value.clone() for name, value in tagger.state_dict().items()}
    with torch.no_grad():
        for parameter in tagger.head.parameters():
            parameter.fill_(3.0)
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        tagger.reset_head()
        drawn.append({name: value.clone() for name, value in tagger.state_dict().items()})
    assert all(torch.equal(drawn[0][name], drawn[1][name]) for name in before)
    differ = {name for name, value in before.items() if not torch.equal(value, drawn[0][name])}
    assert differ == {"head.emissions.weight", "head.emissions.bias"}
    # The optimiser holds the same parameters as before.
    assert all(old is new for old, new in zip(parameters, tagger.parameters(), strict=True))
