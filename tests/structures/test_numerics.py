"""Precision: long sentences, large scores, and the check that repeats in float64 what underflows in float32."""

import pytest
import torch
from hypothesis import given

from raykd.structures import Chain, engine, kbest, log_partition, moments, reference, token_marginals
from tests.oracles.chains import enumerate_chain
from tests.structures.chains import CODES, MINUS_INFINITY, SETTINGS, chains, close, size_of, using


def random_chain(batch: int, time: int, tags: int, *, emissions: float, transitions: float) -> Chain:
    generator = torch.Generator().manual_seed(0)

    def part(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator) * 2 - 1

    lengths = torch.randint(time // 2, time + 1, (batch,), generator=generator)
    return Chain(part(batch, time, tags) * emissions, lengths, part(tags, tags) * transitions, part(tags))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("transitions", [1.0, 5.0, 30.0])
def test_float32_marginals_stay_within_1e_5_of_float64_over_512_tokens(code, transitions):
    """Measured: 2.2e-7 at most with either code; log space in float32 is off by 1.7e-2 here."""
    chain = random_chain(4, 512, 9, emissions=50, transitions=transitions)
    with using(code):
        actual = token_marginals(chain)
    expected = reference.token_marginals(chain.double())
    assert (actual.double() - expected).abs().max() < 1e-5


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(magnitudes=(50.0, 1e4)))
def test_scores_of_fifty_and_ten_thousand(code, chain):
    with using(code):
        actual, token, (_, scores) = log_partition(chain), token_marginals(chain), kbest(chain, 2)
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        close(actual[b], law.log_z, chain, size=size_of(chain))
        close(token[b, :n], law.token_marginals(), chain)
        close(scores[b, 0], law.sorted_scores()[0], chain, size=size_of(chain))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reach", [60.0, 200.0, 2000.0])
def test_paths_that_only_a_large_detour_allows(code, dtype, reach):
    """Emissions require almost forbidden transitions: the one remaining path has e^−reach of each step's weight."""
    transitions = torch.zeros(3, 3, dtype=dtype)
    transitions[0, 1] = transitions[1, 2] = transitions[2, 0] = -reach
    emissions = torch.full((2, 6, 3), -2 * reach, dtype=dtype)
    for t in range(6):
        emissions[:, t, t % 3] = 0
    emissions[1] = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    chain = Chain(emissions, torch.tensor([6, 5]), transitions)
    with using(code):
        actual = moments(chain)
        log_z = log_partition(chain)
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        close(log_z[b], law.log_z, chain, size=size_of(chain))
        close(actual.token_BTY[b, :n], law.token_marginals(), chain)
        close(actual.transition_BYY[b], law.transitions(), chain)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("dtype", "lost"), [(torch.float32, 88.0), (torch.float64, 709.0)])
def test_mass_that_underflows_early_and_matters_later_is_detected(code, dtype, lost):
    """Everything stays finite, so only the underflow bound shows that a fifth of the mass is lost."""
    emissions = torch.tensor([[[0, -lost], [1.5 - lost, 0]]], dtype=dtype)
    apart = torch.tensor([[0, MINUS_INFINITY], [MINUS_INFINITY, 0]], dtype=dtype)
    chain = Chain(emissions, torch.tensor([2]), apart)
    with using(code):
        token = token_marginals(chain)
    expected = torch.softmax(torch.tensor([1.5 - lost, -lost], dtype=torch.float64), 0).to(dtype)
    torch.testing.assert_close(token[0], expected.expand(2, 2), atol=1e-5, rtol=0)


def record_sums(monkeypatch) -> list[tuple[int, torch.dtype]]:
    """Sentences and precision of the batches computed from now on."""
    computed, sums = [], engine.sums
    monkeypatch.setattr(
        engine,
        "sums",
        lambda chain, **options: computed.append((chain.batch, chain.dtype)) or sums(chain, **options),
    )
    return computed


@pytest.mark.parametrize("code", CODES)
def test_only_the_sentence_that_underflows_is_repeated_in_float64(code, monkeypatch):
    chain = random_chain(5, 8, 3, emissions=1, transitions=1)
    before = token_marginals(chain)
    emissions = chain.emissions_BTY.clone()
    transitions = chain.transitions.clone()
    transitions[0, 1] = -300.0
    emissions[2] = -1000.0
    emissions[2, ::2, 0] = emissions[2, 1::2, 1] = 0.0
    hard = Chain(emissions, chain.lengths_B, transitions.expand(5, 3, 3).clone(), chain.start)
    hard.transitions[[0, 1, 3, 4]] = chain.transitions
    computed = record_sums(monkeypatch)
    with using(code):
        actual = token_marginals(hard)
    assert computed == [(5, torch.float32), (1, torch.float64)]
    torch.testing.assert_close(actual[[0, 1, 3, 4]], before[[0, 1, 3, 4]], atol=1e-6, rtol=0)


@pytest.mark.parametrize("code", CODES)
def test_hard_constraints_alone_need_no_repeat(code, monkeypatch):
    """Forbidden transitions are exact zeros, not underflow."""
    chain = random_chain(8, 30, 9, emissions=20, transitions=5)
    blocked = torch.rand(9, 9, generator=torch.Generator().manual_seed(3)) < 0.5
    blocked.fill_diagonal_(False)
    bounded = Chain(
        chain.emissions_BTY,
        chain.lengths_B,
        chain.transitions.masked_fill(blocked, MINUS_INFINITY),
        chain.start,
    )
    computed = record_sums(monkeypatch)
    with using(code):
        actual = token_marginals(bounded)
    assert computed == [(8, torch.float32)]
    expected = reference.token_marginals(bounded.double())
    assert (actual.double() - expected).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scores_are_summed_in_float32(dtype):
    chain = random_chain(3, 64, 5, emissions=20, transitions=2)
    half = chain.map(lambda part: part.to(dtype))
    assert log_partition(half).dtype == torch.float32
    exact = reference.log_partition(half.double())
    torch.testing.assert_close(log_partition(half).double(), exact, rtol=1e-6, atol=0)


def test_the_plain_log_space_recursion_agrees_with_enumeration():
    """The reference, the fallback of the fast code, is compared with the definition too."""
    chain = random_chain(3, 4, 3, emissions=2, transitions=2).double()
    token = reference.token_marginals(chain)
    paths, scores = reference.k_best(chain, 5)
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        torch.testing.assert_close(reference.log_partition(chain)[b], law.log_z)
        torch.testing.assert_close(token[b, :n], law.token_marginals())
        torch.testing.assert_close(reference.transition_moments(chain)[b], law.transitions())
        torch.testing.assert_close(scores[b], law.sorted_scores()[:5])
    assert paths.shape == (3, 5, 4)
