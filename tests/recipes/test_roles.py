"""Languages without labels, from the recipe to the runs: who has a teacher, what is trained on."""

from __future__ import annotations

import pytest

from raykd.figures.table import objective_values
from raykd.figures.trial import Trial
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.store import Storage
from raykd.training.prepare import prepare
from tests.training.small import executed, prepared, recipe, student_of


def test_a_zero_shot_language_needs_no_teacher(tmp_path):
    ready = prepare(recipe(corpus={"zero_shot_languages": ("de",)}), Storage(str(tmp_path)))
    assert [teacher.languages for teacher in ready.teachers] == [("en",)]
    assert len(ready.teachers[0].text) == 24 + 10


def test_the_signals_of_the_teacher_of_all_languages_are_for_text_without_labels_too(tmp_path):
    unlabelled = {"unlabelled_languages": ("de",), "unlabelled_cap": 12}
    ready = prepare(recipe(corpus=unlabelled, teachers={"scope": "all"}), Storage(str(tmp_path)))
    (teacher,) = ready.teachers
    assert teacher.languages == ("en", "de")
    assert len(teacher.text) == 24 + 10 + 12
    assert ready.corpus.parts["dev"]["language"].unique().to_pylist() == ["en"]


def test_no_student_of_its_own_without_labels():
    for role in ("unlabelled_languages", "zero_shot_languages"):
        sections = {"corpus": {role: ("de",)}, "teachers": {"scope": "all"}, "student": {"scope": "language"}}
        (fault,) = recipe_faults(recipe(**sections))
        assert fault[0] == ("student", "scope")
        assert "no student can be selected for de without labels; set student.scope: all" in fault[1]


def test_no_teacher_of_its_own_without_labels():
    unlabelled = {"unlabelled_languages": ("de",)}
    (fault,) = recipe_faults(recipe(corpus=unlabelled))
    assert fault[0] == ("teachers", "scope")
    assert "no teacher can be trained for de without labels; set teachers.scope: all" in fault[1]
    assert not recipe_faults(recipe(corpus=unlabelled, teachers={"scope": "all"}))
    assert not recipe_faults(recipe(corpus={"zero_shot_languages": ("de",)}))


def test_pseudo_labels_need_unlabelled_text():
    bare = {"objective": {"kind": "top_1"}, "teachers": {"scope": "all"}}
    (fault,) = recipe_faults(recipe(corpus={"unlabelled": 0}, **bare))
    assert fault[0] == ("objective", "kind")
    assert "without unlabelled text it is the same as 'gold'" in fault[1]
    assert not recipe_faults(recipe(corpus={"unlabelled": 5}, **bare))
    unlabelled = {"unlabelled": 0, "unlabelled_languages": ("de",)}
    assert not recipe_faults(recipe(corpus=unlabelled, **bare))


def test_students_are_selected_on_source_languages_and_scored_apart_on_targets(tmp_path):
    resolved = recipe(
        corpus={"unlabelled_languages": ("de",), "unlabelled_cap": 8}, teachers={"scope": "all"}
    )
    ready = prepared(str(tmp_path), resolved)
    (teacher,) = ready.teachers
    run = student_of(ready, resolved)
    assert [stage["text"] for stage in run.stages] == ["all"]
    for model_run in (teacher.run, run):
        scores = executed(ready, model_run).scores
        assert set(scores.by_language("dev")) == {"en"}
        assert scores.get("dev", "target") is None
        assert set(scores.by_language("test")) == {"de", "en"}
        assert scores.targets == ("de",)
        assert scores.mean("test") == scores.by_language("test")["en"]
        assert scores.mean("test", "target") == scores.by_language("test")["de"]


def test_dev_of_zero_shot_languages_is_scored_apart_and_selects_nothing(tmp_path):
    targets = {"zero_shot_languages": ("de",)}
    results = {}
    for read in (False, True):
        resolved = recipe(corpus={**targets, "zero_shot_dev": read}, objective={"kind": "gold"})
        ready = prepare(resolved, Storage(str(tmp_path / str(read))))
        results[read] = executed(ready, student_of(ready, resolved))
    without, scores = results[False].scores, results[True].scores
    assert without.get("dev", "target") is None
    assert scores.get("dev") == without.get("dev")
    assert set(scores.get("dev", "target").by_language) == {"de"}
    assert results[True].best_epoch == results[False].best_epoch
    assert results[True].weights_sha256 == results[False].weights_sha256
    trial = Trial(0, "COMPLETE", scores=scores, score_name="f1")
    assert objective_values(trial, {"f1": "max", "dev_f1_target": "max"}) == [
        scores.mean("dev"), scores.mean("dev", "target")
    ]  # fmt: skip


def test_dev_of_targets_needs_targets():
    with pytest.raises(ValueError, match="zero_shot_dev is dev of zero_shot_languages"):
        recipe(corpus={"zero_shot_dev": True})
