"""Costs against the teachers, and the row that stands for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.figures.results import Cost, RunResult, Score, Scores
from raykd.sweep.outcome import complete_trial, flatten_settings, teacher_row, with_teacher_ratios
from tests.scores import scores
from tests.sweep.samples import COST, result_of, run_of, stage, trial

TEACHERS = [
    Cost({"parameters": 6000, "bytes": 24000, "latency_ms": 4.0}),
    Cost({"parameters": 4000, "bytes": 16000, "latency_ms": 8.0}),
]
F1 = {"score_name": "f1", "score_label": "F1"}
RUN = run_of({"student": {}, "objective": {"kind": "gold"}, "schedule": {"epochs": 2}})


def result(run_scores: Scores) -> RunResult:
    """The result of a run with the given scores."""
    return RunResult("run", run_scores, 0, (), 1.0, 1, 10, 40)


def test_all_teachers_are_served_but_each_sentence_is_labelled_by_one():
    student = Cost({"parameters": 900, "bytes": 4000, "latency_ms": 1.5})
    ratios = with_teacher_ratios(student, TEACHERS).figures.items() - student.figures.items()
    assert dict(ratios) == {"compression": 10.0, "speedup": 4.0}


def test_a_ratio_to_teachers_of_which_one_has_no_export_is_missing_with_the_reason():
    teachers = [TEACHERS[0], Cost({"latency_ms_torch": 9.0}, no_export="it reads frozen encoders")]
    student = Cost({"latency_ms": 1.0, "bytes": 4000}, load=0.5)
    compared = with_teacher_ratios(student, teachers)
    assert compared.figures == student.figures
    missing = "no speed-up and no compression: the teacher has no export (it reads frozen encoders)"
    loaded = "timed while other programs used 50% of the machine"
    assert compared.remarks == (loaded, missing)
    assert complete_trial(trial(0, state="RUNNING"), [result_of(RUN, 0.5)], compared).cost_notes == (
        loaded,
        missing,
    )
    row = teacher_row(
        "t",
        [result(scores(Score.from_languages({"en": 0.5}), Score.from_languages({"en": 0.5})))],
        teachers,
        **F1,
    )
    assert row.cost_notes == ("no export, so its speed is that of PyTorch: it reads frozen encoders",)


def test_a_ratio_is_of_the_same_form_on_both_sides():
    teachers = [Cost({"latency_ms": 8.0, "latency_ms_batch32": 90.0, "latency_ms_int8": 3.0})]
    student = Cost({"latency_ms_batch32": 3.0, "latency_ms_int8": 0.5, "latency_ms_torch": 1.0})
    ratios = with_teacher_ratios(student, teachers).figures.items() - student.figures.items()
    assert dict(ratios) == {"speedup_batch32": 30.0, "speedup_int8": 6.0}


def test_each_language_is_scored_by_its_own_teacher():
    results = [
        result(scores(Score.from_languages({language: mean}), Score.from_languages({language: mean})))
        for language, mean in (("en", 0.8), ("de", 0.6))
    ]
    row = teacher_row("bilstm_crf", results, TEACHERS, **F1)
    assert row.name == "bilstm_crf × 2"
    assert row.scores.mean("dev") == pytest.approx(0.7)
    assert row.scores.by_language("test") == {"en": 0.8, "de": 0.6}
    assert row.cost == {"parameters": 10000, "bytes": 40000, "latency_ms": 6.0}


def test_members_of_an_ensemble_have_scores_and_no_cost_of_their_own():
    seed_result = result(scores(Score.from_languages({"en": 0.7}), Score.from_languages({"en": 0.7})))
    seed = teacher_row("bilstm_crf seed 0", [seed_result], (), **F1)
    assert (seed.scores.mean("dev"), seed.cost) == (0.7, {})
    assert teacher_row(
        "bilstm_crf (mean of 1)", [seed_result], TEACHERS[:1], members=[seed], **F1
    ).members == (seed,)


def test_a_trial_keeps_its_seeds_own_scores_beside_their_mean():
    ended = complete_trial(trial(0, state="RUNNING"), [result_of(RUN, 0.5), result_of(RUN, 0.8)], COST)
    assert (ended.state, ended.wall_s, ended.cost) == ("COMPLETE", 4.0, COST.figures)
    assert (ended.steps, ended.still_rises) == (20, 2), "each was best in its last epoch"
    dev, test = ended.scores.get("dev"), ended.scores.get("test")
    assert dev == test
    assert dev is not None
    assert dev.by_seed == pytest.approx((0.5, 0.8))
    assert (dev.mean, dev.sd) == (pytest.approx(0.65), pytest.approx(0.3 / 2**0.5))
    assert dev.by_language["en"] == pytest.approx(0.55)
    assert dev.languages_sd == pytest.approx(0.1)


def test_target_languages_are_kept_apart():
    plain = complete_trial(trial(0, state="RUNNING"), [result_of(RUN, 0.5), result_of(RUN, 0.8)], COST)
    assert (plain.scores.targets, plain.scores.get("test", "target")) == ((), None)
    results = [result_of(RUN, 0.5, target=0.2), result_of(RUN, 0.8, target=0.4)]
    ended = complete_trial(trial(0, state="RUNNING"), results, COST)
    assert ended.scores.targets == ("nl",)
    target = ended.scores.get("test", "target")
    assert target is not None
    assert (target.mean, target.sd, target.by_seed) == (
        pytest.approx(0.3),
        pytest.approx(0.2 / 2**0.5),
        (0.2, 0.4),
    )
    assert ended.scores.get("test") == plain.scores.get("test")
    assert ended.scores.get("dev") == plain.scores.get("dev")


def test_a_teacher_of_all_languages_shows_source_and_target():
    teacher_scores = scores(
        Score.from_languages({"en": 0.9, "de": 0.7}),
        Score.from_languages({"en": 0.8, "de": 0.6}),
        Score.from_languages({"nl": 0.2}),
    )
    row = teacher_row(
        "bilstm_crf", [result(teacher_scores)], TEACHERS[:1], score_name="accuracy", score_label="accuracy"
    )
    assert row.scores == teacher_scores
    assert (row.scores.mean("test"), row.scores.mean("test", "target")) == (pytest.approx(0.7), 0.2)
    assert (row.name, row.scores.targets, row.score_label) == ("bilstm_crf", ("nl",), "accuracy")


def test_settings_are_flat_paths_with_plain_values():
    tree = {
        "student": {"kind": "bilstm", "vocabulary": {"kind": "word", "min_count": 2}},
        "objective": {"kind": "gold"}, "schedule": {"epochs": 1},
    }  # fmt: skip
    assert flatten_settings(run_of(tree, seed=3)) == {
        "student.kind": "bilstm", "student.vocabulary.kind": "word", "student.vocabulary.min_count": 2,
        "objective.kind": "gold", "schedule.epochs": 1, "training.seed": 3,
    }  # fmt: skip


GOLD, HINTS = {"kind": "gold"}, {"kind": "structural"}


def staged(*stages: dict[str, Any]) -> dict[str, Any]:
    return flatten_settings(replace(RUN, stages=stages, training={"learning_rate": 0.1, "seed": 0}))


def test_what_a_single_stage_sets_of_training_is_shown():
    settings = staged(
        stage(GOLD, {"epochs": 1}, training={"learning_rate": 0.5}, layers=["head"], select="loss")
    )
    assert (settings["training.learning_rate"], settings["training.seed"]) == (0.5, 0)
    assert (settings["layers"], settings["select"]) == (["head"], "loss")


@pytest.mark.parametrize(("first", "second", "shared"), [(2, 2, 2), (2, 3, None), (None, None, None)])
def test_stages_are_numbered_and_show_the_schedule_of_all_together(first, second, shared):
    stages = [
        stage(HINTS, {"epochs": 2, "max_steps": 50, "patience": first, "anneal_rate": 1.0}),
        stage(GOLD, {"epochs": 3, "max_steps": 60, "patience": second}, training={"learning_rate": 0.5}),
    ]
    settings = staged(*stages)
    assert [settings[f"stages.{place}.objective.kind"] for place in range(2)] == ["structural", "gold"]
    assert (settings["stages.0.schedule.anneal_rate"], settings["stages.1.training.learning_rate"]) == (
        1.0,
        0.5,
    )
    assert (settings["schedule.epochs"], settings["schedule.patience"]) == (5, shared)
    assert settings["training.learning_rate"] == 0.1
    assert "objective.kind" not in settings
