import torch

from raykd.layers.piece_embedding import TokenEmbedding


def test_vectors_have_length_one_on_average():
    torch.manual_seed(0)
    assert abs(TokenEmbedding(2000, 30).table.weight.square().sum(1).mean() - 1) < 0.02


def test_a_dropped_word_is_the_unknown_one():
    torch.manual_seed(0)
    embedding = TokenEmbedding(10, 4, word_dropout=0.5, unknown=3)
    vectors_PD = embedding(torch.full((1, 200), 7))[0]
    word_D, unknown_D = embedding.table.weight[7], embedding.table.weight[3]
    assert all(torch.equal(v, word_D) or torch.equal(v, unknown_D) for v in vectors_PD)
    assert any(torch.equal(v, unknown_D) for v in vectors_PD)
