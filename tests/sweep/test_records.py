"""What stands in the store of a sweep, and which sweep may go on with it."""

from __future__ import annotations

import pytest

from raykd.errors import StoreError
from raykd.storage import Storage
from raykd.sweep.records import Record, SweepRecords
from raykd.trial import Teacher
from tests.sweep.samples import trial


@pytest.fixture
def records(tmp_path):
    return SweepRecords(Storage(str(tmp_path)), "ner")


def test_a_sweep_is_taken_up_only_when_asked_and_only_the_same(records):
    assert not records.exists()
    records.open(sweep_id="sweep-1", text="{}", resume=True)
    records.save(Record(trial(0), {}))
    records.save(Record(trial(1, state="RUNNING"), {}))
    records.open(sweep_id="sweep-1", text="{}", resume=True)
    with pytest.raises(StoreError, match=r"'ner': exists with 1 trials; --resume goes on"):
        records.open(sweep_id="sweep-1", text="{}", resume=False)
    for resume in (True, False):
        with pytest.raises(StoreError, match=r"another search .*--set name="):
            records.open(sweep_id="sweep-2", text="{}", resume=resume)
    assert records.sweep_id == "sweep-1"


def test_trials_come_back_in_order_each_as_it_was_last_saved(records):
    for number in (10, 2, 0):
        records.save(Record(trial(number, state="RUNNING"), {"training": {"seed": number}}))
    records.save(Record(trial(2), {"training": {"seed": 2}}, {"x": 1}, {"x": "{}"}))
    loaded = records.load()
    assert [(record.trial.number, record.trial.state) for record in loaded] == [
        (0, "RUNNING"), (2, "COMPLETE"), (10, "RUNNING")
    ]  # fmt: skip
    assert loaded[1].trial == trial(2)
    assert dict(loaded[1].params) == {"x": 1}


def test_teachers_come_back(records):
    assert records.teachers() == []
    rows = [Teacher("bilstm_crf × 2", dev_f1=0.9, dev_f1_by_language={"en": 0.9})]
    records.save_teachers(rows)
    assert records.teachers() == rows


def test_a_record_of_means_alone_reads_its_seeds_scores_from_the_runs(records, tmp_path):
    old = trial(0, run_ids=("run-a", "run-b"))
    runs = Storage(str(tmp_path)).child("runs")
    runs.write_json("run-a/result.json", {"dev": {"mean": 0.4}, "test": {"mean": 0.3}})
    assert records.with_seeds(old) is old, "one of its runs is gone"
    runs.write_json("run-b/result.json", {"dev": {"mean": 0.6}, "test": {"mean": 0.5}})
    full = records.with_seeds(old)
    assert (full.dev_f1_by_seed, full.test_f1_by_seed) == ((0.4, 0.6), (0.3, 0.5))
    assert records.with_seeds(full) is full
    running = trial(1, state="RUNNING", run_ids=old.run_ids)
    assert records.with_seeds(running) is running
