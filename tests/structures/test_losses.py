"""Losses and moments against enumerated definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.structures import (
    Chain,
    Moments,
    expected_score,
    fenchel_young,
    kbest,
    log_partition,
    moments,
    path_loss,
    path_moments,
    path_weights,
    posterior_kl,
    score,
    tempered_moments,
    token_marginals,
)
from tests.oracles.chains import enumerate_chain, one_hot, pair_counts
from tests.structures.chains import (
    CODES,
    MINUS_INFINITY,
    SETTINGS,
    chains,
    close,
    like,
    padded,
    size_of,
    using,
)

FREE = {"forbid": False, "magnitudes": (0.1, 1.0, 5.0)}


def some_paths(chain: Chain, k: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(k)
    return torch.randint(0, chain.tags, (chain.batch, k, chain.time), generator=generator)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(**FREE), k=st.integers(1, 4))
def test_path_loss_is_the_weighted_negative_log_likelihood(code, chain, k):
    paths = some_paths(chain, k)
    weights = torch.rand(chain.batch, k, generator=torch.Generator().manual_seed(1))
    with using(code):
        actual, gold = path_loss(chain, paths, weights), path_loss(chain, paths[:, 0])
    expected = []
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        place = {path: index for index, path in enumerate(law.paths)}
        logs = law.scores[[place[tuple(path[:n].tolist())] for path in paths[b]]] - law.log_z
        expected.append(torch.stack([-(weights[b] * logs).sum(), -logs[0]]))
    expected = torch.stack(expected)
    close(actual, expected[:, 0], chain, size=size_of(chain))
    close(gold, expected[:, 1], chain, size=size_of(chain))


@pytest.mark.parametrize("code", CODES)
def test_a_path_of_weight_zero_has_no_effect_even_where_it_is_impossible(code):
    transitions = torch.tensor([[0.0, MINUS_INFINITY], [0.0, 0.0]], requires_grad=True)
    chain = Chain(torch.zeros(1, 2, 2), torch.tensor([2]), transitions)
    paths = torch.tensor([[[0, 0], [0, 1]]])
    with using(code):
        loss = path_loss(chain, paths, torch.tensor([[1.0, 0.0]]))
        loss.sum().backward()
        impossible = path_loss(chain, paths[:, 1])
    torch.testing.assert_close(loss.detach(), torch.tensor([3.0]).log())
    assert transitions.grad.isfinite().all()
    assert impossible == float("inf")


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(**FREE), k=st.integers(1, 3))
def test_three_ways_to_the_same_loss_and_gradient(code, chain, k):
    """path_loss, fenchel_young of path_moments, and log Z minus the mean score are one thing."""
    chain = chain.map(lambda part: part.clone().requires_grad_())
    paths = some_paths(chain, k)
    weights = torch.full((chain.batch, k), 1 / k, dtype=chain.dtype)
    target = path_moments(paths, weights, chain.lengths_B, chain.tags)
    with using(code):
        losses = (
            path_loss(chain, paths, weights),
            fenchel_young(chain, target),
            log_partition(chain) - score(chain, paths).mean(1),
        )
        scale = torch.linspace(1, 2, chain.batch, dtype=chain.dtype)
        gradients = [torch.autograd.grad((loss * scale).sum(), chain.scores()) for loss in losses]
    for loss, gradient in zip(losses[1:], gradients[1:], strict=True):
        close(loss, losses[0], chain, size=size_of(chain))
        for part, expected in zip(gradient, gradients[0], strict=True):
            close(part, expected, chain, size=chain.time * chain.batch)


@SETTINGS
@given(chain=chains(forbid=False))
def test_path_moments_count(chain):
    paths = some_paths(chain, 2)
    weights = torch.tensor([0.25, 2.0], dtype=chain.dtype).expand(chain.batch, 2)
    actual = path_moments(paths, weights, chain.lengths_B, chain.tags)
    for b in range(chain.batch):
        n = int(chain.lengths_B[b])
        both = [tuple(path[:n].tolist()) for path in paths[b]]
        token = sum(w * one_hot(path, chain.tags) for w, path in zip((0.25, 2.0), both, strict=True))
        pair = sum(
            w * pair_counts(path, chain.tags).sum(0) for w, path in zip((0.25, 2.0), both, strict=True)
        )
        torch.testing.assert_close(actual.token_BTY[b, :n].double(), token)
        torch.testing.assert_close(actual.transition_BYY[b].double(), pair)
        torch.testing.assert_close(actual.start_BY[b].double(), token[0])
        torch.testing.assert_close(actual.end_BY[b].double(), token[-1])
        assert not actual.token_BTY[b, n:].any()


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(teacher=chains(**FREE))
def test_fenchel_young_is_the_cross_entropy_to_the_moments_owner(code, teacher):
    student = like(teacher, seed=3)
    with using(code):
        loss, floor = fenchel_young(student, moments(teacher)), fenchel_young(teacher, moments(teacher))
    pairs = zip(enumerate_chain(teacher), enumerate_chain(student), strict=True)
    expected = torch.stack([t.cross_entropy(s) for t, s in pairs])
    close(loss, expected, teacher, size=size_of(teacher))
    close(
        floor,
        torch.stack([law.entropy() for law in enumerate_chain(teacher)]),
        teacher,
        size=size_of(teacher),
    )


@pytest.mark.parametrize("code", CODES)
def test_fenchel_young_has_no_gradient_where_the_moments_agree_and_one_in_the_moments(code):
    teacher = like(Chain(torch.zeros(3, 4, 3, dtype=torch.float64), torch.tensor([4, 2, 1])), seed=1)
    student = teacher.map(lambda part: part.clone().requires_grad_())
    with using(code):
        target = moments(teacher)
        for gradient in torch.autograd.grad(fenchel_young(student, target).sum(), student.scores()):
            torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)
        token = target.token_BTY.clone().requires_grad_()
        moved = Moments(token, target.transition_BYY, target.start_BY, target.end_BY)
        (gradient,) = torch.autograd.grad(fenchel_young(teacher, moved).sum(), token)
    mask = teacher.mask_BT[:, :, None]
    torch.testing.assert_close(gradient, -teacher.emissions_BTY * mask)


def test_moments_that_do_not_count_what_the_chain_scores_are_refused():
    chain = Chain(torch.zeros(1, 2, 3), torch.tensor([2]), torch.zeros(3, 3))
    with pytest.raises(ValueError, match="transitions scores"):
        fenchel_young(chain, moments(chain, pairwise=False))
    with pytest.raises(ValueError, match="token moments must be"):
        expected_score(chain, Moments(torch.zeros(1, 3, 3)))


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(magnitudes=(1.0, 5.0, 30.0)), temperature=st.sampled_from([0.5, 2.0, 5.0, 50.0]))
def test_local_temperature_is_the_enumerated_one(code, chain, temperature):
    """Marginals of substructures to the power 1/ϑ, renormalised."""
    with using(code):
        pairwise = tempered_moments(chain, temperature)
        single = tempered_moments(chain, temperature, "local", pairwise=False)

    def tempered(marginal):
        rooted = marginal ** (1 / temperature)
        return rooted / rooted.sum().clamp(min=1e-300)

    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        token = torch.stack([tempered(row) for row in law.token_marginals()])
        pairs = [tempered(pair) for pair in law.pairwise_marginals()[1:]]
        close(single.token_BTY[b, :n], token, chain)
        close(pairwise.start_BY[b], token[0], chain)
        close(pairwise.end_BY[b], token[-1], chain)
        close(pairwise.token_BTY[b, 0], token[0], chain)
        for t, pair in enumerate(pairs, start=1):
            close(pairwise.token_BTY[b, t], pair.sum(0), chain)
        total = sum(pairs, torch.zeros(chain.tags, chain.tags, dtype=torch.float64))
        close(pairwise.transition_BYY[b], total, chain, size=chain.time)
        assert not pairwise.token_BTY[b, n:].any()
    assert single.transition_BYY is None


@SETTINGS
@given(chain=chains(magnitudes=(1.0, 5.0)), temperature=st.sampled_from([0.5, 3.0]))
def test_global_temperature_is_that_of_the_scores(chain, temperature):
    actual = tempered_moments(chain, temperature, "global")
    for b, law in enumerate(enumerate_chain(chain.double().map(lambda part: part / temperature))):
        n = int(chain.lengths_B[b])
        close(actual.token_BTY[b, :n], law.token_marginals(), chain)
        close(actual.transition_BYY[b], law.transitions(), chain)


def test_a_temperature_of_one_changes_nothing_and_a_wrong_one_is_refused():
    chain = like(Chain(torch.zeros(2, 3, 3), torch.tensor([3, 1])))
    torch.testing.assert_close(tempered_moments(chain, 1.0).transition_BYY, moments(chain).transition_BYY)
    almost = tempered_moments(chain, 1.0 + 1e-9)
    torch.testing.assert_close(almost.token_BTY, moments(chain).token_BTY, atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="positive"):
        tempered_moments(chain, 0.0)
    with pytest.raises(ValueError, match="local, global"):
        tempered_moments(chain, 2.0, "locally")


@pytest.mark.parametrize("code", CODES)
def test_the_k_best_paths_of_a_small_chain_recover_its_moments(code):
    """With all paths among the K best, Top-WK is structural distillation."""
    chain = like(Chain(torch.zeros(2, 3, 2, dtype=torch.float64), torch.tensor([3, 2])))
    with using(code):
        paths, scores = kbest(chain, 8)
        actual = path_moments(paths, path_weights(scores), chain.lengths_B, 2)
        target = moments(chain)
        loss = path_loss(chain, paths, path_weights(scores))
    torch.testing.assert_close(actual.token_BTY, target.token_BTY)
    torch.testing.assert_close(actual.transition_BYY, target.transition_BYY)
    expected = torch.stack([law.entropy() for law in enumerate_chain(chain)])
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(**FREE))
def test_padding_does_not_change_a_loss(code, chain):
    longer = padded(chain, 2)
    paths = some_paths(longer, 2)
    with using(code):
        loss, padded_loss = path_loss(chain, paths[:, :, : chain.time]), path_loss(longer, paths)
        close(loss, padded_loss, chain, size=size_of(chain))
        target = moments(like(chain))
        more = moments(like(padded(chain, 2)))
        stretched = Moments(
            torch.zeros_like(more.token_BTY), target.transition_BYY, target.start_BY, target.end_BY
        )
        stretched.token_BTY[:, : chain.time] = target.token_BTY
        close(fenchel_young(longer, stretched), fenchel_young(chain, target), chain, size=size_of(chain))


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(forbid=False))
def test_posterior_kl_is_the_sum_of_token_divergences(code, chain):
    teacher = torch.softmax(like(chain).emissions_BTY, 2)
    with using(code):
        actual, to_itself = posterior_kl(teacher, chain), posterior_kl(token_marginals(chain), chain)
    for b, law in enumerate(enumerate_chain(chain)):
        q = teacher[b, : int(chain.lengths_B[b])].double()
        p = law.token_marginals()
        if (p < 1e-290).any():
            continue  # the oracle's to_itself marginals have underflowed
        close(actual[b], (q * (q.log() - p.log())).sum(), chain, size=size_of(chain))
    close(to_itself, torch.zeros_like(to_itself), chain, size=chain.time)


@pytest.mark.parametrize("code", CODES)
def test_posterior_kl_sees_marginals_too_small_for_float32(code):
    emissions = torch.tensor([[[0.0, -200.0], [0.0, -1e4]]], requires_grad=True)
    chain = Chain(emissions, torch.tensor([2]), torch.zeros(2, 2))
    with using(code):
        actual = posterior_kl(torch.full((1, 2, 2), 0.5), chain)
        actual.sum().backward()
    half = torch.tensor(0.5).log()
    torch.testing.assert_close(actual.detach(), (2 * half + 5100).view(1), atol=1e-2, rtol=0)
    torch.testing.assert_close(emissions.grad, torch.tensor([[[0.5, -0.5], [0.5, -0.5]]]))


@pytest.mark.parametrize("code", CODES)
def test_posterior_kl_to_what_the_student_forbids_is_infinite(code):
    forbidding = torch.tensor([[0.0, MINUS_INFINITY], [0.0, MINUS_INFINITY]])
    chain = Chain(torch.zeros(2, 2, 2), torch.tensor([2, 1]), forbidding)
    with using(code):
        actual = posterior_kl(torch.full((2, 2, 2), 0.5), chain)
    assert actual[0] == float("inf")
    torch.testing.assert_close(actual[1], torch.tensor(0.0), atol=1e-6, rtol=0)


def test_teacher_marginals_of_another_shape_are_refused():
    chain = Chain(torch.zeros(1, 2, 3), torch.tensor([2]))
    with pytest.raises(ValueError, match="teacher marginals must be"):
        posterior_kl(torch.zeros(1, 2, 2), chain)
