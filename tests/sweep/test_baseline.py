"""The baseline: settings with a gold-label twin; twins are trained once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.figures.table import OBJECTIVES
from raykd.storage.store import Storage
from raykd.sweep.bookkeeping import Recorder
from raykd.sweep.phases.baseline import twin_tree, twins_of_sweep, worth_a_baseline
from raykd.sweep.records import Record, SweepRecords
from raykd.sweep.scheduler import Trials
from tests.silent import Silent
from tests.sweep.samples import COST, trial
from tests.sweep.test_trials import Tracked, complete, setting, setting_of, states


@pytest.fixture
def recorder(tmp_path):
    records = SweepRecords(Storage(str(tmp_path)), "sweep")
    return Recorder(records, Tracked(), Silent(), OBJECTIVES, cost_of=lambda _: COST, phase="baseline")  # type: ignore[arg-type]


def record(number: int, kind: str, f1: float, *, dim: int = 8, **fields: Any) -> Record:
    """The record of an ended trial; a larger `dim` is larger and slower."""
    tree = setting(kind, dim=dim)
    run_ids = setting_of(tree, 1).run_ids
    cost = {"latency_ms": dim / 8, "parameters": 125 * dim}
    return Record(trial(number, f1, cost=cost, objective=kind, run_ids=run_ids, **fields), tree)


def numbers(records: list[Record]) -> list[int]:
    return [record.trial.number for record in worth_a_baseline(records, OBJECTIVES)]


def test_the_front_and_each_objectives_best_get_a_twin():
    records = [
        record(0, "structural", 0.9, dim=16),
        record(1, "structural", 0.5, dim=8),
        record(2, "posterior", 0.4, dim=16),  # dominated by 1, but the best of its objective
        record(3, "posterior", 0.3, dim=16),
        record(4, "structural", 0.95, dim=16, state="FAILED"),
        record(5, "structural", 0.95, dim=16, role="baseline"),
    ]
    assert numbers(records) == [0, 1, 2]


def test_what_was_trained_on_gold_labels_needs_no_twin():
    assert numbers([record(0, "gold", 0.9), record(1, "structural", 0.5)]) == [1]


def train(recorder: Recorder) -> list[str]:
    """Train the missing twins and return the ids of the trained runs."""
    trained = []

    def execute(trials: Trials) -> None:
        while (job := trials.next()) is not None:
            trained.extend(run.id for run in job.runs)
            trials.ended(job.key, complete(job.runs, 0.4))

    for trials in twins_of_sweep(recorder, "gold", lambda tree: setting_of(tree, 1)):
        execute(trials)
    return trained


def test_each_twin_is_trained_once(recorder):
    recorder.records.save(record(0, "structural", 0.9, dim=16))
    recorder.records.save(record(1, "posterior", 0.8, dim=16))  # another objective, the same twin
    recorder.records.save(record(2, "structural", 0.5, dim=8))
    assert len(set(train(recorder))) == 2
    assert [stored.trial.role for stored in recorder.records.load()] == ["search"] * 3 + ["baseline"] * 2
    assert recorder.summary("baseline") == "2 complete"
    assert train(recorder) == []


def twin_of(student: Record, number: int, **fields: Any) -> Record:
    """The student's twin, as a trial that ended."""
    tree = twin_tree(student, "gold")
    run_ids = setting_of(tree, 1).run_ids
    return Record(
        trial(number, 0.4, cost=student.trial.cost, objective="gold", run_ids=run_ids, **fields), tree
    )


def test_an_interrupted_twin_keeps_its_number_and_a_searched_one_is_not_trained_again(recorder):
    large, small = (
        record(number, "structural", 0.9, dim=dim, steps=30) for number, dim in enumerate((16, 8))
    )
    twin = twin_of(large, 3, role="baseline")
    for stored in (
        large,
        small,
        twin_of(small, 2),
        replace(twin, trial=replace(twin.trial, state="RUNNING")),
    ):
        recorder.records.save(stored)
    assert train(recorder) == list(twin.trial.run_ids)
    assert states(recorder.records) == ["COMPLETE"] * 4


def test_a_twin_takes_as_many_optimiser_steps_as_its_student(recorder):
    first = record(0, "structural", 0.9, dim=16, steps=30)
    recorder.records.save(first)
    train(recorder)
    (twin,) = (stored for stored in recorder.records.load() if stored.trial.role == "baseline")
    assert twin.resolved["schedule"] == {"epochs": None, "max_steps": 30, "patience": None}
    assert {**twin.resolved, "schedule": 0, "objective": 0} == {
        **first.resolved,
        "schedule": 0,
        "objective": 0,
    }
    assert twin_tree(first, "top_1")["objective"] == {"kind": "top_1"}
