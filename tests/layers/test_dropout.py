import torch

from raykd.layers import VariationalDropout, WordDropout


def test_variational_dropout_has_one_mask_per_sentence():
    torch.manual_seed(0)
    dropped_BTD = VariationalDropout(0.5)(torch.ones(8, 5, 16))
    assert set(dropped_BTD.unique().tolist()) == {0.0, 2.0}
    assert (dropped_BTD == dropped_BTD[:, :1]).all()
    assert not (dropped_BTD[0] == dropped_BTD[1]).all()


def test_variational_dropout_keeps_the_mean():
    torch.manual_seed(0)
    assert abs(VariationalDropout(0.3)(torch.ones(2000, 1, 50)).mean() - 1) < 0.01


def test_evaluation_and_rate_zero_change_nothing():
    inputs_BTD, pieces_BP = torch.randn(2, 3, 4), torch.tensor([[5, 6, 7]])
    assert torch.equal(VariationalDropout(0.5).eval()(inputs_BTD), inputs_BTD)
    assert torch.equal(VariationalDropout(0.0)(inputs_BTD), inputs_BTD)
    assert torch.equal(WordDropout(0.5, unknown=1).eval()(pieces_BP), pieces_BP)
    assert torch.equal(WordDropout(0.0, unknown=1)(pieces_BP), pieces_BP)


def test_word_dropout_makes_a_share_of_pieces_unknown():
    torch.manual_seed(0)
    dropped_BP = WordDropout(0.25, unknown=1)(torch.full((100, 100), 9))
    assert set(dropped_BP.unique().tolist()) == {1, 9}
    assert abs((dropped_BP == 1).double().mean() - 0.25) < 0.02
