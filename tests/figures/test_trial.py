"""Trials as plain data, and their short names."""

import json

import pytest

from raykd.figures.trial import (
    Teacher,
    Trial,
    common_score_label,
    common_score_name,
    format_scores,
    shape_name,
    teacher_score,
    with_distinguishing_settings,
)
from tests.scores import score, scores


def there_and_back(plain):
    return json.loads(json.dumps(plain))


def test_a_trial_survives_json():
    languages = {"en": 0.5}
    trial_scores = scores(
        score(0.4, 0.6, languages=languages), score(0.3, 0.5), score(0.1, 0.2, languages={"nl": 0.15})
    )
    trial = Trial(
        3, "PRUNED", {"student.hidden_dim": 8}, run_ids=("a", "b"), scores=trial_scores,
        cost={"latency_ms": 1.5, "parameters": 10}, wall_s=2.5, score_name="accuracy", score_label="accuracy",
    )  # fmt: skip
    assert Trial.from_plain(there_and_back(trial.to_plain())) == trial
    assert Trial.from_plain(there_and_back(Trial(0, "RUNNING").to_plain())) == Trial(0, "RUNNING")
    teacher = Teacher("t", trial_scores, {"bytes": 4}, score_label="aspect F1")
    assert Teacher.from_plain(there_and_back(teacher.to_plain())) == teacher
    ensemble = Teacher("mean of t", scores(0.6), members=(teacher, teacher))
    assert Teacher.from_plain(there_and_back(ensemble.to_plain())) == ensemble


def test_an_unknown_key_is_refused():
    with pytest.raises(TypeError, match="latency"):
        Trial.from_plain({**Trial(1, "COMPLETE").to_plain(), "latency": 3})


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
        # In a choice of mappings the path contains the option's label.
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
        (
            {"strategy.name": "D4.2", "student.hidden_dim": 64},
            "representation > logits > gold",
            "#07 D4.2 · H64",
        ),
        ({"strategy.name": "mine", "objective.temperature": 2}, "posterior", "#07 mine"),
    ],
)
def test_the_short_name_shows_objective_and_shape(settings, objective, name):
    assert Trial(7, "COMPLETE", settings, objective=objective).name == name


def test_students_are_compared_with_the_teachers_source_languages():
    teacher = Teacher(
        "t", scores(None, score(0.7, languages={"en": 0.8, "de": 0.6}), score(0.1, languages={"nl": 0.1}))
    )
    assert teacher_score([teacher], "test") == pytest.approx(0.7)


def test_source_and_target_stand_in_one_sentence():
    plain = Teacher("t", scores(0.841, 0.83))
    assert format_scores(plain) == "dev F1 84.1, test F1 83.0"
    with_target = Trial(0, "COMPLETE", scores=scores(0.5, 0.4, 0.3), score_label="accuracy")
    assert format_scores(with_target) == "dev accuracy 50.0, test accuracy 40.0 (target 30.0)"


def test_the_score_has_the_name_that_its_task_gives_it():
    trials = [Trial(0, "COMPLETE", score_name="f1", score_label="aspect F1")]
    assert (common_score_name(trials), common_score_label(trials)) == ("f1", "aspect F1")
    assert (common_score_name([]), common_score_label([])) == ("f1", "F1")


def test_trials_of_one_method_and_shape_say_what_sets_them_apart():
    common = {"objective.kind": "representation", "student.embedding_dim": 8, "training.seed": 0}
    layer_settings = [
        {"objective.layer": 7, "corpus.unlabelled_cap": 40},
        {"objective.layer": 9, "corpus.unlabelled_cap": 40},
        {"objective.layer": 9, "corpus.unlabelled_cap": 1e4},
        {"student.embedding_dim": 16},
    ]
    trials = [
        Trial(n, "COMPLETE", {**common, **settings}, objective="representation")
        for n, settings in enumerate(layer_settings)
    ]
    apart = with_distinguishing_settings(trials)
    assert [trial.apart for trial in apart] == [
        "layer=7 unlabelled_cap=40", "layer=9 unlabelled_cap=40", "layer=9 unlabelled_cap=10000", "",
    ]  # fmt: skip
    assert apart[0].name == "#00 representation layer=7 unlabelled_cap=40 · E8"
    assert with_distinguishing_settings([trials[0]]) == [trials[0]]
    assert Trial.from_plain(apart[0].to_plain()) == trials[0]
    weights = [{f"objective.parts.{part}.weight": value for part in (0, 1)} for value in (1.0, 0.1)]
    first, _ = with_distinguishing_settings(
        [Trial(n, "COMPLETE", settings) for n, settings in enumerate(weights)]
    )
    assert first.apart == "0.weight=1 1.weight=1"
    many = [{f"training.{name}": value for name in "abcde"} for value in (1, 2)]
    assert (
        with_distinguishing_settings([Trial(n, "COMPLETE", settings) for n, settings in enumerate(many)])[
            1
        ].apart
        == "a=2 b=2 c=2 …"
    )


def test_a_checkpoint_has_no_size_in_its_name():
    assert shape_name({"kind": "seq2seq", "path": "e5", "embedding_dim": None, "layers": None}) == "seq2seq"
    assert shape_name({"kind": "seq2seq", "embedding_dim": 64, "layers": 2}) == "E64 L2"
