"""Scores by language beside the numbers of labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.report.language_scores import LanguageScores
from tests.report.fake_sweep import LANGUAGES, TEACHER, fake_trials, with_targets
from tests.scores import score, scores

LABELS = {"en": 10, "de": 400, "es": 30, "nl": 200}


def in_percent(by_language, names):
    return pytest.approx([100 * by_language[name] for name in names], abs=0.01)


def complete(trials):
    return [trial for trial in trials if trial.state == "COMPLETE"]


@pytest.mark.parametrize("part", ["dev", "test"])
def test_every_complete_student_has_its_scores_and_its_labels(part):
    students = complete(fake_trials())
    languages = LanguageScores([TEACHER, *students], {trial.number: LABELS for trial in students})
    common = languages.common([TEACHER])
    assert common is not None
    assert common["names"] == ["de", "nl", "es", "en"]
    for trial in students:
        student_scores = languages.student(trial)
        assert student_scores[part] == in_percent(trial.scores.by_language(part), common["names"])
        assert list(common["labels"][student_scores["labels"]]) == [400, 200, 30, 10]
    assert common["teacher"][part] == in_percent(TEACHER.scores.by_language(part), common["names"])


def test_languages_with_the_most_labels_are_first():
    first, second, *_ = students = complete(fake_trials())
    languages = LanguageScores(students, {first.number: {"en": 100, "de": 100}, second.number: LABELS})
    common = languages.common([])
    assert common is not None
    assert common["names"] == ["de", "nl", "en", "es"]
    assert list(common["labels"][languages.student(first)["labels"]]) == [100, 0, 100, 0]
    unknown = LanguageScores(students, {trial.number: {} for trial in students})
    assert unknown.names == list(LANGUAGES), "as they occur"
    assert "labels" not in unknown.student(first)


def test_target_languages_are_shown_on_test_with_no_labels():
    students = [with_targets(trial, test=0.4) for trial in complete(fake_trials())]
    languages = LanguageScores(students, {students[0].number: LABELS})
    common = languages.common([])
    assert common is not None
    assert common["names"][-2:] == ["sv", "tr"]
    student_scores = languages.student(students[0])
    assert student_scores["dev"][-2:] == [None, None]
    assert student_scores["test"][-2:] == [35.0, 45.0]
    assert list(common["labels"][student_scores["labels"]][-2:]) == [0, 0]


def test_the_best_teacher_of_each_language_is_the_one_to_reach():
    second_teacher = replace(TEACHER, scores=scores(score(0.5, languages={"en": 0.95, "de": 0.1})))
    common = LanguageScores([TEACHER, second_teacher], {}).common([TEACHER, second_teacher])
    assert common is not None
    best_scores = dict(zip(common["names"], common["teacher"]["dev"], strict=True))
    assert (best_scores["en"], best_scores["de"]) == (95.0, 85.1)


def test_one_language_alone_has_no_picture():
    alone = scores(score(0.5, languages={"en": 0.5}))
    trials = [replace(trial, scores=alone) for trial in complete(fake_trials())]
    assert LanguageScores(trials, {}).common([]) is None
    assert LanguageScores([], {}).common([]) is None
