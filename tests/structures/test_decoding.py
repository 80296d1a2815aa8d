"""Labellings against enumeration: scores, the best, the K best, drawn ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from raykd.structures import Chain, kbest, path_weights, sample, score, viterbi
from tests.oracles.chains import enumerate_chain
from tests.structures.chains import CODES, MINUS_INFINITY, SETTINGS, chains, close, padded, size_of, using


@SETTINGS
@given(chain=chains())
def test_every_labelling_has_its_score(chain):
    for b, law in enumerate(enumerate_chain(chain)):
        sentence = chain.select(torch.tensor([b]))
        n = int(sentence.lengths_B)
        paths = torch.full((1, len(law.paths), chain.time), 99)  # tags on padding are not read
        paths[0, :, :n] = torch.tensor(law.paths)
        close(score(sentence, paths)[0], law.scores, chain, size=size_of(chain))
        close(score(sentence, paths[:, 0]), law.scores[:1], chain, size=size_of(chain))


def test_a_tag_out_of_range_or_a_wrong_shape_is_refused():
    chain = Chain(torch.zeros(1, 2, 3), torch.tensor([2]))
    with pytest.raises(ValueError, match=r"0\.\.2; got 0\.\.3"):
        score(chain, torch.tensor([[0, 3]]))
    with pytest.raises(ValueError, match="paths must be"):
        score(chain, torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="k must be at least 1"):
        kbest(chain, 0)


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains(), k=st.sampled_from([1, 2, 3, 10, 100]))
def test_the_k_best_are_the_k_best_of_all(code, chain, k):
    with using(code):
        paths, scores = kbest(chain, k)
    path_scores = score(chain.double(), paths)
    for b, law in enumerate(enumerate_chain(chain)):
        expected = law.sorted_scores()
        expected = expected[expected > MINUS_INFINITY][:k]
        exist = len(expected)
        close(scores[b, :exist], expected, chain, size=size_of(chain))
        close(path_scores[b, :exist], expected, chain, size=size_of(chain))
        assert (scores[b, exist:] == MINUS_INFINITY).all()
        assert not paths[b, exist:].any()
        assert not paths[b, :, int(chain.lengths_B[b]) :].any()
        assert len({tuple(path) for path in paths[b, :exist].tolist()}) == exist


@pytest.mark.parametrize("code", CODES)
def test_ties_give_distinct_paths(code):
    chain = Chain(torch.zeros(2, 3, 3), torch.tensor([3, 2]), torch.zeros(3, 3))
    with using(code):
        paths, scores = kbest(chain, 27)
    assert len({tuple(path) for path in paths[0].tolist()}) == 27
    assert len({tuple(path) for path in paths[1, :9].tolist()}) == 9
    assert (scores[0] == 0).all()
    assert (scores[1, 9:] == MINUS_INFINITY).all()


@pytest.mark.parametrize("code", CODES)
@SETTINGS
@given(chain=chains())
def test_viterbi_is_the_first_of_the_k_best_and_padding_changes_nothing(code, chain):
    with using(code):
        path, best = viterbi(chain)
        paths, scores = kbest(padded(chain, 2), 3)
    close(best, scores[:, 0], chain, size=size_of(chain))
    close(score(chain.double(), path), best, chain, size=size_of(chain))
    assert not paths[:, :, chain.time :].any()


def test_independent_tags_are_decoded_one_by_one():
    """With 20,000 tags, steps for every pair of them would take 1.6 GB."""
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(2, 3, 20_000, generator=generator)
    path, best = viterbi(Chain(emissions, torch.tensor([3, 1])))
    assert torch.equal(path, emissions.argmax(2) * torch.tensor([[1, 1, 1], [1, 0, 0]]))
    torch.testing.assert_close(best, torch.stack([emissions[0].amax(1).sum(), emissions[1, 0].max()]))
    forbidden = torch.full((1, 2, 3), MINUS_INFINITY)
    forbidden[0, 0] = torch.tensor([0.0, 1.0, 0.0])
    path, best = viterbi(Chain(forbidden, torch.tensor([2])))
    assert (path.tolist(), best.tolist()) == ([[0, 0]], [MINUS_INFINITY])


@pytest.mark.parametrize("per_sentence", [False, True])
@pytest.mark.parametrize(("batch", "time", "tags", "k"), [(3, 40, 9, 10), (20, 12, 17, 5), (2, 9, 41, 20)])
def test_kernel_and_plain_k_best_agree_beyond_enumeration(per_sentence, batch, time, tags, k):
    generator = torch.Generator().manual_seed(time)
    shape = (batch, tags, tags) if per_sentence else (tags, tags)
    transitions = torch.randn(*shape, generator=generator, dtype=torch.float64)
    emissions = torch.randn(batch, time, tags, generator=generator, dtype=torch.float64)
    chain = Chain(emissions, torch.randint(1, time + 1, (batch,), generator=generator), transitions)
    paths, scores = kbest(chain, k)
    with using("torch"):
        plain_paths, plain_scores = kbest(chain, k)
    torch.testing.assert_close(scores, plain_scores)
    assert torch.equal(paths, plain_paths)


def test_weights_of_paths_that_exist_sum_to_one():
    weights = path_weights(torch.tensor([[2.0, 1.0, MINUS_INFINITY], [MINUS_INFINITY] * 3]))
    torch.testing.assert_close(weights[0, :2], torch.softmax(torch.tensor([2.0, 1.0]), 0))
    assert weights[0, 2] == 0
    assert not weights[1].any()


def test_samples_follow_the_distribution():
    generator = torch.Generator().manual_seed(0)
    transitions = torch.randn(2, 3, 3, generator=generator)
    transitions[0, 0, 1] = MINUS_INFINITY
    chain = Chain(
        torch.randn(2, 3, 3, generator=generator), torch.tensor([3, 2]), transitions, None, torch.randn(3)
    )
    draws = 20_000
    drawn = sample(chain, draws, torch.Generator().manual_seed(1))
    assert drawn.shape == (2, draws, 3)
    assert not drawn[1, :, 2].any()
    for b, law in enumerate(enumerate_chain(chain)):
        n = int(chain.lengths_B[b])
        place = {path: k for k, path in enumerate(law.paths)}
        counts = torch.zeros(len(law.paths))
        for path, count in zip(*torch.unique(drawn[b, :, :n], dim=0, return_counts=True), strict=True):
            counts[place[tuple(path.tolist())]] = count
        possible = law.probabilities > 0
        assert not counts[~possible].any()
        test = stats.chisquare(counts[possible].numpy(), (law.probabilities[possible] * draws).numpy())
        assert test.pvalue > 1e-4


def test_the_same_generator_draws_the_same():
    chain = Chain(torch.zeros(1, 4, 3), torch.tensor([4]))
    first, repeated = (sample(chain, 5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, repeated)
