"""Trials as plain data, and their short names."""

import json

import pytest

from raykd.trial import Teacher, Trial, metric_of, scores_of, teacher_f1


def test_a_trial_survives_json():
    trial = Trial(
        3, "PRUNED", {"student.hidden_dim": 8}, run_ids=("a", "b"), dev_f1_by_language={"en": 0.5},
        dev_f1_by_seed=(0.4, 0.6), test_f1_by_seed=(0.3, 0.5), test_f1_target_by_seed=(0.1, 0.2), targets=("nl",),
        metric="accuracy",
    )  # fmt: skip
    assert Trial.from_plain(json.loads(json.dumps(trial.to_plain()))) == trial
    teacher = Teacher("t", dev_f1=0.5, dev_f1_by_language={"en": 0.5}, targets=("nl",), test_f1_target=0.3)
    assert Teacher.from_plain(json.loads(json.dumps(teacher.to_plain()))) == teacher
    ensemble = Teacher("mean of t", dev_f1=0.6, members=(teacher, teacher))
    assert Teacher.from_plain(json.loads(json.dumps(ensemble.to_plain()))) == ensemble


def test_an_unknown_key_is_refused():
    with pytest.raises(TypeError, match="latency"):
        Trial.from_plain({"number": 1, "state": "COMPLETE", "latency": 3})


@pytest.mark.parametrize(
    ("settings", "objective", "name"),
    [
        (
            {
                "student.embedding_dim": 32,
                "student.hidden_dim": 64,
                "student.decoder": "crf",
                "objective.k": 3,
            },
            "top_wk",
            "#07 top_wk k=3 · E32 H64 crf",
        ),
        # Of a choice of mappings the path holds the option's label.
        ({"objective.top_wk.k": 5, "objective.top_wk.temperature": 2}, "top_wk", "#07 top_wk k=5 T=2"),
        ({"objective.temperature": 1, "student.layers": 1}, "posterior", "#07 posterior"),
        (
            {"student.embedding_dim": 8, "student.character_dim": 25, "student.character_hidden": 25},
            "gold",
            "#07 gold · E8 C25",
        ),
        ({"student.embedding_dim": 8, "student.character_dim": 0}, "gold", "#07 gold · E8"),
        (
            {"objective.temperature": 2.5, "objective.temperature_mode": "global", "student.layers": 2},
            "structural",
            "#07 structural T=2.5 global · L2",
        ),
        ({"student.kind": "bilstm", "student.vocabulary.kind": "word"}, "gold", "#07 gold · bilstm"),
    ],
)
def test_the_short_name_tells_objective_and_shape(settings, objective, name):
    assert Trial(7, "COMPLETE", settings, objective=objective).name == name


def test_students_are_held_against_the_teachers_source_languages():
    scores = {"en": 0.8, "de": 0.6, "nl": 0.1}
    teacher = Teacher("t", test_f1_by_language=scores, targets=("nl",))
    assert teacher_f1([teacher], "test") == pytest.approx(0.7)


def test_source_and_target_are_said_in_one_breath():
    plain = Teacher("t", dev_f1=0.841, test_f1=0.83)
    assert scores_of(plain) == "dev F1 84.1, test F1 83.0"
    apart = Trial(0, "COMPLETE", dev_f1=0.5, test_f1=0.4, test_f1_target=0.3, metric="accuracy")
    assert scores_of(apart) == "dev accuracy 50.0, test accuracy 40.0 (target 30.0)"


def test_the_score_is_called_as_its_task_calls_it():
    assert metric_of([Trial(0, "COMPLETE", metric="accuracy")]) == "accuracy"
    assert metric_of([]) == "F1"
