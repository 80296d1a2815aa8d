"""A chain is checked once, at construction."""

import pytest
import torch

from raykd.structures import Chain, log_partition, token_marginals

EMISSIONS = torch.zeros(2, 3, 4)
LENGTHS = torch.tensor([3, 1])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((torch.zeros(2, 3), LENGTHS), "emissions must be"),
        ((torch.zeros(2, 3, 4, dtype=torch.int64), LENGTHS), "emissions must be"),
        ((torch.zeros(2, 0, 4), LENGTHS), "at least one token"),
        ((EMISSIONS, torch.tensor([3, 4])), "1..3"),
        ((EMISSIONS, torch.tensor([3, 0])), "1..3"),
        ((EMISSIONS, torch.tensor([3])), "lengths must be integers"),
        ((EMISSIONS, torch.tensor([3.0, 1.0])), "lengths must be integers"),
        ((EMISSIONS, torch.tensor([True, True])), "lengths must be integers"),
        ((EMISSIONS, LENGTHS, torch.zeros(4, 3)), "transitions must be"),
        ((EMISSIONS, LENGTHS, torch.zeros(3, 4, 4)), "transitions must be"),
        ((EMISSIONS, LENGTHS, None, torch.zeros(3)), "start must be"),
        ((EMISSIONS, LENGTHS, None, None, torch.zeros(1, 4)), "end must be"),
        ((EMISSIONS, LENGTHS, torch.zeros(4, 4, device="meta")), "transitions is on meta"),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_their_shapes(parts, message):
    with pytest.raises(ValueError, match=message):
        Chain(*parts)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_and_its_gradient_comes_back_in_half(dtype):
    emissions = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    transitions = torch.zeros(4, 4)
    chain = Chain(emissions, LENGTHS, transitions)
    assert chain.dtype == torch.float32
    log_partition(chain).sum().backward()
    wide = token_marginals(Chain(emissions.detach().float(), LENGTHS, transitions))
    assert emissions.grad.dtype == dtype
    torch.testing.assert_close(emissions.grad.float(), wide, atol=torch.finfo(dtype).eps, rtol=0)


def test_one_double_part_makes_the_chain_double():
    chain = Chain(EMISSIONS, LENGTHS, torch.zeros(4, 4, dtype=torch.float64))
    assert {part.dtype for part in chain.scores()} == {torch.float64}


def test_selecting_sentences_keeps_shared_scores_and_selects_own_ones():
    per_sentence = torch.arange(32.0).view(2, 4, 4)
    chain = Chain(EMISSIONS, LENGTHS, per_sentence, torch.arange(4.0)).select(torch.tensor([1]))
    assert chain.batch == 1
    assert torch.equal(chain.transitions, per_sentence[1:])
    assert torch.equal(chain.start, torch.arange(4.0))


def test_an_empty_batch_has_empty_results():
    chain = Chain(torch.zeros(0, 3, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(4, 4))
    assert log_partition(chain).shape == (0,)
    assert token_marginals(chain).shape == (0, 3, 4)
