"""The grid of timed figures: steps as wide as the noise, and few borders between close shapes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.figures.cost_grid import BEYOND, compute_cost_grid, measurements_contradict, round_to_grid
from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import Cost
from raykd.figures.table import objective_values
from raykd.figures.trial import Teacher, Trial
from raykd.report.front_rows import front_rows
from raykd.report.student_selection import best_first
from raykd.sweep.early_stopping import EarlyStopper, StoppingConfig
from raykd.sweep.spec import SearchConfig
from raykd.sweep.study import Study
from tests.scores import score, scores

OBJECTIVES = {"f1": "max", "latency_ms": "min", "parameters": "min"}
GRID = {"latency_ms": [0.05, 0.625]}


def trial(number: int, dev: float, latency_ms: float, parameters: int = 100, **more: object) -> Trial:
    cost = {"latency_ms": latency_ms, "parameters": parameters, "speedup": 10 / latency_ms}
    return Trial(number, "COMPLETE", scores=scores(score(dev), score(dev)), cost=cost, grid=GRID, **more)  # type: ignore[arg-type]


def test_the_step_is_four_times_the_pooled_spread():
    figures = {"latency_ms": 1.0, "latency_ms_batch32": 9.0}
    costs = [
        Cost(figures, spreads={"latency_ms": spread, "latency_ms_batch32": 0.0}) for spread in (0.03, 0.04)
    ]
    ((name, (step, _)),) = compute_cost_grid(costs).items()
    assert (name, step) == ("latency_ms", pytest.approx(4 * ((0.03**2 + 0.04**2) / 2) ** 0.5, rel=1e-2))
    assert compute_cost_grid([]) == {}


@given(st.lists(st.floats(0.05, 50.0), min_size=1, max_size=4), st.floats(0.003, 0.05))
def test_shapes_that_are_close_are_on_one_step(centres, spread):
    """Seen: 0.62 ms and 0.63 ms, between which another grid of the same width has a border."""
    centres = [centre * 3**place for place, centre in enumerate(centres)]
    values = [centre * factor for centre in centres for factor in (1.0, 1 + 0.4 * spread)]
    costs = [Cost({"latency_ms": value}, spreads={"latency_ms": spread}) for value in values]
    step, origin = compute_cost_grid(costs)["latency_ms"]
    for first, second in zip(values[::2], values[1::2], strict=True):
        assert round_to_grid(first, step, origin) == round_to_grid(second, step, origin)


@given(st.floats(1e-3, 1e4), st.floats(1e-3, 0.5))
def test_a_value_moves_by_half_a_step_at_most_and_the_grid_is_kept(value, step):
    rounded = round_to_grid(value, step)
    assert (1 + step) ** -0.5 * (1 - 1e-9) <= rounded / value <= (1 + step) ** 0.5 * (1 + 1e-9)
    assert round_to_grid(rounded, step) == pytest.approx(rounded)
    assert round_to_grid(rounded * (1 + step), step) == pytest.approx(rounded * (1 + step))


def test_nothing_is_between_zero_and_the_first_step():
    assert round_to_grid(0.0, 0.1) == 0.0


def test_two_values_contradict_each_other_beyond_both_spreads():
    assert not measurements_contradict(1.0, 1.0 + BEYOND / 2, 0.0, 0.0)
    assert measurements_contradict(1.0, 1.1, 0.01, 0.01)
    assert not measurements_contradict(1.0, 1.1, 0.03, 0.03)
    assert measurements_contradict(1.1, 1.0, 0.01, 0.01)


def test_a_student_is_on_no_front_for_a_hundredth_of_a_millisecond():
    """Seen: a student on the front for 0.62 ms against 0.63."""
    slower, better = trial(0, 0.80, 0.62), trial(1, 0.85, 0.63)
    assert pareto_front([slower, better], OBJECTIVES) == [better]
    exact = [replace(candidate, grid={}) for candidate in (slower, better)]
    assert pareto_front(exact, OBJECTIVES) == exact
    assert slower.cost["latency_ms"] == 0.62, "what is shown stays as it was measured"


def test_search_front_hypervolume_and_stopping_read_the_same_numbers():
    faster, slower = trial(0, 0.8, 0.62), trial(1, 0.8, 0.63)
    assert objective_values(faster, OBJECTIVES) == objective_values(slower, OBJECTIVES)
    teachers = [Teacher("t", faster.scores, {"latency_ms": 6.0, "parameters": 1000})]
    assert front_hypervolume([faster], teachers, OBJECTIVES) == front_hypervolume(
        [slower], teachers, OBJECTIVES
    )
    study = Study({}, SearchConfig(objectives=OBJECTIVES))  # type: ignore[arg-type]
    assert study._values(faster) == study._values(slower)
    stopper = EarlyStopper(StoppingConfig(kind="mo_asha"), OBJECTIVES, {})  # type: ignore[arg-type]
    for candidate in (faster, slower):
        stopper.begin(candidate, [])
    costs = [course.costs for course in stopper._courses.values()]
    assert costs[0] == costs[1] == tuple(objective_values(faster, {"latency_ms": "min", "parameters": "min"}))


def test_a_ratio_is_rounded_as_what_it_is_of_and_scores_are_not():
    exact = trial(0, 0.81234, 0.62)
    values = objective_values(exact, {"f1": "max", "speedup": "max", "parameters": "min"})
    assert values == [0.81234, pytest.approx(10 / 0.625), 100]


def test_among_students_of_one_latency_the_smaller_and_the_better_come_first():
    large, small = trial(0, 0.85, 0.62, parameters=900), trial(1, 0.80, 0.63)
    assert [row.trial.number for row in front_rows([large, small], objectives=OBJECTIVES)] == [1, 0]
    assert [student.number for student in best_first([small, large], "latency_ms", "f1")] == [0, 1]
