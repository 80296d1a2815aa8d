"""Fronts and hypervolumes against brute force: pairs, unit cells, inclusion and exclusion."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.figures.pareto import epsilon_net, front_ranks, hypervolume, non_dominated

untimed = settings(deadline=None)  # a busy machine is no failure


def clouds(objectives, points):
    row = st.lists(st.integers(0, 5), min_size=objectives, max_size=objectives)
    return st.lists(row, max_size=points).map(
        lambda rows: np.array(rows, dtype=float).reshape(-1, objectives)
    )


spaces = st.integers(1, 4).flatmap(
    lambda m: st.tuples(clouds(m, 7), st.lists(st.sampled_from(["max", "min"]), min_size=m, max_size=m))
)


def better_or_equal(a, b, directions):
    return all(x >= y if d == "max" else x <= y for x, y, d in zip(a, b, directions, strict=True))


@untimed
@given(spaces)
def test_front_by_comparing_every_pair(space):
    values, directions = space
    expected = [
        not any(better_or_equal(b, a, directions) and tuple(a) != tuple(b) for b in values) for a in values
    ]
    assert non_dominated(values, directions).tolist() == expected


@untimed
@given(spaces)
def test_fronts_are_peeled_off_one_after_the_other(space):
    values, directions = space
    ranks, rest = front_ranks(values, directions), set(range(len(values)))
    for front in range(len(values) + 1):
        best = {
            a
            for a in rest
            if not any(
                better_or_equal(values[b], values[a], directions) and tuple(values[a]) != tuple(values[b])
                for b in rest
            )
        }
        assert set(np.flatnonzero(ranks == front)) == best
        rest -= best
    assert not rest


@untimed
@given(spaces)
def test_every_beginning_of_a_net_covers_within_twice_the_least_radius(space):
    """The least radius of k points, by trying all choices of k points."""
    values, directions = space
    order = epsilon_net(values, directions).tolist()
    assert sorted(order) == list(range(len(values)))
    if not order:
        return
    width = np.ptp(values, axis=0)
    points = values / np.where(width > 0, width, 1.0)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    best = max if directions[0] == "max" else min
    assert values[order[0], 0] == best(values[:, 0])
    for count in range(1, len(order) + 1):
        least = min(distances[list(some)].min(axis=0).max() for some in combinations(order, count))
        assert distances[order[:count]].min(axis=0).max() <= 2 * least + 1e-9


def test_ties_stay_together():
    values = np.array([[0.9, 3.0], [0.9, 3.0], [0.8, 3.0], [0.8, 2.0]])
    assert non_dominated(values, ("max", "min")).tolist() == [True, True, False, True]


@untimed
@given(spaces)
def test_hypervolume_by_counting_unit_cells(space):
    """With whole-numbered points the dominated volume is a number of unit cells: count each by its corner."""
    values, directions = space
    reference = [1 if d == "max" else 4 for d in directions]
    signs = np.array([1 if d == "max" else -1 for d in directions])
    heights = values * signs - np.array(reference) * signs
    inside = [tuple(h) for h in heights if (h > 0).all()]
    cells = sum(
        any(all(c + 1 <= x for c, x in zip(cell, height, strict=True)) for height in inside)
        for cell in product(range(4), repeat=len(directions))
    )
    assert hypervolume(values, reference, directions) == pytest.approx(cells)


@untimed
@given(
    st.lists(st.lists(st.floats(-1, 3), min_size=3, max_size=3), max_size=6).map(
        lambda rows: np.array(rows, dtype=float).reshape(-1, 3)
    )
)
def test_hypervolume_by_inclusion_and_exclusion(values):
    heights = np.maximum(values, 0.0)
    subsets = chain.from_iterable(combinations(heights, n) for n in range(1, len(heights) + 1))
    expected = sum((-1) ** (len(s) + 1) * np.prod(np.min(s, axis=0)) for s in subsets)
    assert hypervolume(values, (0, 0, 0), ("max",) * 3) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "reference", "directions", "volume"),
    [
        (np.empty((0, 2)), (0, 0), ("max", "max"), 0.0),
        (np.array([[2.0, 3.0]]), (0, 0), ("max", "max"), 6.0),
        # F1 up and milliseconds down, from the corner (0.5, 10): 0.4 × 5, and a further 0.3 × 3 beside it.
        (np.array([[0.9, 5.0], [0.8, 2.0]]), (0.5, 10.0), ("max", "min"), 2.9),
        # Worse than the reference in F1.
        (np.array([[0.4, 1.0]]), (0.5, 10.0), ("max", "min"), 0.0),
    ],
)
def test_hypervolume_of_small_cases(values, reference, directions, volume):
    assert hypervolume(values, reference, directions) == pytest.approx(volume)
    assert len(non_dominated(values, directions)) == len(values)


@pytest.mark.parametrize("measure", [non_dominated, lambda v, d: hypervolume(v, [0.0] * len(d), d)])
def test_bad_values_are_refused(measure):
    with pytest.raises(ValueError, match=r"candidate 1 .* NaN"):
        measure(np.array([[1.0], [np.nan]]), ("max",))
    with pytest.raises(ValueError, match="2 directions need"):
        measure(np.array([[1.0]]), ("max", "min"))
    with pytest.raises(ValueError, match="got 'up'"):
        measure(np.array([[1.0]]), ("up",))
