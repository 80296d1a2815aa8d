"""Real sweeps with early stopping, in the process of the test: records, tables and pages, and the effect of a kill."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from raykd.cluster.listener import RunEpoch
from raykd.cluster.topology import Topology
from raykd.figures.front import pareto_front
from raykd.spec import load
from raykd.sweep.driver import run_sweep
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.records import Record
from raykd.sweep.sweep import Sweep
from tests.silent import Silent
from tests.sweep.in_process import Untracked, code_of, without_ray

pytestmark = pytest.mark.slow

TEXT = """\
name: stopped
corpus: {source: builtin, languages: [en], train: 50, dev: 20, test: 6}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student:
  kind: bilstm
  embedding_dim: {choice: [4, 12]}
  hidden_dim: 6
  decoder: maxent
  vocabulary: {kind: wordpiece, size: 200}
objective: {kind: gold}
schedule: {epochs: 6}
training: {batch_tokens: 60, learning_rate: {choice: [3e-2, 1e-3, 1e-6]}}
search:
  sampler: grid
  trials: 6
  runs_per_setting: 2
  objectives: {f1: max, parameters: min}
  stopping: {kind: mo_asha, first_rung: 0.3, complete_first: 1}
"""


class Held:
    """A lease in force."""

    def check(self) -> None:
        return None


class KilledError(Exception):
    """The driver is killed."""


class Dying(Silent):
    """A listener killing the driver after a number of student epochs."""

    def __init__(self, after: int):
        self._remaining = after

    def epoch(self, phase: str, epoch: RunEpoch) -> None:
        if phase == "trials":
            self._remaining -= 1
            if self._remaining < 0:
                raise KilledError


def swept(folder: Path, *, kills: tuple[int, ...] = ()) -> list[Record]:
    """The records of the sweep, whose driver is killed after so many epochs, and resumed, each time."""
    folder.mkdir(exist_ok=True)
    (folder / "sweep.yaml").write_text(TEXT)
    for after in (*kills, 10**9):
        sweep = Sweep(load(folder / "sweep.yaml", [f"store={folder}/store"]))
        sweep.begin(Held(), resume=True)  # type: ignore[arg-type]
        with without_ray():
            try:
                run_sweep(PhaseContext(sweep, Topology.of({"CPU": 1.0}), Dying(after)), Untracked())  # type: ignore[arg-type]
            except KilledError:
                continue
        return sweep.records.load()
    raise AssertionError


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, list[Record]]:
    folder = tmp_path_factory.mktemp("stopped") / "whole"
    return folder, swept(folder)


def test_stopped_trials_say_why_and_keep_their_epochs_and_are_on_no_front(whole):
    _, records = whole
    stopped = [record for record in records if record.trial.state == "PRUNED"]
    complete = [record for record in records if record.trial.state == "COMPLETE"]
    assert len(records) == 6
    assert stopped
    assert complete
    for record in stopped:
        first, *_ = record.trial.run_ids
        assert set(record.epochs) <= set(record.trial.run_ids)
        epochs = [metrics["epoch"] for metrics in record.epochs[first]]
        assert epochs == list(range(len(epochs)))
        assert record.trial.message.startswith("stopped after epoch ")
        assert Record.from_plain(record.to_plain()) == record
    assert any(len(record.epochs) == 1 for record in stopped), "its second seed was not waited for"
    assert not any(record.epochs for record in complete)
    front = pareto_front([record.trial for record in records], {"f1": "max", "parameters": "min"})
    assert {trial.state for trial in front} == {"COMPLETE"}


def test_a_killed_sweep_decides_as_the_undisturbed_one(whole, tmp_path):
    """Killed in the midst of trials, and between an epoch's checkpoint and its decision."""
    _, records = whole
    resumed = swept(tmp_path / "killed", kills=(3, 4, 2))
    outcomes = [
        (record.trial.state, record.trial.message, record.trial.scores.mean("dev")) for record in resumed
    ]
    assert outcomes == [
        (record.trial.state, record.trial.message, record.trial.scores.mean("dev")) for record in records
    ]
    lengths = [
        [{run_id: len(epochs) for run_id, epochs in record.epochs.items()} for record in sweep_records]
        for sweep_records in (resumed, records)
    ]
    assert lengths[0] == lengths[1]


def test_table_and_page_show_what_was_stopped_and_why(whole, capsys):
    folder, records = whole
    stopped = [record.trial for record in records if record.trial.state == "PRUNED"]
    assert code_of("front", str(folder / "sweep.yaml"), "--set", f"store={folder}/store") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{len(stopped)} stopped early" in printed
    page = (folder / "store/sweeps/stopped/front.html").read_text()
    assert all(trial.message.split(": ")[1].split(",")[0] in page for trial in stopped)


def planned(folder: Path, store: Path, capsys: Any) -> str:
    """The line of `raykd plan` with the time."""
    with without_ray():
        assert code_of("plan", str(folder / "sweep.yaml"), "--set", f"store={store}") == 0
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith("time: "))


def test_a_plan_counts_trials_as_those_that_have_ended_were_trained(whole, tmp_path, capsys):
    folder, records = whole
    assert planned(folder, tmp_path, capsys).endswith(
        "at most: trials that will be stopped early are counted whole"
    )
    # Six epochs for each of two seeds.
    trained = [
        sum(map(len, record.epochs.values())) / 12 if record.trial.state == "PRUNED" else 1.0
        for record in records
    ]
    (share,) = re.findall(r"with (\d+) % of their epochs", planned(folder, folder / "store", capsys))
    assert int(share) == round(100 * fmean(trained)) < 100


def test_costs_that_only_training_tells_are_refused(tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text(TEXT.replace("parameters: min", "wall_s: min"))
    assert code_of("check", str(tmp_path / "sweep.yaml")) != 0
    assert "wall_s is known when a trial has ended" in " ".join(capsys.readouterr().err.split())
