"""The rule of early stopping: what can still be reached, the rungs, several runs; all on courses written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from raykd.figures.pareto import Direction, front_ranks
from raykd.sweep.course import Point, TrialCourse
from raykd.sweep.early_stopping import (
    StoppingConfig,
    rank_candidates,
    reachable_gain,
    reason_to_stop,
)

untimed = settings(deadline=None)
ON = StoppingConfig(kind="mo_asha", eta=2.0, first_rung=0.25, complete_first=1, worth=0.0)
NO_RUNGS = StoppingConfig(kind="mo_asha", first_rung=0.999, complete_first=1, worth=0.0)


def curve(*scores: float, of: int = 4) -> tuple[Point, ...]:
    return tuple(Point((epoch + 1) / of, score) for epoch, score in enumerate(scores))


def course(
    number: int, *seeds: Sequence[Point], cost: float = 1.0, complete: bool = False, plan: str = ""
) -> TrialCourse:
    curves = tuple((tuple(points),) for points in seeds)
    final = float(np.mean([points[-1].score for points in seeds])) if complete else None
    return TrialCourse(number, (cost,), plan, curves, final)


def reason(candidate: TrialCourse, *compared: TrialCourse, config: StoppingConfig = ON, seed: int = 0) -> str:
    return reason_to_stop(candidate, (seed, 0), compared, config, ("min",), (2.0,))


FAST = course(1, curve(0.5, 0.6, 0.7, 0.8), complete=True)


@pytest.mark.parametrize(
    ("eta", "first", "rungs"),
    [(3, 0.1, [0.1, 0.3, 0.9]), (2, 0.25, [0.25, 0.5]), (3, 1 / 9, [1 / 9, 1 / 3]), (4, 0.9, [0.9])],
)
def test_rungs_are_a_factor_apart_and_the_end_is_none(eta, first, rungs):
    assert StoppingConfig(eta=eta, first_rung=first).rungs == pytest.approx(rungs)


@pytest.mark.parametrize("wrong", [{"eta": 1}, {"first_rung": 1}, {"first_rung": 0}, {"complete_first": 0}])
def test_settings_without_a_meaning_are_refused(wrong):
    with pytest.raises(ValidationError):
        StoppingConfig(**wrong)


def test_it_is_off_unless_asked_for():
    hopeless = course(2, curve(0.0, 0.0))
    assert reason(hopeless, FAST)
    assert not reason(hopeless, FAST, config=ON.model_copy(update={"kind": StoppingConfig().kind}))


def test_what_is_out_of_reach_is_stopped_with_the_reason():
    # From epoch 2 on the complete trial gained 0.2, and one trial leaves as much again open.
    assert reachable_gain([0.2]) == pytest.approx(0.4)
    text = reason(course(2, curve(0.3, 0.39)), FAST, config=NO_RUNGS)
    assert text == "at 50 % of its plan the trial could reach 79.0 at most; #01 costs no more and has 80.0"
    assert not reason(course(2, curve(0.3, 0.4)), FAST, config=NO_RUNGS), (
        "what could be equal stays on the front"
    )


def test_a_gain_that_one_in_ten_exceeds_is_not_waited_for():
    assert reachable_gain([0.1] * 19 + [0.9]) == pytest.approx(0.1 * (1 + 1 / 20))
    assert reachable_gain([0.1] * 3 + [0.9]) > 0.6 * (1 + 1 / 4)
    assert reachable_gain([-0.2, -0.1]) == 0.0


def test_what_costs_less_than_all_complete_trials_is_never_out_of_reach():
    assert not reason(course(2, curve(0.0, 0.0), cost=0.9), FAST, config=NO_RUNGS)
    assert reason(course(2, curve(0.0, 0.0), cost=1.1), FAST, config=NO_RUNGS)


def test_what_could_add_next_to_nothing_is_not_worth_its_epochs():
    # The teacher costs 2, so the complete trial dominates 0.8 · 0.5 of the box, and the other adds its reach · 0.05.
    config = NO_RUNGS.model_copy(update={"worth": 0.05})
    text = reason(course(2, curve(0.0, 0.0), cost=0.9), FAST, config=config)
    assert text == "at 50 % of its plan the trial could reach 40.0 at most, and add 4.8 % to the hypervolume"
    assert not reason(course(2, curve(0.0, 0.1), cost=0.9), FAST, config=config)
    assert not reason(course(2, curve(0.0, 0.0), cost=0.5), FAST, config=config)


def test_more_curves_leave_less_open():
    slow = [course(n, curve(0.5, 0.6, 0.7, 0.8), complete=True) for n in range(4)]
    candidate = course(9, curve(0.3, 0.5))
    assert not reason(candidate, FAST, config=NO_RUNGS)
    assert reason(candidate, *slow, config=NO_RUNGS)


def test_nothing_is_stopped_before_enough_trials_are_complete():
    candidate, completed = (
        course(9, curve(0.0)),
        [course(n, curve(0.5, 0.6, 0.7, 0.8), complete=True) for n in range(3)],
    )
    assert reason(candidate, *completed, config=ON.model_copy(update={"complete_first": 3}))
    assert not reason(candidate, *completed, config=ON.model_copy(update={"complete_first": 4}))


def test_curves_of_another_plan_say_nothing():
    candidate = course(2, curve(0.0, 0.0), plan="staged")
    assert not reason(candidate, FAST)


def test_what_is_at_its_end_is_not_stopped():
    candidate = course(2, curve(0.1, 0.1, 0.1, 0.1))
    assert not reason(candidate, FAST)


def test_the_best_of_a_rung_go_on():
    # One complete trial and three that run or were stopped have come to the first rung, a quarter.
    compared = [FAST, *(course(n, curve(score)) for n, score in ((2, 0.8), (3, 0.7), (4, 0.6)))]
    assert not reason(course(9, curve(0.75)), *compared)
    text = reason(course(9, curve(0.55)), *compared)
    assert text == (
        "at 25 % of its plan the trial was number 4 of 5, and 3 went on; "
        "it had 55.0, and #02, which costs no more, 80.0"
    )
    assert not reason(course(9, curve(0.65, 0.66, 0.67)), *compared), "no rung at three quarters"


def test_what_is_on_the_front_of_a_rung_goes_on_however_many_are():
    compared = [
        FAST,
        *(course(n, curve(score), cost=2 * score) for n, score in ((2, 0.8), (3, 0.7), (4, 0.6))),
    ]
    assert not reason(
        course(9, curve(0.55), cost=1.05), *compared, config=ON.model_copy(update={"eta": 100.0})
    )


def test_a_cheap_trial_is_compared_by_its_cost_too():
    compared = [FAST, *(course(n, curve(score)) for n, score in ((2, 0.8), (3, 0.7), (4, 0.6)))]
    assert reason(course(9, curve(0.1)), *compared)
    assert not reason(course(9, curve(0.1), cost=0.1), *compared)


def test_seeds_are_compared_with_the_same_seeds_of_others():
    good, bad = curve(0.8, 0.8, 0.8, 0.8), curve(0.1, 0.1, 0.1, 0.1)
    completed = [course(n, good, bad, complete=True) for n in range(1, 5)]
    # Beside the others' means its first seed would look fine.
    assert reason(course(9, curve(0.6), ()), *completed)
    assert not reason(course(9, (), curve(0.2)), *completed, seed=1)


def test_the_languages_of_a_seed_are_awaited():
    completed = [TrialCourse(n, (1.0,), "", ((curve(0.8, 0.8, 0.8, 0.8),) * 2,), 0.8) for n in range(1, 5)]
    alone = TrialCourse(9, (1.0,), "", ((curve(0.0), ()),))
    both = TrialCourse(9, (1.0,), "", ((curve(0.0), curve(0.1)),))
    assert not reason_to_stop(alone, (0, 0), completed, ON, ("min",), (2.0,))
    assert reason_to_stop(both, (0, 1), completed, ON, ("min",), (2.0,))


tables = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=7)


@untimed
@given(tables)
def test_priority_goes_through_the_fronts_in_their_order(rows):
    values = np.array(rows, dtype=float)
    ways: list[Direction] = ["max", "min", "min"]
    order = rank_candidates(values, ways)
    assert sorted(order) == list(range(len(rows)))
    ranks = front_ranks(values, ways)[order]
    assert (np.diff(ranks) >= 0).all()
    first = [place for place in order if front_ranks(values, ways)[place] == 0]
    assert values[first[0], 0] == values[first, 0].max(), "the best score is never cut off"


unit = st.integers(0, 10).map(lambda tenth: tenth / 10)


@untimed
@given(st.lists(st.tuples(st.lists(unit, min_size=4, max_size=4), st.integers(0, 3)), min_size=1, max_size=5),
       st.lists(unit, min_size=1, max_size=3), st.integers(0, 3))  # fmt: skip
def test_what_is_stopped_as_out_of_reach_is_dominated_at_its_reach(complete_trials, scores_so_far, cost):
    """By the definition, on whatever curves: a complete trial is no dearer and better than the best that could come."""
    best_so_far = [np.maximum.accumulate(scores) for scores, _ in complete_trials]
    courses = [
        course(n, curve(*map(float, best)), cost=price, complete=True)
        for n, (best, (_, price)) in enumerate(zip(best_so_far, complete_trials, strict=True))
    ]
    now = float(max(scores_so_far))
    text = reason(
        course(9, curve(*map(float, np.maximum.accumulate(scores_so_far))), cost=cost),
        *courses,
        config=NO_RUNGS,
    )
    gains = [float(best[-1] - best[len(scores_so_far) - 1]) for best in best_so_far]
    reach = min(1.0, now + reachable_gain(gains))
    beaten = any(
        best[-1] > reach and price <= cost
        for best, (_, price) in zip(best_so_far, complete_trials, strict=True)
    )
    assert bool(text) == beaten
