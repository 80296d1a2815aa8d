"""How the front grew, and which settings matter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.figures.front import front_of, hypervolume_of
from raykd.figures.results import Scores
from raykd.figures.table import DEV, OBJECTIVES, TARGET_DEV
from raykd.report.page import front_html
from raykd.report.search_picture import MOST_SETTINGS, importance_picture, scores_picture, volume_picture
from tests.report.fake_sweep import TEACHER, fake_trials
from tests.scores import score

SHARES = {"f1": {"student.hidden_dim": 0.7, "objective": 0.3}, "latency_ms": {"student.hidden_dim": 1.0}}


def test_the_volume_is_that_of_all_trials_up_to_each_one():
    trials = fake_trials()
    figure = volume_picture(trials, [TEACHER], OBJECTIVES)
    assert figure is not None
    (line,) = figure.data
    assert list(line.x) == [trial.number for trial in trials[:28] if trial.state == "COMPLETE"]
    for number, volume in zip(line.x, line.y, strict=True):
        until = [trial for trial in trials if trial.number <= number]
        assert volume == pytest.approx(100 * hypervolume_of(until, [TEACHER], OBJECTIVES), abs=1e-3)


def test_a_growth_needs_a_teacher_and_two_trials():
    assert volume_picture(fake_trials(), [], OBJECTIVES) is None
    assert volume_picture(fake_trials()[:1], [TEACHER], OBJECTIVES) is None
    assert "Not shown: it needs a teacher and two complete trials." in front_html(fake_trials())


def with_dev_targets(trial, mean: float):
    """The same trial, of which dev of the target languages was read."""
    parts = trial.scores.by_part
    both = {**parts.get("dev", {}), "target": score(mean)}
    return replace(trial, scores=Scores({**parts, "dev": both})) if "dev" in parts else trial


def test_of_a_search_for_both_scores_the_front_is_drawn_between_them():
    trials = [with_dev_targets(each, 0.3 + 0.01 * (each.number * 7 % 20)) for each in fake_trials()]
    asked = {"f1": "max", "dev_f1_target": "max"}
    figure = scores_picture(trials, [with_dev_targets(TEACHER, 0.6)], asked)
    assert figure is not None
    drawn = {trace.name: list(zip(trace.x, trace.y, strict=True)) for trace in figure.data}
    front = sorted(front_of(trials, asked), key=lambda trial: DEV.read(trial))
    assert len(front) > 1
    assert drawn["front"] == [
        (pytest.approx(100 * DEV.read(each), abs=0.01), pytest.approx(100 * TARGET_DEV.read(each), abs=0.01))
        for each in front
    ]
    assert [y for _, y in drawn["front"]] == sorted((y for _, y in drawn["front"]), reverse=True), "a trade"
    assert len(drawn["dominated"]) + len(front) == sum(
        each.state == "COMPLETE" and each.role == "search" for each in trials
    )
    assert drawn["teacher"][0][1] == 60.0
    page = front_html(trials, [TEACHER], objectives=asked)
    assert "<div id='scores'>" in page
    assert "What one score costs the other" in page


def test_what_else_is_searched_for_does_not_bend_that_front():
    trials = [with_dev_targets(each, 0.3 + 0.01 * (each.number * 7 % 20)) for each in fake_trials()]
    fronts = []
    for more in ({}, {"latency_ms": "min"}):
        figure = scores_picture(trials, [TEACHER], {"f1": "max", "dev_f1_target": "max", **more})
        fronts += [list(zip(trace.x, trace.y, strict=True)) for trace in figure.data if trace.name == "front"]
    assert fronts[0] == fronts[1]


def test_other_searches_have_no_such_picture():
    assert scores_picture(fake_trials(), [TEACHER], OBJECTIVES) is None
    trials = [with_dev_targets(each, 0.5) for each in fake_trials()]
    assert scores_picture(trials, [TEACHER], {"dev_f1_target": "max", "latency_ms": "min"}) is None
    assert "<div id='scores'>" not in front_html(fake_trials(), [TEACHER])


def test_each_objective_has_a_bar_for_each_setting():
    figure = importance_picture(SHARES, [TEACHER])
    assert figure is not None
    bars = {trace.name: dict(zip(trace.y, trace.x, strict=True)) for trace in figure.data}
    assert bars == {
        "dev F1": {"objective": 30.0, "student.hidden_dim": 70.0},
        "latency_ms": {"objective": 0.0, "student.hidden_dim": 100.0},
    }
    assert figure.data[0].y[-1] == "student.hidden_dim", "the most important one is at the top"
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 2, "told apart without colour"


def test_only_the_most_important_settings_are_shown():
    many = {"f1": {f"training.s{i:02d}": i / 1000 for i in range(40)}}
    figure = importance_picture(many, [TEACHER])
    assert figure is not None
    assert list(figure.data[0].y) == [f"training.s{i:02d}" for i in range(40 - MOST_SETTINGS, 40)]


def test_the_page_says_why_there_are_none():
    assert importance_picture({}, [TEACHER]) is None
    page = front_html(fake_trials(), [TEACHER], no_importances="it needs 20 complete trials, and there are 3")
    assert "Not shown: it needs 20 complete trials, and there are 3." in page
    assert "<div id='importance'>" in front_html(fake_trials(), [TEACHER], importances=SHARES)
