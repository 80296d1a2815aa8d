"""A run's place in the plan, and its score, after every epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.sweep.course import RunCourse
from tests.sweep.samples import run_of, stage

GOLD = {"kind": "gold"}
HIDDEN = {"kind": "representation", "layer": 1}
STUDENT = {"embedding_dim": 8, "decoder": "maxent"}


def course(*stages: dict[str, Any], model: dict[str, Any] | None = None) -> RunCourse:
    tree = {"student": {**STUDENT, **(model or {})}, "objective": GOLD, "schedule": {"epochs": 1}}
    return RunCourse(replace(run_of(tree), stages=stages))


def plan(
    epochs: int | None = None, max_steps: int | None = None, patience: int | None = None
) -> dict[str, Any]:
    return {"epochs": epochs, "max_steps": max_steps, "patience": patience}


def epochs(
    run_course: RunCourse,
    *dev: float,
    stage: int = 0,
    step: int = 0,
    steps_per_epoch: int = 10,
    held_out: Any = None,
) -> None:
    before = len(run_course.epochs)
    for number, score in enumerate(dev, before):
        loss = {} if held_out is None else {"held_out_loss": held_out[number - before]}
        run_course.add(
            {
                "epoch": number,
                "steps": steps_per_epoch * (number + 1),
                "stage": stage,
                "step": step,
                "dev": score,
                **loss,
            }
        )


def points(run_course: RunCourse) -> list[tuple[Any, float]]:
    return [(pytest.approx(point.share), point.score) for point in run_course.points]


def test_the_score_is_the_best_so_far_and_an_epoch_counts_once():
    run_course = course(stage(GOLD, plan(epochs=4)))
    epochs(run_course, 0.2, 0.5, 0.3)
    run_course.add(run_course.epochs[-1])
    assert points(run_course) == [(0.25, 0.2), (0.5, 0.5), (0.75, 0.5)]
    assert len(run_course.epochs) == 3


def test_a_stage_that_selects_by_loss_has_the_score_of_the_epoch_it_would_keep():
    run_course = course(stage(GOLD, plan(epochs=4), select="loss"))
    epochs(run_course, 0.5, 0.2, 0.6, held_out=[3.0, 1.0, 2.0])
    assert points(run_course) == [(0.25, 0.5), (0.5, 0.2), (0.75, 0.2)]


def test_whichever_limit_comes_first_is_the_plan_and_patience_ends_it_at_its_end():
    run_course = course(stage(GOLD, plan(epochs=10, max_steps=40, patience=2)))
    epochs(run_course, 0.5, 0.4, 0.3)
    run_course.end()
    assert points(run_course) == [(0.25, 0.5), (0.5, 0.5), (0.75, 0.5), (1.0, 0.5)]


def test_patience_alone_has_no_plan_and_so_no_share_before_the_end():
    run_course = course(stage(GOLD, plan(patience=3)))
    epochs(run_course, 0.5, 0.6)
    assert points(run_course) == [(0.0, 0.5), (0.0, 0.6)]


def test_hidden_states_alone_say_nothing_of_the_score_and_stages_count_by_their_length():
    run_course = course(stage(HIDDEN, plan(epochs=3)), stage(GOLD, plan(epochs=1)))
    epochs(run_course, 0.9, 0.9, 0.9)
    assert run_course.points == []
    epochs(run_course, 0.4, stage=1)
    assert points(run_course) == [(1.0, 0.4)]


@pytest.mark.parametrize(("model", "steps"), [({}, 3), ({"projection": "teacher"}, 4)])
def test_each_unfreezing_step_begins_anew_and_is_a_part_of_its_stage(model, steps):
    run_course = course(stage(GOLD, plan(epochs=2), layers="unfreeze"), model=model)
    epochs(run_course, 0.5, 0.6, step=0)
    epochs(run_course, 0.1, step=1)
    assert points(run_course) == [(0.5 / steps, 0.5), (1 / steps, 0.6), (1.5 / steps, 0.1)]


def test_only_runs_of_the_same_stages_are_compared():
    first = course(stage(HIDDEN, plan(epochs=3)), stage(GOLD, plan(epochs=1)))
    second = course(stage(HIDDEN, plan(epochs=6)), stage({"kind": "structural"}, plan(epochs=2)))
    longer = course(stage(HIDDEN, plan(epochs=3)), stage(GOLD, plan(epochs=3)))
    assert first.plan == second.plan
    assert len({first.plan, longer.plan, course(stage(GOLD, plan(epochs=4))).plan}) == 3
