"""Geometric and arithmetic means of distributions, against the enumeration of every labelling."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raykd.structures import (
    Chain,
    Mixture,
    Spans,
    SpanTags,
    kbest,
    log_linear_pool,
    log_partition,
    score,
    token_marginals,
    viterbi,
)
from tests.oracles.chains import enumerate_chain
from tests.oracles.segmentations import enumerate_spans
from tests.structures.chains import MINUS_INFINITY, SETTINGS

TAGS = SpanTags((1,), (2,), (3,), (4,), 0)


@st.composite
def several_chains(draw) -> list[Chain]:
    """1–3 chains over the same ragged sentences, all with transitions or none; some forbid some transitions."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    count, B, T, Y = (draw(st.integers(1, maximum)) for maximum in (3, 3, 4, 3))
    lengths_B = torch.randint(1, T + 1, (B,), generator=generator)
    chained, share = draw(st.booleans()), draw(st.sampled_from([0.0, 0.2]))

    def part(*shape, forbidden=0.0):
        values = 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)
        return values.masked_fill(torch.rand(*shape, generator=generator) < forbidden, MINUS_INFINITY)

    return [
        Chain(
            part(B, T, Y), lengths_B,
            *((part(Y, Y, forbidden=share).fill_diagonal_(0), part(Y), part(Y)) if chained else ()),
        )
        for _ in range(count)
    ]  # fmt: skip


@st.composite
def several_spans(draw) -> list[Spans]:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    count, B, T = (draw(st.integers(1, maximum)) for maximum in (3, 3, 4))
    lengths_B = torch.randint(1, T + 1, (B,), generator=generator)
    scores = [torch.randn(B, T, T, 1, generator=generator, dtype=torch.float64) for _ in range(count)]
    return [Spans(score, lengths_B, TAGS) for score in scores]


def laws_of(member):
    """Paths, and their probabilities, of every sentence."""
    laws = (
        enumerate_chain(member) if isinstance(member, Chain) else [law for _, law in enumerate_spans(member)]
    )
    return [dict(zip(law.paths, law.probabilities, strict=True)) for law in laws]


MEMBERS = given(members=st.one_of(several_chains(), several_spans()))


@SETTINGS
@MEMBERS
def test_the_pool_is_the_normalised_geometric_mean(members):
    pooled = laws_of(log_linear_pool(members))
    for b, sentence in enumerate(zip(*map(laws_of, members), strict=True)):
        product = {
            path: torch.stack([law[path] for law in sentence]).log().mean().exp() for path in sentence[0]
        }
        total = torch.stack(list(product.values())).sum()
        for path, probability in product.items():
            torch.testing.assert_close(pooled[b][path], probability / total)


@SETTINGS
@MEMBERS
def test_the_mixture_is_the_arithmetic_mean(members):
    mixture = Mixture(tuple(members))
    actual_BTY, (best_BT, best_B) = token_marginals(mixture), viterbi(mixture)
    assert (log_partition(mixture) == 0).all()
    for b, sentence in enumerate(zip(*map(laws_of, members), strict=True)):
        mean = {path: torch.stack([law[path] for law in sentence]).mean() for path in sentence[0]}
        n = int(mixture.lengths_B[b])
        expected_TY = torch.zeros_like(actual_BTY[b, :n])
        for path, probability in mean.items():
            expected_TY[torch.arange(n), list(path)] += probability
            padded_BT = torch.zeros_like(best_BT)
            padded_BT[b, :n] = torch.tensor(path)
            torch.testing.assert_close(score(mixture, padded_BT)[b].exp(), probability)
        torch.testing.assert_close(actual_BTY[b, :n], expected_TY)
        torch.testing.assert_close(best_B[b].exp(), mean[tuple(best_BT[b, :n].tolist())])


@SETTINGS
@MEMBERS
def test_one_member_is_itself(members):
    alone = members[0]
    torch.testing.assert_close(token_marginals(Mixture((alone,))), token_marginals(alone))
    assert torch.equal(viterbi(Mixture((alone,)))[0], viterbi(alone)[0])
    torch.testing.assert_close(token_marginals(log_linear_pool([alone])), token_marginals(alone))


def test_several_paths_of_chains_are_scored_at_once():
    members = [Chain(torch.randn(2, 3, 2), torch.tensor([3, 2]), torch.randn(2, 2)) for _ in range(2)]
    paths_BKT, _ = kbest(members[0], 2)
    scores_BK = score(Mixture(tuple(members)), paths_BKT)
    for k in range(2):
        torch.testing.assert_close(scores_BK[:, k], score(Mixture(tuple(members)), paths_BKT[:, k]))


def test_members_that_differ_are_refused():
    first = Chain(torch.randn(2, 3, 2), torch.tensor([3, 2]))
    for second in (
        Chain(torch.randn(2, 3, 2), torch.tensor([3, 2]), torch.randn(2, 2)),
        Chain(torch.randn(2, 3, 4), torch.tensor([3, 2])),
        Spans(torch.randn(2, 3, 3, 1), torch.tensor([3, 2]), TAGS),
    ):
        with pytest.raises(ValueError, match="members must be alike"):
            Mixture((first, second))
        with pytest.raises(ValueError, match="members must be alike"):
            log_linear_pool([first, second])
    with pytest.raises(ValueError, match="their lengths differ"):
        Mixture((first, Chain(torch.randn(2, 3, 2), torch.tensor([3, 1]))))
    with pytest.raises(ValueError, match="got none"):
        log_linear_pool([])
