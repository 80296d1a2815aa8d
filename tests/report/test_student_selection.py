"""Selection with `--where` and `--best`."""

from dataclasses import replace

import pytest

from raykd.errors import SpecError
from raykd.figures.trial import Trial
from raykd.report.front_rows import FrontRow
from raykd.report.student_selection import best_first, parse_where
from tests.scores import score, scores

STUDENT = Trial(
    0,
    "COMPLETE",
    scores=scores(score(0.8, languages={"en": 0.9, "de": 0.7}), 0.1),
    cost={"latency_ms": 2.0, "parameters": 1000, "speedup": 4.0},
    objective="structural",
)
ROW = FrontRow(STUDENT, replace(STUDENT, scores=scores(0.75)), None)


@pytest.mark.parametrize(
    ("source", "accepted"),
    [
        ("f1 >= 0.8", True),
        ("dev_f1 > 0.8", False),
        ("score == f1", True),
        ("f1 >= 0.95 * teacher", False),
        ("f1 >= 0.90 * teacher", True),
        ("f1 >= teacher - 0.1 and latency_ms < 3", True),
        ("f1 >= 0.9 or latency_ms < 3", True),
        ("not f1 >= 0.9", True),
        ("1 < latency_ms <= 2", True),
        ("1 < latency_ms < 2", False),
        ("parameters / 1_000 == 1", True),
        ("parameters != 1000", False),
        ("-f1 < +0.5 - 2", False),
        ("  f1 > 0.5  ", True),
        ("bytes < 10", False),
        ("not bytes < 10", False),
        ("over_gold >= 0.04 and over_gold < 0.06", True),
        ("objective == 'structural' and f1 > 0.5", True),
        ("objective != 'structural'", False),
        ("f1[en] > 0.5", True),
        ("f1['en'] > 0.5 and dev_f1[de] > 0.1", True),
        ("f1[zh-min-nan] > 0.1", False),
        ("latency_ms_p90 < 10", False),
    ],
)
def test_conditions(source, accepted):
    assert parse_where(source, "f1").accepts(ROW, 0.88) is accepted


def test_no_student_is_the_closest_to_an_objective():
    assert parse_where("objective == 'gold'", "f1").closest([ROW], 0.88) is None


def test_no_student_is_the_closest_to_a_condition_that_divides_by_zero():
    condition = parse_where("f1 >= 2 and f1 / (latency_ms - 2) > 1", "f1")
    assert not condition.accepts(ROW, 0.88)
    assert condition.closest([ROW], 0.88) is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("f1 >=", "is not a comparison"),
        ("", "is not a comparison"),
        ("f1 >= 0.9\nimport os", "is not a comparison"),
        ("speed_up > 0.5", r"unknown name 'speed_up'; did you mean 'speedup'\?"),
        ("latency < 3", r"unknown name 'latency'; did you mean 'latency_ms'\?"),
        ("teacher_f1 < 3", "unknown name 'teacher_f1'"),
        ("accuracy < 3", "unknown name 'accuracy'; .*; for the task's score write f1"),
        ("test_f1 > 0.5", "selection is on dev"),
        ("target > 0.5", "selection is on dev"),
        ("f1", "compare it"),
        ("f1 and latency_ms < 3", "not a condition"),
        ("f1 > 'high'", "'high' is not a number"),
        ("'structural' == objective", "'structural' is not a number"),
        (
            "objective + 'x' == 'structural'",
            'objective is not a number; compare it: objective == "structural"',
        ),
        ("objective > 3", "objective is not a number"),
        ("f1 == objective", "objective is not a number"),
        ("objective", "objective is not a number"),
        (
            "latency_ms[en] < 3",
            r"'latency_ms\[en\]' is not understood; write a language's dev score as f1\[en\]",
        ),
        ("test_f1[en] > 0.5", "is not understood"),
        ("f1 > True", "True is not a number"),
        ("f1 ** 2 > 0.5", "not understood here"),
        ("abs(f1) > 0.5", "not understood here"),
        ("f1.real > 0.5", "not understood here"),
        ("[f1] > [0.5]", "not understood here"),
        ("(lambda: f1)() > 1", "not understood here"),
        ("f1 if teacher else 1", "not understood here"),
        ("f1 in (1, 2)", "not understood here"),
        ("(x := f1) > 1", "not understood here"),
        ("__import__('os') > 1", "not understood here|unknown name"),
        ("(" * 5000 + "f1" + ")" * 5000 + " > 1", "is not a comparison"),
    ],
)
def test_what_is_not_a_condition_is_refused_in_one_sentence(source, message):
    with pytest.raises(SpecError, match=message) as refusal:
        parse_where(source, "f1")
    assert str(refusal.value).startswith("--where")


def test_a_missing_teacher_and_a_division_by_zero_are_reported():
    with pytest.raises(SpecError, match="no teacher with a dev score"):
        parse_where("f1 > teacher", "f1").accepts(ROW, None)
    with pytest.raises(SpecError, match="divides by zero"):
        parse_where("f1 / (latency_ms - 2) > 1", "f1").accepts(ROW, None)


def test_best_knows_which_way_is_better():
    fast = Trial(1, "COMPLETE", scores=scores(0.5), cost={"latency_ms": 1.0, "speedup": 8.0})
    equal = Trial(2, "COMPLETE", scores=scores(0.6), cost={"latency_ms": 1.0})
    trials = [STUDENT, fast, equal]
    assert [t.number for t in best_first(trials, "latency_ms", "f1")] == [2, 1, 0]
    assert [t.number for t in best_first(trials, "f1", "f1")] == [0, 2, 1]
    assert [t.number for t in best_first(trials, "speedup", "f1")] == [1, 0]
    with pytest.raises(SpecError, match=r"--best latency: unknown name 'latency'; did you mean 'latency_ms'"):
        best_first(trials, "latency", "f1")
    with pytest.raises(SpecError, match="selection is on dev"):
        best_first(trials, "test_f1", "f1")


def test_a_score_is_known_by_the_name_that_its_task_gives_it():
    student = replace(STUDENT, score_name="accuracy")
    for name in ("accuracy", "dev_accuracy", "score"):
        assert parse_where(f"{name} >= 0.9 * teacher", "accuracy").accepts(
            FrontRow(student, None, None), 0.88
        )
        assert best_first([student], name, "accuracy") == [student]
    for refused in (
        lambda: parse_where("f1 > 0.5", "accuracy"),
        lambda: best_first([student], "f1", "accuracy"),
    ):
        with pytest.raises(SpecError, match=r"unknown name 'f1'; .*; for the task's score write accuracy"):
            refused()
