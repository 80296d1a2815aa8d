"""A sweep from the file to the front."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
import torch
from mlflow.tracking import MlflowClient

from raykd.cli.sweep import SOME_FAILED
from raykd.recipes.run import Run
from raykd.training.execute import execute_run
from raykd.training.worker import Worker
from tests.end_to_end.command import Command, running, stamps
from tests.end_to_end.sweeps import TREE, conll_corpus, sweep_file
from tests.stored import stored
from tests.training.loops import without_times

# Two sweeps, in a fixture that the first test waits for.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
DIVERGES = 1e37
STARTED = ("teachers", "transfer", "costs", "corpora", "vocabularies")


def trials_of(folder: Path) -> list[dict]:
    """The trials as the store has them."""
    files = sorted((folder / "store/sweeps/tiny/trials").glob("*.json"))
    return [stored(path)["trial"] for path in files]


def states(folder: Path) -> Counter:
    return Counter(trial["state"] for trial in trials_of(folder))


def finished(folder: Path) -> list[str]:
    """The folders of runs that are done."""
    return [f"runs/{path.parent.name}" for path in (folder / "store/runs").glob("*/result.json")]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep whose driver was killed when some trials were done and others ran, and later on its workers."""
    folder = tmp_path_factory.mktemp("sweep")
    path = sweep_file(
        folder,
        corpus=conll_corpus(folder / "conll"),
        objective={"choice": [{"kind": "top_wk", "k": 20}, {"kind": "structural"}]},
        training={**TREE["training"], "learning_rate": {"choice": [0.02, DIVERGES]}},
        search={"sampler": "grid", "trials": 99, "runs_per_setting": 2},
        baseline="gold",
        resources={"precompute_workers": 1},
    )
    store = folder / "store"
    with running(folder, "sweep", str(path)) as command:
        command.until(lambda: stopped_in_the_middle(command, folder))
        command.kill()
        killed = command.end()
    before = {"states": states(folder), "trials": trials_of(folder)}
    before["stamps"] = stamps(store, *STARTED, *finished(folder))
    with running(folder, "sweep", str(path), "--resume") as command:
        command.until(lambda: kill_workers(command, store))
        resumed = command.end()
    return {"folder": folder, "killed": killed, "before": before, "resumed": resumed}


def stopped_in_the_middle(command: Command, folder: Path) -> bool:
    """Stop the driver once a trial is done, and let it go on where no other is running at that moment."""
    if not states(folder)["COMPLETE"]:
        return False
    command.send(signal.SIGSTOP)
    if states(folder)["RUNNING"]:
        return True
    command.send(signal.SIGCONT)
    return False


def kill_workers(command: Command, store: Path) -> bool:
    """Kill the processes that train, once one of them has a checkpoint to go on from."""
    if not list((store / "runs").glob("*/checkpoint.pt")):
        return False
    workers = command.named("ray::Slot.train")
    for worker in workers:
        worker.kill()
    return bool(workers)


def test_the_driver_was_killed_in_the_middle(swept):
    assert swept["killed"].code == -9
    assert swept["before"]["states"]["RUNNING"] >= 1
    assert swept["before"]["states"].total() < 5


def test_the_resumed_sweep_ends_with_all_trials_and_the_front(swept):
    resumed = swept["resumed"]
    assert resumed.code == SOME_FAILED, resumed.output
    trials = trials_of(swept["folder"])
    assert [(trial["role"], trial["state"]) for trial in trials] == [
        ("search", "COMPLETE"), ("search", "FAILED"), ("search", "COMPLETE"), ("search", "FAILED"),
        ("baseline", "COMPLETE"),
    ]  # fmt: skip
    for trial in trials:
        assert len(set(trial["run_ids"])) == 2
        diverged = trial["settings"]["training.learning_rate"] == DIVERGES
        assert ("is not finite" in trial["message"]) == diverged == (trial["state"] == "FAILED")
    assert "2 complete, 2 failed" in resumed.out
    assert "students on the front" in resumed.out
    assert "Next: raykd front" in resumed.out
    assert "Traceback" not in resumed.output
    assert resumed.err == ""
    assert (swept["folder"] / "store/sweeps/tiny/front.html").exists()


def test_nothing_that_was_stored_is_computed_again(swept):
    store = swept["folder"] / "store"
    assert swept["before"]["stamps"].items() <= stamps(store, *STARTED, "runs").items()
    assert any(name.startswith("runs/") for name in swept["before"]["stamps"])
    assert any(name.endswith(".arrow") for name in swept["before"]["stamps"])
    old = [trial for trial in swept["before"]["trials"] if trial["state"] != "RUNNING"]
    assert [trial for trial in trials_of(swept["folder"]) if trial in old] == old


def test_every_run_ended_as_an_undisturbed_one(swept, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    store = swept["folder"] / "store"
    quiet = tmp_path / "store"
    shutil.copytree(store, quiet, ignore=shutil.ignore_patterns("runs", "sweeps"))
    ends = [store / "runs" / run_id for trial in trials_of(swept["folder"]) for run_id in trial["run_ids"]]
    complete = [path for path in ends if (path / "result.json").exists()]
    try:
        assert len(complete) == 6
        for path in complete:
            run = Run.from_plain(stored(path / "model.json"))
            undisturbed = execute_run(str(quiet), run, worker=Worker(), report=lambda _: None)
            disturbed = stored(path / "result.json")
            assert without_times(disturbed) == without_times(undisturbed.to_plain())
            assert not (path / "checkpoint.pt").exists()
    finally:
        torch.set_num_threads(threads)


def test_mlflow_shows_every_trial_once(swept):
    client = MlflowClient(f"sqlite:///{swept['folder']}/mlflow.db")
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    teachers = [run for run in runs if run.data.tags.get("role") == "teacher"]
    student_runs = [run for run in runs if run not in [*parents, *teachers]]
    children = {run.data.tags["raykd.trial"].rsplit("/")[-1]: run for run in student_runs}
    assert [run.info.status for run in [*parents, *teachers]] == ["FINISHED"] * 2
    assert len(runs) == 2 + len(children)
    assert {number: run.info.status for number, run in children.items()} == {
        "0": "FINISHED", "1": "FAILED", "2": "FINISHED", "3": "FAILED", "4": "FINISHED"
    }  # fmt: skip
    for number, trial in enumerate(trials_of(swept["folder"])):
        run = children[str(number)]
        assert run.data.params["objective.kind"] == trial["objective"]
        if trial["state"] == "COMPLETE":
            assert run.data.metrics["dev_f1"] == pytest.approx(
                trial["scores"]["dev"]["source"]["mean"], abs=1e-4
            )
            curves = {key for key in run.data.metrics if key.startswith("epoch/") and "dev_f1" in key}
            assert curves
            for key in curves:
                steps = [point.step for point in client.get_metric_history(run.info.run_id, key)]
                assert sorted(steps) == list(range(len(steps))), key
                # A student on labels alone takes as many steps, in epochs of less text.
                assert len(steps) == TREE["schedule"]["epochs"] or trial["role"] == "baseline", key
