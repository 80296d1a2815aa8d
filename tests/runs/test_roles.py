"""Languages without labels, from the recipe to the runs: who has a teacher, what is trained on."""

from __future__ import annotations

from raykd.runs.distil import Worker
from raykd.runs.execute import execute
from raykd.runs.prepare import prepare, student_run
from raykd.runs.recipe import recipe_faults
from raykd.storage import Storage
from tests.runs.small import prepared, recipe


def test_a_zero_shot_language_needs_no_teacher(tmp_path):
    ready = prepare(recipe(corpus={"zero_shot_languages": ("de",)}), Storage(str(tmp_path)))
    assert [teacher.languages for teacher in ready.teachers] == [("en",)]
    assert len(ready.teachers[0].text) == 24 + 10


def test_the_teacher_of_all_languages_speaks_about_text_without_labels(tmp_path):
    silent = {"unlabelled_languages": ("de",), "unlabelled_cap": 12}
    ready = prepare(recipe(corpus=silent, teachers={"scope": "all"}), Storage(str(tmp_path)))
    (teacher,) = ready.teachers
    assert teacher.languages == ("en", "de")
    assert len(teacher.text) == 24 + 10 + 12
    assert ready.corpus.parts["dev"]["language"].unique().to_pylist() == ["en"]


def test_no_teacher_of_ones_own_without_labels():
    silent = {"unlabelled_languages": ("de",)}
    (fault,) = recipe_faults(recipe(corpus=silent))
    assert fault[0] == ("teachers", "scope")
    assert "no teacher can be trained for de without labels: set teachers.scope: all" in fault[1]
    assert not recipe_faults(recipe(corpus=silent, teachers={"scope": "all"}))
    assert not recipe_faults(recipe(corpus={"zero_shot_languages": ("de",)}))


def test_pseudo_labels_want_text_to_stand_on():
    bare = {"objective": {"kind": "top_1"}, "teachers": {"scope": "all"}}
    (fault,) = recipe_faults(recipe(corpus={"unlabelled": 0}, **bare))
    assert fault[0] == ("objective", "kind")
    assert "without unlabelled text it is 'gold'" in fault[1]
    assert not recipe_faults(recipe(corpus={"unlabelled": 5}, **bare))
    silent = {"unlabelled": 0, "unlabelled_languages": ("de",)}
    assert not recipe_faults(recipe(corpus=silent, **bare))


def test_students_are_selected_on_source_languages_and_scored_apart_on_targets(tmp_path):
    asked = recipe(corpus={"unlabelled_languages": ("de",), "unlabelled_cap": 8}, teachers={"scope": "all"})
    ready = prepared(str(tmp_path), asked)
    (teacher,) = ready.teachers
    run = student_run(asked, ready)
    assert run.unlabelled
    for each in (teacher.run, run):
        result = execute(str(tmp_path), each, worker=Worker(), report=lambda _: None)
        assert set(result["dev"]["by_language"]) == {"en"}
        assert result["dev"]["target_mean"] is None
        assert set(result["test"]["by_language"]) == {"de", "en"}
        assert list(result["test"]["targets"]) == ["de"]
        assert result["test"]["mean"] == result["test"]["by_language"]["en"]
        assert result["test"]["target_mean"] == result["test"]["by_language"]["de"]
