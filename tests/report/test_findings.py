"""Warnings about figures, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.figures.trial import Teacher, Trial
from raykd.report.findings import judge
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
    assert (judged.ship is not None) == ("Ship #" in judged.text)
    assert judged.ship is None or f"Ship #{judged.ship.number:02d}" in judged.text
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
    (
        {"teacher": replace(TEACHER, majority={"en": 0.9})},
        "the teacher bilstm_crf is no better than the most frequent label",
    ),
    (
        {"teacher": replace(TEACHER, scores=scores(score(0.9, languages={"en": 0.9, "de": 0.0})))},
        "the teacher bilstm_crf predicts no more than the most frequent label in de",
    ),
    ({"trials": (STUDENT, of(TWIN, 0.91, 0.91, 0.91))}, "#04: above the teacher (dev F1 90.0) even when trained"),
    ({"trials": (STUDENT, of(TWIN, 0.88, 0.89, 0.90))}, "#04: below the same student on labels alone"),
    ({"trials": (STUDENT, of(TWIN, 0.855, 0.865, 0.875))}, "#04: the gain over labels alone is within the spread"),
    ({"trials": (of(STUDENT, 0.87), TWIN)}, "one seed a setting"),
    ({"dev_labels": 120}, "dev has 120 labels, so its F1 is uncertain by points"),
])  # fmt: skip
def test_each_warning_is_raised_by_what_it_is_about(changed, text):
    trials = changed.pop("trials", (STUDENT, TWIN))
    assert any(finding.startswith(text) for finding in texts(*trials, **changed)), texts(*trials, **changed)
    assert not any(finding.startswith(text) for finding in texts(STUDENT, TWIN, dev_labels=300))


def test_a_twin_of_as_many_epochs_is_said_to_be_one():
    searched = replace(
        TWIN, role="search", steps=20, settings={**SETTINGS, "objective.kind": "gold"},
        cost={**TWIN.cost, "latency_ms": 0.6},
    )  # fmt: skip
    (finding,) = texts(STUDENT, searched, dev_labels=1000)
    assert (
        finding
        == "#04: compared with students on labels alone of as many epochs, not steps; set baseline: gold"
    )
    # One of as many steps comes first.
    assert texts(STUDENT, searched, TWIN, dev_labels=1000) == []


@pytest.mark.parametrize(("trials", "teacher", "text"), [
    ((), TEACHER, "Do not ship yet: no student is complete"),
    ((of(STUDENT, 0.82, 0.82), TWIN), TEACHER, "Do not ship yet: the best student, #04, keeps 91 %"),
    ((STUDENT,), replace(TEACHER, scores=scores(0.0)), "Do not ship #04 yet: the teacher bilstm_crf predicts nothing"),
    (
        (STUDENT,), replace(TEACHER, majority={"en": 0.9}),
        "Do not ship #04 yet: the teacher bilstm_crf is no better than the",
    ),
    (
        (STUDENT, of(TWIN, 0.88, 0.88), of(STUDENT, 0.89, 0.89, number=5, cost={"latency_ms": 9, "parameters": 9000})),
        TEACHER, "Do not ship #04 yet: below the same student on labels alone",
    ),
])  # fmt: skip
def test_what_is_not_to_be_shipped_is_said_with_what_to_do(trials, teacher, text):
    assert text in verdict(*trials, teacher=teacher)


@pytest.mark.parametrize(("alone", "teacher", "dev_labels", "sentence"), [
    ((0.312,), {"scores": scores(0.278)}, 1000, "The teacher is weak: dev F1 27.8, and labels alone give 31.2 (#07)."),
    ((0.271,), {"scores": scores(0.278)}, 1000, "The teacher is weak: dev F1 27.8, and labels alone give 27.1 (#07)."),
    (
        (0.1,), {"scores": scores(0.278)}, 1000,
        "The teacher is weak: dev F1 27.8, and its students can hardly be better.",
    ),
    ((0.85, 0.89), {}, 1000, "The teacher is weak: dev F1 90.0, and labels alone give 87.0 (#07)."),
    (
        (0.1,), {"majority": {"en": 0.92}}, 1000,
        "The teacher is weak: dev F1 90.0, and the most frequent label gives 92.0.",
    ),
    (
        (0.95,), {"majority": {"en": 0.92}}, 1000,
        "The teacher is weak: dev F1 90.0, and the most frequent label gives 92.0 and labels alone give 95.0 (#07).",
    ),
    # What a masked language model predicts is no label of dev: half of its score means nothing.
    ((0.1,), {"scores": scores(0.278)}, None, ""),
    ((0.86, 0.87), {}, 1000, ""),
    ((0.88,), {}, 1000, ""),
])  # fmt: skip
def test_a_weak_teacher_is_named_before_its_students(alone, teacher, dev_labels, sentence):
    decision = verdict(
        STUDENT, of(TWIN, *alone), teacher=replace(TEACHER, **teacher), dev_labels=dev_labels, chosen=STUDENT
    )
    before, _, _ = decision.partition("Ship" if "Ship" in decision else "Do not ship")
    assert before.strip() == sentence


@pytest.mark.parametrize("trials", [(), (replace(STUDENT, violations={"bytes <= 1": 0.5}),)])
def test_a_weak_teacher_is_named_where_there_is_no_student(trials):
    decision = verdict(*trials, teacher=replace(TEACHER, scores=scores(0.278)), dev_labels=1000)
    assert decision.startswith(
        "The teacher is weak: dev F1 27.8, and its students can hardly be better. Do not ship yet:"
    )


def test_where_labels_alone_beat_every_distilled_student_that_student_is_the_one_to_ship():
    assert verdict(STUDENT, of(TWIN, 0.9, 0.9, 0.9)) == (
        "The teacher is weak: dev F1 90.0, and labels alone give 90.0 (#07). Ship #07 (trained on labels alone): "
        "dev F1 90.0, above every distilled student (the best, #04: 87.0), 41.2× faster, 12.0× smaller, 3 seeds"
    )
    searched = replace(
        TWIN, role="search", scores=scores(score(0.88, 0.88)), cost={**TWIN.cost, "latency_ms": 0.4}
    )
    assert "Ship #07 (trained on labels alone)" in verdict(STUDENT, searched)


def test_of_several_that_beat_every_distilled_student_the_fastest_good_one_is_shipped():
    slow = of(TWIN, 0.89, number=8, cost={**TWIN.cost, "latency_ms": 0.9})
    assert "Ship #07 (" in verdict(STUDENT, of(TWIN, 0.88), slow)
    better = replace(TEACHER, scores=scores(0.93))
    assert "Ship #08 (" in verdict(STUDENT, of(TWIN, 0.88), slow, teacher=better)


def test_where_labels_alone_are_best_and_not_good_enough_nothing_is_shipped():
    text = (
        "Do not ship yet: #07 (trained on labels alone) is the one to export so far, dev F1 81.0, above every "
        "distilled student (the best, #04: 50.0), but it keeps 90 % of the teacher's F1, below 95 %"
    )
    assert verdict(of(STUDENT, 0.5, 0.5), TWIN).startswith(text)


@pytest.mark.parametrize("changed", [
    {"scores": scores(score(0.86, 0.86))},
    {"state": "PRUNED"},
    {"violations": {"bytes <= 1": 0.5}},
    # It learns from the teacher's labels.
    {"objective": "top_1"},
])  # fmt: skip
def test_no_other_student_stands_for_labels_alone(changed):
    assert "trained on labels alone" not in verdict(STUDENT, replace(of(TWIN, 0.9), **changed))


def test_a_confirmed_student_counts_by_the_mean_of_all_its_seeds():
    single = of(STUDENT, 0.91, run_ids=("a",))
    more = of(STUDENT, 0.91, 0.81, 0.82, number=9, role="confirm", run_ids=("a", "b", "c"))
    alone = of(TWIN, 0.88, 0.88, run_ids=("d", "e"))
    assert "#07 (trained on labels alone)" not in verdict(single, alone)
    assert "Ship #07 (trained on labels alone)" in verdict(single, more, alone)


def test_without_a_distilled_student_nothing_is_compared_with_labels_alone():
    searched = replace(TWIN, role="search", scores=scores(score(0.88, 0.88)))
    assert "Ship #07: 98 % of the teacher's F1" in verdict(searched)


def test_the_verdict_is_on_the_student_that_was_chosen():
    slow = of(STUDENT, 0.895, 0.895, 0.895, number=5, cost={**STUDENT.cost, "latency_ms": 0.9})
    assert verdict(STUDENT, slow, TWIN).startswith("Ship #04")
    assert verdict(STUDENT, slow, TWIN, chosen=slow).startswith("Ship #05: 99 %")
