"""`raykd list` and `raykd clean` on stores of real sweeps: files removed, files kept, and the store after a kill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from raykd.errors import StoreError
from raykd.figures.trial import Trial
from raykd.report.readable_numbers import size
from raykd.storage.layout import FILE_PATTERNS
from raykd.storage.store import Storage
from raykd.sweep.doctor import KINDS, examine_store
from raykd.sweep.lease import hold_lease
from raykd.sweep.records import Record, SweepRecords, sweeps_in
from raykd.sweep.removal import plan_removal, remove
from raykd.sweep.uses import KEPT, parts_of, unused
from raykd.training.student_runs import student_runs
from tests.scores import score, scores
from tests.sweep.in_process import code_of
from tests.training.small import executed, prepared, recipe

WORKER = """
import sys
from raykd.storage.store import Storage
from raykd.sweep.lease import hold_working_lease
with hold_working_lease(Storage(sys.argv[1]), sys.argv[2]):
    print("working", flush=True)
    sys.stdin.read()
"""
OBJECTIVES = {
    "gold": {"kind": "gold"},
    "structural": {"kind": "structural"},
    "top_k": {"kind": "top_k", "k": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with the store of two ended sweeps; they share all but the student of one objective."""
    storage = Storage(str(tmp_path_factory.mktemp("removal") / "store"))
    recipes = {
        kind: recipe(objective=objective, schedule={"epochs": 1}) for kind, objective in OBJECTIVES.items()
    }
    ready = prepared(storage.uri, *recipes.values())
    runs = {kind: student_runs(student_recipe, ready)[0] for kind, student_recipe in recipes.items()}
    for run in runs.values():
        executed(ready, run)
    for name, kinds in (("doctored", ("gold", "structural")), ("other", ("gold", "top_k"))):
        records = SweepRecords(storage, name)
        records.open(sweep_id=f"sweep-{name}", text="{}", resume=False)
        for number, kind in enumerate(kinds):
            trial_scores = scores(score(0.5 + number / 10))
            cost = {"latency_ms": 1.0 + number, "parameters": 10.0}
            trial = Trial(
                number, "COMPLETE", objective=kind, run_ids=(runs[kind].id,), scores=trial_scores, cost=cost
            )
            records.save(Record(trial, {}))
    return Path(storage.uri).parent


@pytest.fixture
def store(whole, tmp_path) -> Path:
    """A copy of the store of both sweeps."""
    return Path(shutil.copytree(whole / "store", tmp_path / "store"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch) -> None:
    """Let a lease count from the moment of writing."""
    monkeypatch.setattr("raykd.sweep.lease.SETTLE_S", 0.0)


def said(capsys) -> str:
    output = capsys.readouterr()
    return " ".join((output.out + output.err).split())


def runs_of(store: Path, name: str) -> set[str]:
    records = SweepRecords(Storage(str(store)), name)
    return {run_id for record in records.load() for run_id in record.trial.run_ids}


def test_every_file_of_a_store_is_known_by_its_name(store):
    storage = Storage(str(store))
    assert set(FILE_PATTERNS) == set(KINDS) - {"sweeps"}
    part_files = {name for name in storage.names() if not name.startswith("sweeps/")}
    assert {name for part in parts_of(storage) for name in part.files} == part_files


def test_the_list_has_every_sweep_with_its_trials_and_its_best(store, capsys):
    assert code_of("list", str(store)) == 0
    output = said(capsys)
    assert "doctored ended 2 0 0 60.0" in output
    assert "stopped early" not in output
    assert "sweeps 2 (" in output
    assert f"runs 3 ({size(sum(path.stat().st_size for path in (store / 'runs').rglob('*.*')))})" in output
    assert "Next: raykd front" in output
    for kind in ("runs", "teachers", "transfer", "corpora"):
        assert code_of("list", str(store), "--kind", kind) == 0
        assert "not finished" not in said(capsys)


def test_the_list_counts_trials_that_were_stopped_early(store, capsys):
    records = SweepRecords(Storage(str(store)), "doctored")
    record = records.load()[0]
    records.save(replace(record, trial=replace(record.trial, state="PRUNED")))
    assert code_of("list", str(store)) == 0
    assert "doctored: 1 trial stopped early" in said(capsys)


def test_the_list_says_who_drives_a_sweep_and_what_is_damaged(store, capsys):
    with hold_lease(Storage(str(store)).child("sweeps", "other")):
        assert code_of("list", str(store)) == 0
    assert f"other: process {os.getpid()} on" not in (output := said(capsys)), "this process is no driver"
    assert "other ended" in output
    (store / "sweeps/other/trials/00000.json").write_text("{}")
    assert code_of("list", str(store)) == 0
    assert "other other version" in said(capsys)
    (store / "sweeps/other/trials/00000.json").write_text("{")
    assert code_of("list", str(store)) == 0
    assert "other damaged" in said(capsys)


def test_what_no_sweep_uses_goes_after_asking_and_only_what_raykd_wrote(store, capsys, monkeypatch):
    storage = Storage(str(store))
    assert unused(storage) == []
    notes = [store / "runs/notes.txt", store / "runs/mine/model.json", store / "README"]
    run = sorted(runs_of(store, "other") - runs_of(store, "doctored"))[0]
    notes.append(store / "runs" / run / "notes.txt")
    for path in notes:
        path.parent.mkdir(exist_ok=True)
        path.write_text("own")
    (trial,) = [
        path for path in (store / "sweeps/other/trials").iterdir()
        if run in json.loads(path.read_text())["trial"]["run_ids"]
    ]  # fmt: skip
    trial.unlink()
    monkeypatch.setattr("typer.confirm", lambda question: False)
    assert code_of("clean", str(store)) == 0
    output = said(capsys)
    assert f"runs/{run}: " in output
    assert "clean: nothing was removed" in output
    assert (store / "runs" / run / "result.json").exists()
    assert code_of("clean", str(store), "--older-than", "1h", "--yes") == 0
    assert "no unused part is that old" in said(capsys)
    assert code_of("clean", str(store), "--yes") == 0
    assert [path.name for path in (store / "runs" / run).iterdir()] == ["notes.txt"]
    assert all(path.read_text() == "own" for path in notes)
    assert unused(storage) == []
    assert not examine_store(storage).damages


def test_old_parts_alone_go_where_an_age_is_given(store, capsys):
    shutil.rmtree(store / "sweeps/other")
    (young,) = runs_of_unused(store)
    old = shutil.copytree(store / "runs" / young, store / "runs/run-0123456789abcdef")
    for path in old.iterdir():
        os.utime(path, (time.time() - 40 * 86400,) * 2)
    assert code_of("clean", str(store), "--older-than", "30d", "--yes") == 0
    assert runs_of_unused(store) == {young}
    assert code_of("clean", str(store), "--older-than", "30") == 2
    assert "write hours, days or weeks: 12h, 30d, 8w" in said(capsys)


def runs_of_unused(store: Path) -> set[str]:
    return {part.name for part in unused(Storage(str(store))) if part.kind == "runs"}


def test_a_sweep_goes_with_what_only_it_used_and_the_other_resumes_as_it_was(whole, store, capsys):
    storage = Storage(str(store))
    mine, doctored_runs = runs_of(store, "other"), runs_of(store, "doctored")
    assert code_of("clean", str(store), "--sweep", "other", "--yes") == 0
    assert not (store / "sweeps/other").exists()
    assert {path.name for path in (store / "runs").iterdir()} == doctored_runs
    assert mine - doctored_runs
    assert unused(storage) == []
    assert not examine_store(storage).damages
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*.arrow")}
    assert code_of("clean", str(store), "--sweep", "doctored", "--yes") == 0
    assert {part.kind for part in parts_of(storage)} <= set(KEPT)
    assert before, "there was something to remove"
    assert code_of("clean", str(store), "--sweep", "doctored", "--yes") == 4
    assert "is not in the store" in said(capsys)


def test_while_another_sweep_has_not_ended_only_runs_go_with_a_sweep(store, capsys):
    for path in (store / "sweeps/doctored/trials").iterdir():
        path.unlink()
    assert code_of("clean", str(store), "--yes") == 4
    assert "the sweep has not ended; end it with raykd sweep FILE --resume, or remove it" in said(capsys)
    corpora = set((store / "corpora").iterdir())
    assert code_of("clean", str(store), "--sweep", "other", "--yes") == 0
    assert set((store / "corpora").iterdir()) == corpora
    remaining = {path.name for path in (store / "runs").iterdir()}
    assert len(remaining) == 1, "the run that neither removed sweep nor records name is left to raykd clean"


def test_nothing_goes_while_a_driver_works(store, capsys, monkeypatch):
    monkeypatch.setattr("raykd.sweep.lease.STALE_S", 0.2)
    lease = store / "sweeps/doctored/lease.json"
    with hold_lease(Storage(str(lease.parent))):
        plain = Storage(str(lease.parent)).read_json("lease.json")
    # A process of this machine that lives, and is not this one.
    import psutil

    parent = psutil.Process(os.getppid())
    Storage(str(lease.parent)).write_json(
        "lease.json", {**plain, "process": parent.pid, "started": parent.create_time()}
    )
    for words in ((), ("--sweep", "doctored"), ("--sweep", "other")):
        assert code_of("clean", str(store), "--yes", *words) == 4
        assert f"process {parent.pid} on" in said(capsys)
    assert code_of("list", str(store)) == 0
    assert "doctored running" in said(capsys)


def computing(store: Path, verb: str) -> subprocess.Popen[str]:
    """A second process computing in the store without a sweep."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(store), verb],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    return process


def test_nothing_goes_while_distill_or_precompute_computes_and_a_killed_one_does_not_stay(store, capsys):
    shutil.rmtree(store / "sweeps/other")
    unused_runs = runs_of_unused(store)
    first, second = computing(store, "distill"), computing(store, "precompute")
    try:
        for words in ((), ("--sweep", "doctored")):
            assert code_of("clean", str(store), "--yes", *words) == 4
            assert f"process {first.pid} on" in (output := said(capsys))
            assert "runs raykd distill in this store; wait for its end, or stop it" in output
        first.kill()
        first.wait()
        assert code_of("clean", str(store), "--yes") == 4
        assert "runs raykd precompute in this store" in said(capsys)
        assert runs_of_unused(store) == unused_runs
        second.communicate("")
    finally:
        first.kill()
        second.kill()
        second.wait()
    assert code_of("clean", str(store), "--yes") == 0
    assert unused_runs
    assert not runs_of_unused(store)
    assert not (store / "working").exists()


@pytest.mark.parametrize("verb", ["distill", "precompute"])
def test_commands_without_a_sweep_have_a_lease_before_they_read_a_corpus(tmp_path, monkeypatch, verb):
    leases = []

    def session(sweep, address, *, plain):
        leases.extend(sweep.storage.names("working/"))
        raise StoreError("here", "is far enough", "end")

    monkeypatch.setattr("raykd.cli.cluster.cluster_session", session)
    file = Path("sweeps/quickstart.yaml")
    assert code_of(verb, str(file), "--set", f"store={tmp_path}/store") == 4
    assert [name.split("/")[1].partition("-")[0] for name in leases] == [verb]
    assert Storage(f"{tmp_path}/store").names() == []


@pytest.mark.parametrize("sweep", [None, "other"])
def test_a_kill_in_between_leaves_a_store_that_is_whole(store, monkeypatch, sweep):
    storage = Storage(str(store))
    if sweep is None:
        shutil.rmtree(store / "sweeps/other")
    planned = plan_removal(storage, sweep)
    files = len(planned.records) + sum(len(part.files) for part in planned.parts)
    removed = Storage.remove
    for last in range(1, files, 3):
        countdown = last

        def killed(self, name):
            nonlocal countdown
            countdown -= 1
            if countdown < 0:
                raise KeyboardInterrupt
            removed(self, name)

        copy = shutil.copytree(store, store.parent / f"copy-{last}")
        at = Storage(str(copy))
        with monkeypatch.context() as patch:
            patch.setattr(Storage, "remove", killed)
            with pytest.raises(KeyboardInterrupt):
                remove(at, plan_removal(at, sweep), note=lambda text: None)
        assert not examine_store(at).damages
        if (Path(copy) / "sweeps/other/sweep.json").exists():
            remove(at, plan_removal(at, sweep), note=lambda text: None)
        remove(at, plan_removal(at), note=lambda text: None)
        assert runs_of(copy, "doctored") == {path.name for path in (Path(copy) / "runs").iterdir()}
        assert unused(at) == []
        shutil.rmtree(copy)


def test_what_a_failed_trial_needs_stays_until_its_sweep_goes(store):
    storage = Storage(str(store))
    failed = Trial(1, "FAILED", objective="structural", run_ids=("run-0000000000000000",))
    SweepRecords(storage, "doctored").save(Record(failed, {}))
    with pytest.raises(StoreError, match="may be tried again"):
        unused(storage)
    remove(storage, plan_removal(storage, "doctored"), note=lambda text: None)
    assert "teachers" in {part.kind for part in parts_of(storage)}, "the other sweep's"


def test_a_run_that_a_sweep_file_starts_from_is_used(store):
    storage = Storage(str(store))
    (started,) = (run for run in SweepRecords(storage, "doctored").trials()[1].run_ids)
    records = SweepRecords(storage, "third")
    records.open(sweep_id="sweep-third", text=json.dumps({"start_from": started}), resume=False)
    assert started not in {part.name for part in plan_removal(storage, "doctored").parts}


def test_a_file_of_somebody_in_a_sweeps_folder_is_no_sweep(store):
    storage = Storage(str(store))
    (store / "sweeps/doctored/notes.md").write_text("mine")
    remove(storage, plan_removal(storage, "doctored"), note=lambda text: None)
    assert (store / "sweeps/doctored/notes.md").exists()
    assert [records.name for records in sweeps_in(storage)] == ["other"]
    assert {part.kind for part in unused(storage)} <= {"runs"}
