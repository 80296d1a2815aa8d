"""Batch plans: every sentence once, within budget, the same for everyone, shared out without loss."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.corpora.batching import plan_batches, plan_windows, sample_by_language, worker_slice

untimed = settings(deadline=None)  # a busy machine is no failure


lengths = st.lists(st.integers(1, 60), max_size=80).map(lambda values: np.array(values, dtype=np.int64))
budgets = st.integers(1, 200)
seeds = st.integers(0, 2**31)


def flat(batches):
    return [int(i) for batch in batches for i in batch]


@untimed
@given(lengths, budgets, seeds, st.integers(0, 9), st.booleans())
def test_every_sentence_once_and_every_batch_within_budget(lengths, budget, seed, epoch, shuffle):
    batches = plan_batches(lengths, batch_tokens=budget, seed=seed, epoch=epoch, shuffle=shuffle)
    assert sorted(flat(batches)) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) > 0
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget


@untimed
@given(lengths, budgets, seeds, st.integers(0, 9))
def test_the_plan_is_a_function_of_its_arguments(lengths, budget, seed, epoch):
    plans = [plan_batches(lengths, batch_tokens=budget, seed=seed, epoch=epoch) for _ in range(2)]
    assert [b.tolist() for b in plans[0]] == [b.tolist() for b in plans[1]]


def test_the_first_window_is_planned_as_all_was_before_there_were_windows():
    """As it was written then: stored runs must not change."""
    lengths = np.random.default_rng(0).integers(1, 40, size=500)
    generator = np.random.default_rng([7, 3])
    noisy = lengths * generator.uniform(0.9, 1.1, size=500)
    noisy += generator.uniform(-0.5, 0.5, size=500)
    batches = [[]]
    for row in np.argsort(noisy, kind="stable").tolist():
        if batches[-1] and max(lengths[[*batches[-1], row]]) * (len(batches[-1]) + 1) > 200:
            batches.append([])
        batches[-1].append(row)
    expected = [batches[number] for number in generator.permutation(len(batches))]
    plan = plan_batches(lengths, batch_tokens=200, seed=7, epoch=3)
    assert [batch.tolist() for batch in plan] == expected
    assert flat(plan_batches(lengths, batch_tokens=200, seed=7, epoch=3, window=1)) != flat(plan)


@untimed
@given(
    st.lists(st.integers(0, 50), max_size=30), st.integers(1, 120), seeds, st.integers(0, 9), st.booleans()
)
def test_windows_hold_every_part_once_within_their_bound(sizes, most, seed, epoch, shuffle):
    sizes = np.array(sizes, np.int64)
    windows = plan_windows(sizes, max_bytes=most, seed=seed, epoch=epoch, shuffle=shuffle)
    assert sorted(flat(windows)) == list(range(len(sizes)))
    assert all(sizes[window].sum() <= most or len(window) == 1 for window in windows)
    if sizes.sum() <= most or not shuffle:
        assert flat(windows) == list(range(len(sizes)))
    second_plan = plan_windows(sizes, max_bytes=most, seed=seed, epoch=epoch, shuffle=shuffle)
    assert [window.tolist() for window in windows] == [window.tolist() for window in second_plan]


def test_the_order_of_parts_differs_between_epochs():
    plans = {tuple(flat(plan_windows(np.ones(40), max_bytes=5, seed=0, epoch=epoch))) for epoch in range(3)}
    assert len(plans) == 3


def test_epochs_and_seeds_differ_and_unshuffled_plans_ascend():
    lengths = np.random.default_rng(0).integers(1, 40, size=500)
    plan = {
        (s, e): flat(plan_batches(lengths, batch_tokens=200, seed=s, epoch=e)) for s in (0, 1) for e in (0, 1)
    }
    assert len({tuple(order) for order in plan.values()}) == 4
    still = plan_batches(lengths, batch_tokens=200, seed=0, epoch=3, shuffle=False)
    assert (np.diff(lengths[flat(still)]) >= 0).all()


def test_neighbours_change_from_epoch_to_epoch():
    lengths = np.random.default_rng(0).integers(5, 40, size=2000)
    pairs = [
        {
            tuple(sorted(pair))
            for b in plan_batches(lengths, batch_tokens=300, seed=0, epoch=e)
            for pair in zip(b.tolist(), b.tolist()[1:], strict=False)
        }
        for e in (0, 1)
    ]
    assert len(pairs[0] & pairs[1]) < 0.1 * len(pairs[0])


def test_bucketing_wastes_little():
    lengths = np.random.default_rng(0).integers(5, 60, size=5000)
    batches = plan_batches(lengths, batch_tokens=2000, seed=0, epoch=0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert lengths.sum() / padded > 0.85, "random batches of these lengths fill about 0.57"


@untimed
@given(st.integers(0, 20), st.integers(1, 7))
def test_slices_of_all_workers_are_the_batch(count, world):
    batch = np.arange(count) * 3
    slices = [worker_slice(batch, rank, world) for rank in range(world)]
    assert sorted(flat(slices)) == batch.tolist()
    assert max(map(len, slices)) - min(map(len, slices)) <= 1


@pytest.mark.parametrize(("rank", "world"), [(-1, 2), (2, 2), (0, 0)])
def test_a_rank_outside_the_world_is_refused(rank, world):
    with pytest.raises(ValueError, match="rank must lie in"):
        worker_slice(np.arange(4), rank, world)


@pytest.mark.parametrize(("lengths", "budget"), [([3, 0], 10), ([3], 0)])
def test_lengths_and_budget_below_one_are_refused(lengths, budget):
    with pytest.raises(ValueError, match="at least 1 token"):
        plan_batches(np.array(lengths), batch_tokens=budget, seed=0, epoch=0)


languages = st.lists(st.sampled_from(["en", "de", "nl"]), max_size=60)


@untimed
@given(languages, st.floats(0, 1.5), seeds, st.integers(0, 9))
def test_language_shares_follow_the_exponent(languages, alpha, seed, epoch):
    indices = sample_by_language(languages, alpha=alpha, seed=seed, epoch=epoch)
    assert len(indices) == len(languages)
    counts = Counter(languages)
    total = sum(count**alpha for count in counts.values())
    draws = Counter(languages[i] for i in indices)
    times = Counter(indices.tolist())
    for language, count in counts.items():
        assert abs(draws[language] - count**alpha / total * len(languages)) < 1
        counts_of_language = [times[i] for i, name in enumerate(languages) if name == language]
        assert max(counts_of_language) - min(counts_of_language) <= 1


@untimed
@given(languages, seeds)
def test_exponent_one_takes_the_corpus_as_it_is(languages, seed):
    assert sample_by_language(languages, alpha=1.0, seed=seed, epoch=0).tolist() == list(
        range(len(languages))
    )


def test_sampling_differs_between_epochs_only():
    languages = ["en"] * 90 + ["nl"] * 10
    draws = [sample_by_language(languages, alpha=0.5, seed=0, epoch=e).tolist() for e in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
