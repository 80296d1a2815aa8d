"""Each warning beside the figure that it spoils, and the verdict that they lead to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.report.findings import judge
from raykd.trial import Teacher, Trial
from tests.scores import score, scores

SETTINGS = {"student.embedding_dim": 8, "objective.kind": "structural", "schedule.epochs": 4}
STUDENT = Trial(
    4, "COMPLETE", SETTINGS, objective="structural", scores=scores(score(0.86, 0.87, 0.88)), steps=40,
    cost={"latency_ms": 0.5, "parameters": 1000, "speedup": 41.2, "compression": 12.0},
)  # fmt: skip
TWIN = replace(
    STUDENT, number=7, role="baseline", objective="gold", scores=scores(score(0.80, 0.81, 0.82)),
    settings={**SETTINGS, "objective.kind": "gold", "schedule.epochs": None, "schedule.max_steps": 40},
)  # fmt: skip
TEACHER = Teacher("bilstm_crf", scores(0.9), {"latency_ms": 20.6, "parameters": 12000})


def texts(*trials: Trial, teacher: Teacher = TEACHER, **more: Any) -> list[str]:
    return [str(finding) for finding in judge(trials, [teacher], **more).findings]


def verdict(*trials: Trial, teacher: Teacher = TEACHER, **more: Any) -> str:
    judged = judge(trials, [teacher], **more).verdict
    assert (judged.ship is not None) == judged.text.startswith("Ship")
    return judged.text


def of(trial: Trial, *seeds: float, **fields: Any) -> Trial:
    return replace(trial, scores=scores(score(*seeds)), **fields)


def test_nothing_is_said_of_figures_that_nothing_spoils():
    assert texts(STUDENT, TWIN, dev_labels=1000) == []
    assert verdict(STUDENT, TWIN) == (
        "Ship #04: 97 % of the teacher's F1, 41.2× faster, 12.0× smaller, +6.0 over labels alone, 3 seeds"
    )


@pytest.mark.parametrize(("changed", "text"), [
    ({"trials": (replace(STUDENT, still_rises=1), TWIN)}, "#04: best in the last epoch"),
    ({"trials": (STUDENT, replace(TWIN, still_rises=1))}, "#04: their students on labels alone were best in their"),
    ({"teacher": replace(TEACHER, still_rises=1)}, "the teacher bilstm_crf was best in its last epoch"),
    ({"teacher": replace(TEACHER, scores=scores(0.0))}, "the teacher bilstm_crf predicts nothing (dev F1 0.0)"),
    ({"teacher": replace(TEACHER, scores=scores(0.85))}, "#04: above the teacher (dev F1 85.0)"),
    ({"trials": (STUDENT, of(TWIN, 0.91, 0.91, 0.91))}, "#04: even without a teacher above it (dev F1 90.0)"),
    ({"trials": (STUDENT, of(TWIN, 0.88, 0.89, 0.90))}, "#04: below the same student on labels alone"),
    ({"trials": (STUDENT, of(TWIN, 0.855, 0.865, 0.875))}, "#04: the gain over labels alone is within the spread"),
    ({"trials": (of(STUDENT, 0.87), TWIN)}, "one seed a setting"),
    ({"dev_labels": 120}, "dev has 120 labels, so its F1 is uncertain by points"),
])  # fmt: skip
def test_each_warning_is_raised_by_what_it_is_about(changed, text):
    trials = changed.pop("trials", (STUDENT, TWIN))
    assert any(found.startswith(text) for found in texts(*trials, **changed)), texts(*trials, **changed)
    assert not any(found.startswith(text) for found in texts(STUDENT, TWIN, dev_labels=300))


def test_a_twin_of_as_many_epochs_is_said_to_be_one():
    searched = replace(
        TWIN, role="search", steps=20, settings={**SETTINGS, "objective.kind": "gold"},
        cost={**TWIN.cost, "latency_ms": 0.6},
    )  # fmt: skip
    (found,) = texts(STUDENT, searched, dev_labels=1000)
    assert (
        found
        == "#04: compared with students on labels alone of as many epochs, not steps; set baseline: gold"
    )
    # One of as many steps comes first.
    assert texts(STUDENT, searched, TWIN, dev_labels=1000) == []


@pytest.mark.parametrize(("trials", "teacher", "text"), [
    ((), TEACHER, "Do not ship yet: no student is complete"),
    ((of(STUDENT, 0.5, 0.5), TWIN), TEACHER, "Do not ship yet: the best student, #04, keeps 56 %"),
    ((STUDENT, of(TWIN, 0.9, 0.9, 0.9)), TEACHER, "Do not ship #04 yet: below the same student on labels alone"),
    (
        (STUDENT, TWIN), replace(TEACHER, scores=scores(0.0)),
        "Do not ship #04 yet: the teacher bilstm_crf predicts nothing",
    ),
])  # fmt: skip
def test_what_is_not_to_be_shipped_is_said_with_what_to_do(trials, teacher, text):
    assert verdict(*trials, teacher=teacher).startswith(text)


def test_the_verdict_is_on_the_student_that_was_chosen():
    slow = of(STUDENT, 0.895, 0.895, 0.895, number=5, cost={**STUDENT.cost, "latency_ms": 0.9})
    assert verdict(STUDENT, slow, TWIN).startswith("Ship #04")
    assert verdict(STUDENT, slow, TWIN, chosen=slow).startswith("Ship #05: 99 %")
