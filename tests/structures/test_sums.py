"""log Z, marginals and moments against enumeration."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given

from raykd.structures import Chain, log_partition, moments, reference, token_marginals
from tests.oracles.chains import enumerate_chain
from tests.structures.chains import (
    CODES,
    MINUS_INFINITY,
    SETTINGS,
    chains,
    close,
    padded,
    size_of,
    using,
)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains())
def test_log_partition_is_the_log_of_the_sum_over_all_labellings(code, chain):
    with using(code):
        actual = log_partition(chain)
    expected = torch.stack([law.log_z for law in enumerate_chain(chain)])
    close(actual, expected, chain, size=size_of(chain))


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains())
def test_marginals_and_moments_are_expectations(code, chain):
    with using(code):
        token, summed = token_marginals(chain), moments(chain)
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        close(token[b, :n], law.token_marginals(), chain)
        close(summed.transition_BYY[b], law.transitions(), chain)
        close(summed.start_BY[b], law.token_marginals()[0], chain)
        close(summed.end_BY[b], law.token_marginals()[-1], chain)
        assert not token[b, n:].any()


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(forbid=False))
def test_probabilities_sum_to_one(code, chain):
    with using(code):
        token, summed = token_marginals(chain), moments(chain)
    close(token.sum(2), chain.mask_BT, chain)
    close(summed.transition_BYY.sum((1, 2)), chain.lengths_B - 1, chain, size=chain.time)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains())
def test_order_of_the_batch_and_extra_padding_change_nothing(code, chain):
    turned = torch.arange(chain.batch - 1, -1, -1)
    with using(code):
        expected, turned_moments, longer = (
            moments(chain),
            moments(chain.select(turned)),
            moments(padded(chain, 3)),
        )
        close(log_partition(padded(chain, 3)), log_partition(chain), chain, size=size_of(chain))
    close(turned_moments.token_BTY[turned], expected.token_BTY, chain)
    close(turned_moments.transition_BYY[turned], expected.transition_BYY, chain)
    close(longer.token_BTY[:, : chain.time], expected.token_BTY, chain)
    close(longer.transition_BYY, expected.transition_BYY, chain)
    assert not longer.token_BTY[:, chain.time :].any()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("per_sentence", [False, True])
def test_when_all_but_one_path_is_forbidden_it_has_all_the_mass(code, per_sentence):
    path = [2, 0, 1, 1, 2]
    transitions = torch.full((3, 3), MINUS_INFINITY)
    for i, j in pairwise(path):
        transitions[i, j] = 0.5
    start = torch.tensor([MINUS_INFINITY, MINUS_INFINITY, 1.0])
    end = torch.tensor([MINUS_INFINITY, MINUS_INFINITY, -1.0])
    emissions = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0)) * 50
    transitions[1, 0] = transitions[0, 2] = MINUS_INFINITY
    chain = Chain(
        emissions, torch.tensor([5]), transitions[None] if per_sentence else transitions, start, end
    )
    with using(code):
        token = token_marginals(chain)
    law = enumerate_chain(chain)[0]
    close(token[0], law.token_marginals(), chain)


@pytest.mark.parametrize("code", CODES)
def test_where_no_path_is_allowed_log_z_is_minus_infinity_and_nothing_is_nan(code):
    emissions = torch.zeros(2, 3, 2, requires_grad=True)
    transitions = torch.full((2, 2), MINUS_INFINITY)
    chain = Chain(emissions, torch.tensor([3, 1]), transitions)
    with using(code):
        actual = log_partition(chain)
        token, summed = token_marginals(chain), moments(chain)
        actual[1].backward()
    assert actual[0] == MINUS_INFINITY
    torch.testing.assert_close(actual[1], torch.tensor(2.0).log())
    assert not token[0].any()
    assert not summed.transition_BYY.any()
    assert emissions.grad.isfinite().all()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("transitions", [None, torch.zeros(2, 2)], ids=["independent", "chain"])
def test_nan_and_infinity_change_their_own_sentence_only(code, bad, transitions):
    emissions = torch.zeros(2, 3, 2)
    emissions[0, 1, 1] = bad
    with using(code):
        actual = log_partition(Chain(emissions, torch.tensor([3, 3]), transitions))
    assert not actual[0].isfinite()
    torch.testing.assert_close(actual[1], torch.tensor(8.0).log())


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("batch", "time", "tags"), [(1, 1, 1), (17, 3, 9), (33, 20, 17), (5, 4, 41), (40, 2, 7)]
)
@pytest.mark.parametrize("per_sentence", [False, True])
def test_shapes_beyond_enumeration_agree_with_the_plain_recursion(code, batch, time, tags, per_sentence):
    generator = torch.Generator().manual_seed(batch)
    shape = (batch, tags, tags) if per_sentence else (tags, tags)
    chain = Chain(
        torch.randn(batch, time, tags, generator=generator) * 3,
        torch.randint(1, time + 1, (batch,), generator=generator),
        torch.randn(*shape, generator=generator),
        torch.randn(tags, generator=generator),
    )
    with using(code):
        actual = moments(chain)
    wide = chain.double()
    close(actual.token_BTY, reference.token_marginals(wide), chain)
    close(actual.transition_BYY, reference.transition_moments(wide), chain)
