"""Growth of the front, importance of settings, and source against target scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.figures.front import front_hypervolume, pareto_front
from raykd.figures.results import Scores
from raykd.figures.table import DEV, OBJECTIVES, TARGET_DEV
from raykd.report.front_page import front_html
from raykd.report.search_growth import MOST_SETTINGS, most_important, source_and_target_scores, volume_growth
from tests.report.fake_sweep import TEACHER, fake_trials
from tests.scores import score

SHARES = {"f1": {"student.hidden_dim": 0.7, "objective": 0.3}, "latency_ms": {"student.hidden_dim": 1.0}}


def test_the_volume_is_that_of_all_trials_up_to_each_one():
    trials = fake_trials()
    grown = volume_growth(trials, [TEACHER], OBJECTIVES)
    assert [number for number, _ in grown] == [t.number for t in trials[:28] if t.state == "COMPLETE"]
    for number, volume in grown:
        until = [trial for trial in trials if trial.number <= number]
        assert volume == pytest.approx(100 * front_hypervolume(until, [TEACHER], OBJECTIVES), abs=1e-3)


def test_a_growth_needs_a_teacher_and_two_trials():
    assert volume_growth(fake_trials(), [], OBJECTIVES) == []
    assert volume_growth(fake_trials()[:1], [TEACHER], OBJECTIVES) == []
    assert "Not shown: it needs a teacher and two complete trials." in front_html(fake_trials())


def with_dev_targets(trial, mean: float):
    """The same trial, of which dev of the target languages was read."""
    parts = trial.scores.by_part
    both = {**parts.get("dev", {}), "target": score(mean)}
    return replace(trial, scores=Scores({**parts, "dev": both})) if "dev" in parts else trial


def test_of_a_search_for_both_scores_the_front_is_drawn_between_them():
    trials = [with_dev_targets(trial, 0.3 + 0.01 * (trial.number * 7 % 20)) for trial in fake_trials()]
    directions = {"f1": "max", "dev_f1_target": "max"}
    drawn = source_and_target_scores(trials, [with_dev_targets(TEACHER, 0.6)], directions)
    front = sorted(pareto_front(trials, directions), key=lambda trial: DEV.read(trial))
    assert len(front) > 1
    assert drawn["front"] == [
        [
            f"{trial.number:02d}",
            pytest.approx(100 * DEV.read(trial), abs=0.01),
            pytest.approx(100 * TARGET_DEV.read(trial), abs=0.01),
        ]
        for trial in front
    ]
    assert [y for *_, y in drawn["front"]] == sorted((y for *_, y in drawn["front"]), reverse=True), "a trade"
    assert len(drawn["dominated"]) + len(front) == sum(
        trial.state == "COMPLETE" and trial.role == "search" for trial in trials
    )
    assert drawn["teacher"][0][2] == 60.0
    page = front_html(trials, [TEACHER], objectives=directions)
    assert "<div id='scores'>" in page
    assert "Source against target languages" in page


def test_what_else_is_searched_for_does_not_bend_that_front():
    trials = [with_dev_targets(trial, 0.3 + 0.01 * (trial.number * 7 % 20)) for trial in fake_trials()]
    fronts = []
    for more in ({}, {"latency_ms": "min"}):
        fronts.append(
            source_and_target_scores(trials, [TEACHER], {"f1": "max", "dev_f1_target": "max", **more})[
                "front"
            ]
        )
    assert fronts[0] == fronts[1]


def test_other_searches_have_no_such_picture():
    assert source_and_target_scores(fake_trials(), [TEACHER], OBJECTIVES) == {}
    trials = [with_dev_targets(trial, 0.5) for trial in fake_trials()]
    assert source_and_target_scores(trials, [TEACHER], {"dev_f1_target": "max", "latency_ms": "min"}) == {}
    assert "<div id='scores'>" not in front_html(fake_trials(), [TEACHER])


def test_each_objective_has_a_share_for_each_setting():
    assert most_important(SHARES, [TEACHER]) == {
        "settings": [
            "objective",
            "student.hidden_dim",
        ],  # the most important one last, which is drawn at the top
        "shares": {"dev F1": [30.0, 70.0], "latency_ms": [0.0, 100.0]},
    }


def test_only_the_most_important_settings_are_shown():
    many = {"f1": {f"training.s{i:02d}": i / 1000 for i in range(40)}}
    drawn = most_important(many, [TEACHER])
    assert drawn is not None
    assert drawn["settings"] == [f"training.s{i:02d}" for i in range(40 - MOST_SETTINGS, 40)]


def test_the_page_says_why_there_are_none():
    assert most_important({}, [TEACHER]) is None
    page = front_html(fake_trials(), [TEACHER], no_importances="it needs 20 complete trials, and there are 3")
    assert "Not shown: it needs 20 complete trials, and there are 3." in page
    assert "<div id='importance'>" in front_html(fake_trials(), [TEACHER], importances=SHARES)
