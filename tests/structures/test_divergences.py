"""Entropies and divergences against enumeration."""

import pytest
import torch
from hypothesis import given

from raykd.structures import Chain, cross_entropy, entropy, kl, posterior_kl, token_marginals
from tests.oracles.chains import enumerate_chain
from tests.structures.chains import CODES, MINUS_INFINITY, SETTINGS, chains, close, like, size_of, using


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(p=chains())
def test_entropy_cross_entropy_and_kl_are_sums_over_labellings(code, p):
    q = like(p)
    with using(code):
        found = entropy(p), cross_entropy(p, q), kl(p, q), kl(p, p)
    laws = list(zip(enumerate_chain(p), enumerate_chain(q), strict=True))
    possible = torch.stack([law.log_z > MINUS_INFINITY for law, _ in laws])
    h = torch.stack([law.entropy() for law, _ in laws])
    crossed = torch.stack([law.cross_entropy(other) for law, other in laws])
    size = size_of(p) + size_of(q)
    for value, expected in zip(found, (h, crossed, crossed - h, torch.zeros_like(h)), strict=True):
        close(value[possible], expected[possible], p, size=size)


@pytest.mark.parametrize("code", CODES)
def test_the_divergence_is_infinite_where_q_forbids_what_p_allows(code):
    forbidding = torch.tensor([[0.0, MINUS_INFINITY], [0.0, 0.0]])
    p = Chain(torch.zeros(1, 2, 2), torch.tensor([2]), torch.zeros(2, 2))
    q = Chain(torch.zeros(1, 2, 2), torch.tensor([2]), forbidding)
    with using(code):
        assert kl(p, q) == float("inf")
        torch.testing.assert_close(kl(q, p), torch.tensor([4 / 3]).log())


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(forbid=False))
def test_posterior_kl_is_the_sum_of_token_divergences(code, chain):
    teacher = torch.softmax(like(chain).emissions_BTY, 2)
    with using(code):
        found, own = posterior_kl(teacher, chain), posterior_kl(token_marginals(chain), chain)
    for b, law in enumerate(enumerate_chain(chain)):
        q = teacher[b, : int(chain.lengths_B[b])].double()
        p = law.token_marginals()
        if (p < 1e-290).any():
            continue  # the oracle's own marginals have underflowed
        close(found[b], (q * (q.log() - p.log())).sum(), chain, size=size_of(chain))
    close(own, torch.zeros_like(own), chain, size=chain.time)


@pytest.mark.parametrize("code", CODES)
def test_posterior_kl_sees_marginals_too_small_for_float32(code):
    emissions = torch.tensor([[[0.0, -200.0], [0.0, -1e4]]], requires_grad=True)
    chain = Chain(emissions, torch.tensor([2]), torch.zeros(2, 2))
    with using(code):
        found = posterior_kl(torch.full((1, 2, 2), 0.5), chain)
        found.sum().backward()
    half = torch.tensor(0.5).log()
    torch.testing.assert_close(found.detach(), (2 * half + 5100).view(1), atol=1e-2, rtol=0)
    torch.testing.assert_close(emissions.grad, torch.tensor([[[0.5, -0.5], [0.5, -0.5]]]))


@pytest.mark.parametrize("code", CODES)
def test_posterior_kl_to_what_the_student_forbids_is_infinite(code):
    forbidding = torch.tensor([[0.0, MINUS_INFINITY], [0.0, MINUS_INFINITY]])
    chain = Chain(torch.zeros(2, 2, 2), torch.tensor([2, 1]), forbidding)
    with using(code):
        found = posterior_kl(torch.full((2, 2, 2), 0.5), chain)
    assert found[0] == float("inf")
    torch.testing.assert_close(found[1], torch.tensor(0.0), atol=1e-6, rtol=0)


def test_chains_over_other_sentences_and_wrong_marginals_are_refused():
    chain = Chain(torch.zeros(1, 2, 3), torch.tensor([2]))
    with pytest.raises(ValueError, match="same sentences"):
        kl(chain, Chain(torch.zeros(1, 2, 3), torch.tensor([1])))
    with pytest.raises(ValueError, match="teacher marginals must be"):
        posterior_kl(torch.zeros(1, 2, 2), chain)
