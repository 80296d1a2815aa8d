import torch

from raykd.layers.characters import GROUP, CharacterEncoder
from tests.layers.batches import CHARACTERS, make_batch


def make_encoder():
    torch.manual_seed(0)
    return CharacterEncoder(CHARACTERS.size, 6, 4)


def one_by_one(encoder, batch):
    """Run torch's LSTM over the words one by one."""
    (lstm,) = encoder.lstm.layers
    out = torch.zeros(*batch.first_BT.shape, encoder.output_size)
    for b, n in enumerate(batch.lengths_B.tolist()):
        for t in range(n):
            length = int(batch.character_lengths_BT[b, t])
            _, (last, _) = lstm(encoder.embedding(batch.characters_BTC[b : b + 1, t, :length]))
            out[b, t] = torch.cat([last[0, 0], last[1, 0]])
    return out


def test_each_word_is_run_as_if_alone_and_padding_is_zero():
    encoder, batch = make_encoder(), make_batch()
    torch.testing.assert_close(
        encoder(batch.characters_BTC, batch.character_lengths_BT), one_by_one(encoder, batch)
    )


def test_a_word_is_run_once_however_often_it_stands():
    encoder, batch = make_encoder(), make_batch()
    word_counts = []
    encoder.embedding.register_forward_hook(lambda module, inputs, output: word_counts.append(len(inputs[0])))
    encoder(batch.characters_BTC, batch.character_lengths_BT)
    assert sum(word_counts) == 14  # 16 words, Anna and Bob twice


def test_gradients_count_every_occurrence():
    encoder, batch = make_encoder(), make_batch()
    gradients = []
    for vectors in (encoder(batch.characters_BTC, batch.character_lengths_BT), one_by_one(encoder, batch)):
        encoder.zero_grad()
        vectors.square().sum().backward()
        gradients.append([p.grad.clone() for p in encoder.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_more_words_than_a_group():
    encoder = make_encoder()
    generator = torch.Generator().manual_seed(1)
    characters_BTC = torch.randint(2, CHARACTERS.size, (1, GROUP + 60, 9), generator=generator)
    lengths_BT = torch.randint(1, 10, (1, GROUP + 60), generator=generator)
    characters_BTC.masked_fill_(torch.arange(9) >= lengths_BT[..., None], 0)
    whole = encoder(characters_BTC, lengths_BT)
    apart = torch.cat(
        [encoder(characters_BTC[:, t : t + 1], lengths_BT[:, t : t + 1]) for t in range(GROUP + 60)], 1
    )
    torch.testing.assert_close(whole, apart)
