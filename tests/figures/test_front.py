"""Candidates for a front, the front, its volume and the twins on gold labels."""

import itertools
import random
from dataclasses import replace

import pytest

from raykd.figures.front import (
    candidates,
    find_gold_twin,
    front_hypervolume,
    hypervolume_history,
    pareto_front,
)
from raykd.figures.table import OBJECTIVES
from raykd.figures.trial import Teacher, Trial
from raykd.report.compare import compare
from raykd.report.front_rows import front_rows
from tests.scores import scores

TEACHER = Teacher("t", scores(0.9), {"latency_ms": 10.0, "parameters": 1000})


def trial(number, dev, ms, parameters, *, test=None, role="search", state="COMPLETE", objective="structural"):
    cost = {"latency_ms": ms, "parameters": parameters}
    known_cost = {name: value for name, value in cost.items() if value is not None}
    return Trial(number, state, {}, role, objective, scores=scores(dev, test), cost=known_cost)


def numbers(trials):
    return [candidate.number for candidate in trials]


@pytest.mark.parametrize(
    "odd", [{"state": "PRUNED"}, {"state": "FAILED"}, {"state": "RUNNING"}, {"role": "baseline"}]
)
def test_only_complete_students_of_the_search_compete(odd):
    assert numbers(pareto_front([trial(0, 0.9, 9, 900), trial(1, 0.99, 1, 1, **odd)], OBJECTIVES)) == [0]


@pytest.mark.parametrize("unknown", ["dev", "ms", "parameters"])
def test_a_student_that_was_not_measured_does_not_compete(unknown):
    figures = {"dev": 0.99, "ms": 1, "parameters": 1} | {unknown: None}
    trials = [trial(0, 0.9, 9, 900), trial(1, **figures)]
    assert numbers(candidates(trials, OBJECTIVES)) == numbers(pareto_front(trials, OBJECTIVES)) == [0]


def test_what_is_not_an_objective_need_not_be_measured():
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.99, 1, None)]
    assert numbers(pareto_front(trials, {"f1": "max", "latency_ms": "min"})) == [1]


def test_test_scores_have_no_effect():
    trials = [trial(0, 0.9, 9, 900, test=0.1), trial(1, 0.8, 9, 900, test=0.99)]
    assert numbers(pareto_front(trials, OBJECTIVES)) == [0]


def test_no_trials_no_front():
    assert pareto_front([], OBJECTIVES) == []
    assert front_hypervolume([], [TEACHER], OBJECTIVES) == 0.0


def test_the_hypervolume_is_a_share_of_the_box_of_the_teacher():
    # Score 0.8 at half the teacher's latency and a tenth of its parameters.
    assert front_hypervolume([trial(0, 0.8, 5, 100)], [TEACHER], OBJECTIVES) == pytest.approx(0.8 * 0.5 * 0.9)
    assert front_hypervolume([trial(0, 0.8, 5, 100)], [], OBJECTIVES) == 0.0
    worse = trial(1, 0.7, 20, 100)
    assert front_hypervolume([worse], [TEACHER], OBJECTIVES) == 0.0, "slower than the teacher"


def test_a_cost_that_the_teacher_lacks_is_measured_against_the_largest():
    trials = [
        replace(trial(number, score, 5, 100), wall_s=seconds)
        for number, score, seconds in ((0, 0.5, 10.0), (1, 0.8, 40.0))
    ]
    objectives = {"f1": "max", "wall_s": "min"}
    assert front_hypervolume(trials, [TEACHER], objectives) == pytest.approx(0.5 * 0.75)


def enumerated(points):
    """The covered share of the unit box, cell by cell; boxes reach from (score, cost share) to (0, 1)."""
    edges = [sorted({0.0, 1.0, *(min(max(p[axis], 0.0), 1.0) for p in points)}) for axis in range(2)]
    cells = itertools.product(*(itertools.pairwise(coordinates) for coordinates in edges))
    return sum(
        (right - left) * (upper - lower)
        for (left, right), (lower, upper) in cells
        if any(score >= right and cost <= lower for score, cost in points)
    )


@pytest.mark.parametrize("teacher_s", [None, 800.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_cost_that_is_to_be_large_is_a_share_too(seed, teacher_s):
    """Speeds count by the inverse, in seconds, relative to the teacher, like latencies."""
    draw = random.Random(seed)
    drawn = [(draw.random(), draw.uniform(0.2, 9)) for _ in range(6)]
    teacher_speed = {} if teacher_s is None else {"training_pieces_per_s": teacher_s}
    teacher = replace(TEACHER, cost={**TEACHER.cost, **teacher_speed})
    trials = [
        replace(
            trial(number, score, 10.0 / speedup, 5),
            cost={"latency_ms": 10.0 / speedup, "speedup": speedup, "training_pieces_per_s": 100 * speedup},
        )
        for number, (score, speedup) in enumerate(drawn)
    ]
    expected = enumerated([(score, 1 / speedup) for score, speedup in drawn])
    slowest = min(speedup for _, speedup in drawn) if teacher_s is None else teacher_s / 100
    in_training = enumerated([(score, slowest / speedup) for score, speedup in drawn])
    for name, direction, volume in (
        ("latency_ms", "min", expected), ("speedup", "max", expected),
        ("training_pieces_per_s", "max", in_training),
    ):  # fmt: skip
        objectives = {"f1": "max", name: direction}
        assert front_hypervolume(trials, [teacher], objectives) == pytest.approx(volume)
        assert hypervolume_history(trials, [teacher], objectives)[-1][1] == pytest.approx(volume)


def twin_of(student, *candidates):
    return find_gold_twin(student, [student, *candidates])


def setting(number, objective, dev=0.5, *, role="search", state="COMPLETE", **settings) -> Trial:
    """`student__hidden_dim=8` sets `student.hidden_dim`."""
    paths = {path.replace("__", "."): value for path, value in settings.items()}
    usual = {"student.hidden_dim": 8, "training.learning_rate": 1.0, "schedule.epochs": 3}
    cost = {"latency_ms": 1.0 + number, "parameters": 1000 - number}
    return Trial(
        number, state, {**usual, "objective.kind": objective, **paths}, role, objective,
        scores=scores(dev, dev), cost=cost,
    )  # fmt: skip


def test_the_gold_twin_is_the_same_student_trained_in_the_same_way():
    student = setting(
        0, "structural", schedule__anneal_rate=1.0, objective__temperature=2, teachers__hidden_dim=9
    )
    twin = setting(1, "gold", role="baseline", schedule__anneal_rate=0.5)
    assert twin_of(student, twin) is twin, "how λ moves has no effect on gold labels alone"
    for different in (
        setting(1, "gold", student__hidden_dim=16),
        setting(1, "gold", training__learning_rate=2.0),
        setting(1, "gold", schedule__epochs=4),
        setting(1, "gold", schedule__patience=2),
        setting(1, "gold", corpus__cap=100),
        setting(1, "gold", state="FAILED"),
        setting(1, "top_k"),
    ):
        assert twin_of(student, different) is None
    assert twin_of(twin, setting(2, "gold")) is None, "it learns from gold labels itself"


def test_stages_are_compared_as_the_settings_of_one_are():
    stages = {
        "stages__0__objective__kind": "top_k",
        "stages__0__schedule__epochs": 2,
        "stages__0__layers": "all",
        "strategy__name": "D4.2",
    }
    student = setting(0, "top_k > gold", **stages)
    twin = setting(1, "gold")
    assert twin_of(student, twin) is twin
    assert twin_of(student, setting(1, "gold", schedule__epochs=2)) is None, (
        "the twin trains as long as all stages"
    )


def test_a_baseline_is_found_by_the_whole_student_not_by_its_short_name():
    student = setting(0, "structural", student__vocabulary__size=1000)
    different = setting(1, "gold", student__vocabulary__size=2000, role="baseline")
    assert student.shape == different.shape
    assert twin_of(student, different) is None


def test_of_several_twins_the_best_on_dev_is_taken():
    student, low, high = setting(0, "structural"), setting(1, "gold", 0.4), setting(2, "gold", 0.6)
    assert twin_of(student, low, high) is high


@pytest.mark.parametrize(
    "trials",
    [
        # Gold is one of the search's choices, and there is no other baseline.
        [setting(0, "structural", 0.9), setting(1, "gold", 0.4), setting(2, "gold", 0.6, schedule__anneal_rate=2.0)],
        # The shape has a baseline of another training, with the higher score, and one of its own.
        [
            setting(0, "structural", 0.9),
            setting(1, "gold", 0.8, role="baseline", training__learning_rate=2.0),
            setting(2, "gold", 0.6, role="baseline"),
        ],
    ],
    ids=["gold is searched", "training differs"],
)  # fmt: skip
def test_front_and_compare_agree_on_the_twin(trials):
    (row,) = [row for row in front_rows(trials) if row.trial.number == 0]
    (compared,) = [
        comparison for comparison in compare({"ner": trials}) if comparison.setting.trial.number == 0
    ]
    assert row.baseline is trials[2]
    assert compared.baseline is not None
    assert compared.baseline.trial is trials[2]
    assert row.gain("test") == compared.difference


def test_students_that_differ_in_their_layers_are_no_twins():
    student = setting(0, "structural", student__layers=2)
    assert twin_of(student, setting(1, "gold", student__layers=1)) is None
