"""Records of a sweep in the store, and the check that a sweep may continue from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from raykd.errors import OtherVersionError, StoreError
from raykd.figures.trial import Teacher
from raykd.storage import sealed_json
from raykd.storage.sealed_json import STORE_FORMAT
from raykd.storage.store import Storage
from raykd.sweep.records import Record, SweepRecords, TrainingLabels, training_labels
from raykd.sweep.spec import differing_keys
from tests.scores import score, scores
from tests.sweep.samples import TREE, result_of, run_of, trial


@pytest.fixture
def records(tmp_path):
    return SweepRecords(Storage(str(tmp_path)), "ner")


def test_a_sweep_is_resumed_only_when_asked_and_only_the_same(records):
    assert not records.exists()
    records.open(sweep_id="sweep-1", text="{}", resume=True)
    records.save(Record(trial(0), {}))
    records.save(Record(trial(1, state="RUNNING"), {}))
    records.open(sweep_id="sweep-1", text="{}", resume=True)
    with pytest.raises(StoreError, match=r"'ner': exists with 1 trial; --resume goes on"):
        records.open(sweep_id="sweep-1", text="{}", resume=False)
    for resume in (True, False):
        with pytest.raises(StoreError, match=r"another search .*--set name="):
            records.open(sweep_id="sweep-2", text="{}", resume=resume)
        with pytest.raises(StoreError, match=r"another search \(student\.hidden_dim, seed differ\)"):
            records.refuse(
                sweep_id="sweep-2", resume=resume, differing=lambda tree: ["student.hidden_dim", "seed"]
            )
    assert records.folder.read_json("sweep.json")["sweep_id"] == "sweep-1"


def test_a_sweep_of_another_store_format_is_refused_in_one_sentence(records, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sealed_json, "STORE_FORMAT", STORE_FORMAT - 1)
        records.open(sweep_id="sweep-1", text="{}", resume=False)
    for reading in (lambda: records.open(sweep_id="sweep-1", text="{}", resume=True), records.tree):
        with pytest.raises(OtherVersionError) as refused:
            reading()
        assert str(refused.value) == (
            f"{records.folder.address}/sweep.json: is of another version of raykd: it has store format "
            f"{STORE_FORMAT - 1}, this raykd reads {STORE_FORMAT}; use the raykd that wrote it, or another store"
        )


def test_the_keys_in_which_two_searches_differ():
    old_spec = {
        "name": "a",
        "student": {"kind": "bilstm", "hidden_dim": 8},
        "search": {"trials": 3},
        "store": "a",
    }
    new_spec = {
        "name": "a", "student": {"kind": "bilstm", "hidden_dim": {"choice": [8, 9]}},
        "search": {"trials": 4, "seed": 1}, "store": "b", "training": {"seed": 1},
    }  # fmt: skip
    assert differing_keys(old_spec, new_spec) == ["student.hidden_dim", "search.seed", "training"]
    assert differing_keys(old_spec, old_spec) == []


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


class Held:
    """A lease in force."""

    def check(self) -> None:
        return None


def test_who_holds_the_lease_reads_each_record_once_and_sees_what_is_stored(records):
    records.save(Record(trial(1), {"training": {"seed": 1}}))
    records.save_teachers([Teacher("bilstm_crf", scores(score(0.9)))], dev_labels=7)
    driver, read = SweepRecords(records.storage, "ner"), []
    driver.lease = Held()  # type: ignore[assignment]
    driver.folder = Counting(driver.folder, read)  # type: ignore[assignment]
    driver.save(Record(trial(0, state="RUNNING"), {"stages": ({"text": "all"},)}))
    for _ in range(2):
        assert len(driver.load()) == 2
        assert [row.name for row in driver.teachers()] == ["bilstm_crf"]
    driver.save(Record(trial(0), {"stages": ({"text": "all"},)}))
    driver.save(Record(trial(2), {}))
    driver.save_teachers([], dev_labels=7)
    assert driver.load() == records.load()
    assert [record.trial.state for record in driver.load()] == ["COMPLETE"] * 3
    assert driver.teachers() == []
    names = ["trials/00000.json", "trials/00001.json", "teachers.json", "teachers.json"]
    assert read == names


class Counting:
    """A folder recording the names of files read."""

    def __init__(self, folder: Storage, read: list[str]):
        self._folder, self._read = folder, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)

    def read_json(self, name: str, *form: Any) -> Any:
        self._read.append(name)
        return self._folder.read_json(name, *form)

    def find_json(self, name: str, *form: Any) -> Any:
        self._read.append(name)
        return self._folder.find_json(name, *form)


def test_teachers_come_back(records):
    assert records.teachers() == []
    rows = [Teacher("bilstm_crf × 2", scores(score(0.9, languages={"en": 0.9})))]
    records.save_teachers(rows, dev_labels=7)
    assert records.dev_labels() == 7
    assert records.teachers() == rows
    records.save_teachers(rows, dev_labels=None)
    assert records.dev_labels() is None


def test_labels_to_train_on_are_those_of_the_trials_own_corpus(records):
    assert training_labels(records.training(), trial(0)) == {}
    alternatives = [
        TrainingLabels({"corpus.cap": cap, "corpus.languages": ["en", "de"]}, {"en": cap, "de": cap // 2})
        for cap in (100, 1000)
    ]
    records.save_teachers([], dev_labels=7, training=alternatives)
    large_trial = replace(trial(0), settings={"corpus.cap": 1000, "corpus.languages": ["en", "de"], "x": {}})
    assert training_labels(records.training(), large_trial) == {"en": 1000, "de": 500}
    assert training_labels(records.training(), trial(0)) == {}
    # Without alternatives all trials have the same corpus.
    records.save_teachers([], dev_labels=7, training=[TrainingLabels({}, {"en": 9})])
    assert training_labels(records.training(), large_trial) == {"en": 9}


def test_runs_that_the_store_has_no_more_are_left_out(records, tmp_path):
    runs = [run_of({**TREE, "objective": {"kind": "gold"}}, seed=seed) for seed in range(3)]
    for run in runs[::2]:
        folder = Storage(str(tmp_path)).child("runs", run.id)
        folder.write_json("model.json", run.to_plain())
        folder.write_json("result.json", result_of(run, 0.5).to_plain())
    stored_runs = records.runs(replace(trial(0), run_ids=tuple(run.id for run in runs)))
    assert stored_runs == [(run, result_of(run, 0.5)) for run in runs[::2]]


def test_objectives_are_those_that_the_sweep_was_started_with(records):
    objectives = {"f1": "max", "bytes": "min"}
    records.open(sweep_id="sweep-1", text="{}", resume=False, objectives=objectives)
    assert records.objectives == objectives


def test_sentences_are_those_of_all_the_trials_corpora(records, tmp_path):
    run = run_of({**TREE, "objective": {"kind": "gold"}})
    finished = replace(trial(0), run_ids=(run.id,))
    folder = Storage(str(tmp_path)).child("runs", run.id)
    folder.write_json("model.json", run.to_plain())
    folder.write_json("result.json", result_of(run, 0.5).to_plain())
    assert records.sentences(finished) == {}, "the corpus was removed"
    counts = {"train": {"en": 5, "de": 7}, "dev": {"en": 2, "de": 0}}
    manifest = {"report": {"sentences": counts}}
    Storage(str(tmp_path)).child("corpora", run.corpus_id).write_json("corpus.json", manifest)
    assert records.sentences(finished) == {"train": 12, "dev": 2}


def test_the_place_on_the_tracking_server_comes_back(records):
    assert records.run_place() == ""
    records.save_run("#/experiments/1/runs/abc")
    assert records.run_place() == "#/experiments/1/runs/abc"
