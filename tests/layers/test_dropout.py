import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.layers.dropout import (
    ReproducibleDropout,
    VariationalDropout,
    WordDropout,
    hash_rows,
    keep_mask,
    masks_by_sentence,
    step_masks,
)

CPU = torch.device("cpu")


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


def test_a_worker_draws_the_masks_of_its_sentences():
    rows = torch.arange(6)
    with step_masks(3, rows):
        first, second = keep_mask((6, 9, 10), 0.4, CPU), keep_mask((6, 9, 10), 0.4, CPU)
    assert not torch.equal(first, second), "the masks of a step differ"
    with step_masks(3, rows[1::3]):  # shorter sentences, so less padding
        worker_mask = keep_mask((2, 7, 10), 0.4, CPU)
        # Masks with keys are not counted: another worker may draw more of them.
        keep_mask((5, 4), 0.4, CPU, keys_N=rows[:5])
        assert torch.equal(worker_mask, first[1::3, :7])
        assert torch.equal(keep_mask((2, 9, 10), 0.4, CPU), second[1::3])


def test_windows_of_a_sentence_have_its_masks():
    with step_masks(3, torch.tensor([4, 5])):
        whole = keep_mask((2, 3, 8), 0.5, CPU)
    with step_masks(3, torch.tensor([4, 5])), masks_by_sentence(torch.tensor([1, 1, 0])):
        assert torch.equal(keep_mask((3, 3, 8), 0.5, CPU), whole[[1, 1, 0]])


@settings(max_examples=30, deadline=None)
@given(rate=st.floats(0.02, 0.98), seed=st.integers(0, 2**62), size=st.integers(1, 9))
def test_elements_are_kept_independently_with_the_stated_probability(rate, seed, size):
    with step_masks(seed, torch.arange(4000)):
        stays = keep_mask((4000, 3, size), rate, CPU).double()
    count = stays.numel()
    spread = (rate * (1 - rate)) ** 0.5
    assert abs(stays.mean() - (1 - rate)) < 6 * spread / count**0.5
    centred = stays - (1 - rate)
    pairs = [centred[1:] * centred[:-1], centred[:, 1:] * centred[:, :-1]]
    pairs += [centred[..., 1:] * centred[..., :-1]] if size > 1 else []
    for products in pairs:
        assert abs(products.mean()) < 6 * spread**2 / products.numel() ** 0.5


def test_a_word_has_one_mask_wherever_it_stands():
    narrow, wide = torch.tensor([[5, 6, 0], [6, 5, 0]]), torch.tensor([[7, 7, 7, 7], [5, 6, 0, 0]])
    assert hash_rows(narrow)[0] == hash_rows(wide)[1] != hash_rows(narrow)[1]


def test_dropout_of_another_library_draws_here():
    module, inputs = torch.nn.Dropout(0.5), torch.ones(4, 3, 8)
    with step_masks(1, torch.arange(4)), ReproducibleDropout():
        whole = module(inputs)
    with step_masks(1, torch.tensor([2])), ReproducibleDropout():
        assert torch.equal(module(inputs[2:3]), whole[2:3])
    assert set(whole.unique().tolist()) == {0.0, 2.0}


def test_rows_that_belong_to_no_sentence_have_the_masks_of_every_worker():
    """As the relative positions of DeBERTa, of which every layer drops components."""
    module, positions = torch.nn.Dropout(0.5), torch.ones(8, 64)
    masks = []
    for rows in (torch.arange(4), torch.tensor([2])):
        with step_masks(1, rows), ReproducibleDropout():
            masks.append(torch.stack([module(positions), module(positions)]))
    assert torch.equal(*masks)
    first, second = masks[0]
    assert not torch.equal(first, second)
    assert len(first.unique(dim=0)) == 8
