"""Costs against the teachers, and the row that stands for all of them."""

from __future__ import annotations

import pytest

from raykd.sweep.outcome import against_teachers, finished, flat_settings, teacher_row
from tests.sweep.samples import COST, result_of, run_of, trial

TEACHERS = [
    {"parameters": 6000, "bytes": 24000, "latency_ms": 4.0},
    {"parameters": 4000, "bytes": 16000, "latency_ms": 8.0},
]


def test_all_teachers_are_served_but_each_sentence_meets_one():
    cost = against_teachers({"parameters": 1000, "latency_ms": 1.5}, TEACHERS)
    assert cost == {"parameters": 1000, "latency_ms": 1.5, "compression": 10.0, "speedup": 4.0}


def test_each_language_is_scored_by_its_own_teacher():
    results = [
        {part: {"mean": f1, "by_language": {language: f1}} for part in ("dev", "test")}
        for language, f1 in (("en", 0.8), ("de", 0.6))
    ]
    row = teacher_row("bilstm_crf", results, TEACHERS)
    assert row.name == "bilstm_crf × 2"
    assert row.dev_f1 == pytest.approx(0.7)
    assert dict(row.test_f1_by_language) == {"en": 0.8, "de": 0.6}
    assert (row.parameters, row.bytes, row.latency_ms) == (10000, 40000, 6.0)


def test_members_of_an_ensemble_have_scores_and_no_cost_of_their_own():
    result = {part: {"mean": 0.7, "by_language": {"en": 0.7}} for part in ("dev", "test")}
    seed = teacher_row("bilstm_crf seed 0", [result], ())
    assert (seed.dev_f1, seed.parameters, seed.bytes, seed.latency_ms) == (0.7, None, None, None)
    assert teacher_row("bilstm_crf (mean of 1)", [result], TEACHERS[:1], members=[seed]).members == (seed,)


def test_a_trial_keeps_its_seeds_own_scores_beside_their_mean():
    run = run_of({"student": {}, "objective": {"kind": "gold"}, "schedule": {"epochs": 2}})
    ended = finished(trial(0, state="RUNNING"), [result_of(run, 0.5), result_of(run, 0.8)], COST)
    assert ended.state == "COMPLETE"
    assert (ended.dev_f1_by_seed, ended.test_f1_by_seed) == ((0.5, 0.8), (0.5, 0.8))
    assert (ended.dev_f1, ended.dev_f1_sd) == (pytest.approx(0.65), pytest.approx(0.3 / 2**0.5))
    assert ended.test_f1_by_language["en"] == pytest.approx(0.55)


APART = {"targets": ["nl"], "target_standard_deviation": 0.0}


def test_target_languages_are_kept_apart():
    run = run_of({"student": {}, "objective": {"kind": "gold"}, "schedule": {"epochs": 2}})
    results = [result_of(run, 0.5), result_of(run, 0.8)]
    plain = finished(trial(0, state="RUNNING"), results, COST)
    assert (plain.targets, plain.test_f1_target, plain.test_f1_target_by_seed) == ((), None, ())
    for result, mean in zip(results, (0.2, 0.4), strict=True):
        result["test"] |= {**APART, "target_mean": mean}
    ended = finished(trial(0, state="RUNNING"), results, COST)
    assert ended.targets == ("nl",)
    assert (ended.test_f1_target, ended.test_f1_target_sd) == (
        pytest.approx(0.3),
        pytest.approx(0.2 / 2**0.5),
    )
    assert ended.test_f1_target_by_seed == (0.2, 0.4)
    assert (ended.test_f1, ended.dev_f1) == (plain.test_f1, plain.dev_f1)


def test_a_teacher_of_all_languages_shows_source_and_target():
    test = {"by_language": {"en": 0.8, "de": 0.6, "nl": 0.2}, **APART, "target_mean": 0.2}
    results = [{"dev": {"by_language": {"en": 0.9, "de": 0.7}}, "test": test}]
    row = teacher_row("bilstm_crf", results, TEACHERS[:1], metric="accuracy")
    assert (row.dev_f1, row.test_f1, row.test_f1_target) == (pytest.approx(0.8), pytest.approx(0.7), 0.2)
    assert (row.targets, row.metric) == (("nl",), "accuracy")


def test_settings_are_flat_paths_with_plain_values():
    tree = {
        "student": {"kind": "bilstm", "vocabulary": {"kind": "word", "min_count": 2}},
        "objective": {"kind": "gold"}, "schedule": {"epochs": 1},
    }  # fmt: skip
    assert flat_settings(run_of(tree, seed=3)) == {
        "student.kind": "bilstm", "student.vocabulary.kind": "word", "student.vocabulary.min_count": 2,
        "objective.kind": "gold", "schedule.epochs": 1, "training.seed": 3,
    }  # fmt: skip
