"""The front, and what stands beside its students."""

import pytest

from raykd.report import front, front_html, front_markdown, front_rows, front_table, trials_table
from raykd.report.front_rows import baseline_of
from raykd.trial import Teacher, Trial, teacher_f1


def trial(number, f1, ms, parameters, *, role="search", state="COMPLETE", shape=None, **more):
    settings = {"student.embedding_dim": shape if shape is not None else number}
    return Trial(number, state, settings, role, dev_f1=f1, latency_ms=ms, parameters=parameters, **more)


def numbers(trials):
    return [t.number for t in trials]


def test_each_objective_alone_keeps_a_student_on_the_front():
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500), trial(2, 0.7, 5, 100), trial(3, 0.69, 5, 100)]
    assert numbers(front(trials)) == [0, 1, 2]


@pytest.mark.parametrize(
    "odd",
    [
        {"state": "PRUNED"},
        {"state": "FAILED"},
        {"state": "RUNNING"},
        {"role": "baseline"},
    ],
)
def test_only_complete_students_of_the_search_compete(odd):
    assert numbers(front([trial(0, 0.9, 9, 900), trial(1, 0.99, 1, 1, **odd)])) == [0]


@pytest.mark.parametrize("unknown", ["dev_f1", "latency_ms", "parameters"])
def test_a_student_that_was_not_measured_does_not_compete(unknown):
    figures = {"f1": 0.99, "ms": 1, "parameters": 1} | {
        {"dev_f1": "f1", "latency_ms": "ms"}.get(unknown, unknown): None
    }
    assert numbers(front([trial(0, 0.9, 9, 900), trial(1, **figures)])) == [0]


def test_test_f1_plays_no_part():
    trials = [trial(0, 0.9, 9, 900, test_f1=0.1), trial(1, 0.8, 9, 900, test_f1=0.99)]
    assert numbers(front(trials)) == [0]


def test_rows_go_from_fast_to_slow_and_know_what_they_keep_and_gain():
    twin = trial(7, 0.75, 1, 500, role="baseline", shape=1, test_f1=0.7)
    worse = trial(8, 0.6, 1, 500, role="baseline", shape=1)
    failed = trial(9, 0.99, 1, 500, role="baseline", shape=1, state="FAILED")
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500, test_f1=0.72), worse, twin, failed]
    fast, slow = front_rows(trials, [Teacher("t", dev_f1=1.0)])
    assert (fast.trial.number, slow.trial.number) == (1, 0)
    assert fast.baseline is twin
    assert fast.kept == pytest.approx(0.8)
    assert fast.dev_gain == pytest.approx(0.05)
    assert fast.test_gain == pytest.approx(0.02)
    assert slow.baseline is None
    assert slow.dev_gain is None


def test_a_baseline_answers_to_the_whole_student_not_to_its_short_name():
    student = Trial(0, "COMPLETE", {"student.embedding_dim": 8, "student.vocabulary.size": 1000})
    other = Trial(
        1, "COMPLETE", {"student.embedding_dim": 8, "student.vocabulary.size": 2000}, "baseline", dev_f1=0.5
    )
    assert student.shape == other.shape
    assert baseline_of(student, [other]) is None


def test_no_trials_no_front():
    assert front_rows([], []) == []
    assert front([]) == []


def test_a_sweep_may_compete_in_fewer_objectives():
    trials = [trial(0, 0.9, 9, 900), trial(1, 0.8, 1, 500), trial(2, 0.7, 5, 100)]
    two = {"f1": "max", "latency_ms": "min"}
    assert [row.trial.number for row in front_rows(trials, objectives=two)] == [1, 0]
    assert "2 of 3 students on the front" in front_html(trials, objectives=two)
    assert "2 of 3 students on the front" in front_markdown(trials, objectives=two)
    assert len(front_table(trials, objectives=two).rows) == 2
    assert trials_table(trials, objectives=two)["on_front"].to_pylist() == [True, True, False]


def test_the_reference_is_the_mean_over_languages_of_monolingual_teachers():
    pair = [Teacher("a", dev_f1=0.9, dev_f1_by_language={"en": 0.9}), Teacher("b", 0.7, None, {"de": 0.7})]
    assert teacher_f1(pair) == pytest.approx(0.8)
    assert teacher_f1([Teacher("a", dev_f1=0.9), Teacher("b", dev_f1=0.7)]) == 0.9
    assert teacher_f1(pair, "test") is None
    assert teacher_f1([]) is None
