"""Scores by language beside the labels that each has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.report.front_rows import front_rows
from raykd.report.language_picture import language_picture
from raykd.report.picture import colours
from tests.report.fake_sweep import LANGUAGES, TEACHER, fake_trials, with_targets
from tests.scores import score, scores

LABELS = {"en": 10, "de": 400, "es": 30, "nl": 200}


def picture(rows, teachers, labels, part="dev"):
    chosen = colours(row.trial for row in rows)
    return language_picture(rows, teachers, labels, chosen, part=part, label="F1")


@pytest.fixture(scope="module")
def rows():
    return front_rows(fake_trials(), [TEACHER])


def points(figure, name, number=None):
    (trace,) = [trace for trace in figure.data if trace.name.startswith(name) and trace.meta == number]
    return dict(zip(trace.x, trace.y, strict=True))


def in_percent(by_language):
    return pytest.approx({name: 100 * value for name, value in by_language.items()}, abs=0.01)


@pytest.mark.parametrize("part", ["dev", "test"])
def test_every_student_of_the_front_has_its_scores_its_twin_and_its_labels(rows, part):
    figure = picture(rows, [TEACHER], {row.trial.number: LABELS for row in rows}, part)
    for row in rows:
        number = row.trial.number
        assert points(figure, f"#{number:02d} {row.trial.method}", number) == in_percent(
            row.trial.scores.by_language(part)
        )
        twin = row.baseline.scores.by_language(part)
        assert points(figure, "gold labels only", number) == in_percent(twin)
        assert points(figure, "labels", number) == LABELS
    assert points(figure, "teacher") == in_percent(TEACHER.scores.by_language(part))
    (others,) = [trace for trace in figure.data if trace.name == "other students"]
    assert len(others.x) == len(rows) * len(LANGUAGES)
    assert figure.layout.yaxis2.title.text == f"{part} F1, %"


def test_languages_with_the_most_labels_are_first(rows):
    of_one = {rows[0].trial.number: {"en": 100, "de": 100}, rows[1].trial.number: LABELS}
    figure = picture(rows, [TEACHER], of_one)
    assert list(figure.layout.xaxis.categoryarray) == ["de", "nl", "en", "es"]
    assert points(figure, "labels", rows[0].trial.number) == {"de": 100, "nl": 0, "en": 100, "es": 0}
    unknown = picture(rows, [], {row.trial.number: {} for row in rows})
    assert list(unknown.layout.xaxis.categoryarray) == list(LANGUAGES), "as they occur"
    assert not unknown.layout.yaxis.visible


def test_target_languages_are_shown_on_test_with_no_labels():
    trials = [with_targets(trial, test=0.4) for trial in fake_trials()]
    rows = front_rows(trials, [TEACHER])
    labels = {row.trial.number: LABELS for row in rows}
    assert set(picture(rows, [], labels).layout.xaxis.categoryarray) == set(LANGUAGES)
    figure = picture(rows, [], labels, "test")
    assert list(figure.layout.xaxis.categoryarray)[-2:] == ["sv", "tr"]
    assert points(figure, "labels", rows[0].trial.number)["tr"] == 0


def test_the_best_teacher_of_each_language_is_the_one_to_reach(rows):
    other = replace(TEACHER, scores=scores(score(0.5, languages={"en": 0.95, "de": 0.1})))
    shown = points(picture(rows, [TEACHER, other], {}), "teacher")
    assert (shown["en"], shown["de"]) == (95.0, 85.1)


def test_one_language_alone_has_no_picture():
    trials = [trial for trial in fake_trials() if trial.state == "COMPLETE"]
    alone = scores(score(0.5, languages={"en": 0.5}))
    one = [replace(trial, scores=alone) for trial in trials]
    assert picture(front_rows(one), [], {}) is None
    assert picture([], [], {}) is None
