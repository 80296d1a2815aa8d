import numpy as np
import pytest
import torch

from raykd.structures import Chain, score
from raykd.transfer import Transitions, buckets, kbest_batch, token_batch
from raykd.transfer.shard import rows_of, tokens_of


def test_buckets_hold_every_sentence_once_within_the_budget():
    lengths = np.sort(np.random.default_rng(0).integers(1, 30, 200))
    runs = buckets(lengths, 50)
    assert [row for run in runs for row in range(run.start, run.stop)] == list(range(200))
    sizes = [(run.stop - run.start, int(lengths[run.stop - 1])) for run in runs]
    assert all(count * longest <= 50 or count == 1 for count, longest in sizes)
    # One more sentence would not have fitted: the budget is used.
    following = [int(lengths[run.stop]) for run in runs[:-1]]
    assert all((count + 1) * longer > 50 for (count, _), longer in zip(sizes[:-1], following, strict=True))


def test_buckets_of_nothing_and_of_one_too_long():
    assert buckets(np.array([], np.int64), 10) == []
    assert buckets(np.array([3, 99]), 10) == [slice(0, 1), slice(1, 2)]
    with pytest.raises(ValueError, match="sorted"):
        buckets(np.array([2, 1]), 10)


def sample(tags: int = 3):
    draw = np.random.default_rng(1)
    lengths = (1, 1, 2, 3, 3, 5)
    said = [draw.normal(size=(length, tags)).astype(np.float32) for length in lengths]
    square, start, end = draw.normal(size=(tags, tags)), draw.normal(size=tags), draw.normal(size=tags)
    transitions = Transitions(*(part.astype(np.float32) for part in (square, start, end)))
    return token_batch("emissions", np.arange(len(lengths)), said)[0], transitions


def all_scores(emissions_TY: np.ndarray, said: Transitions) -> dict[tuple[int, ...], float]:
    """Every labelling's score, by enumeration."""
    length, tags = emissions_TY.shape
    return {
        path: said.start_Y[path[0]]
        + sum(emissions_TY[place, tag] for place, tag in enumerate(path))
        + sum(said.transitions_YY[path[place - 1], path[place]] for place in range(1, length))
        + said.end_Y[path[-1]]
        for path in np.ndindex(*[tags] * length)
    }


def test_paths_and_scores_are_those_of_enumeration_over_the_rounded_emissions():
    emissions, said = sample()
    k = 4
    batch = kbest_batch(emissions, said, k, token_budget=6)
    rounded = tokens_of(emissions, "emissions").astype(np.float64)
    ends = np.cumsum(emissions["length"].to_numpy())
    for row, (length, end) in enumerate(zip(emissions["length"].to_pylist(), ends.tolist(), strict=True)):
        ranked = sorted(all_scores(rounded[end - length : end], said).items(), key=lambda item: -item[1])[:k]
        paths = tokens_of(batch, "paths")[end - length : end].T.tolist()
        scores = rows_of(batch, "scores")[row]
        assert [tuple(path) for path in paths[: len(ranked)]] == [path for path, _ in ranked]
        np.testing.assert_allclose(scores[: len(ranked)], [value for _, value in ranked], rtol=1e-5)
        assert np.isneginf(scores[len(ranked) :]).all()
        assert not np.array(paths[len(ranked) :]).any()


def test_padding_and_company_do_not_change_a_byte():
    emissions, said = sample()
    together, apart = (kbest_batch(emissions, said, 3, token_budget=budget) for budget in (10_000, 1))
    assert together.equals(apart)


def test_more_tags_than_a_byte_holds_are_stored_wider():
    emissions, said = sample(tags=300)
    batch = kbest_batch(emissions, said, 2, token_budget=50)
    paths_PK = tokens_of(batch, "paths")
    assert paths_PK.dtype == np.int16
    assert paths_PK.max() > 255
    last = tokens_of(emissions, "emissions")[-5:]
    chain = Chain(
        torch.from_numpy(last.astype(np.float32))[None],
        torch.tensor([5]),
        torch.from_numpy(said.transitions_YY),
        torch.from_numpy(said.start_Y),
        torch.from_numpy(said.end_Y),
    )
    scored = score(chain, torch.from_numpy(paths_PK[-5:].T.astype(np.int64))[None])
    np.testing.assert_allclose(scored[0].numpy(), rows_of(batch, "scores")[-1], rtol=1e-5)
