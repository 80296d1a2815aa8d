"""The cost phase of a sweep: one grid from beginning to end, and figures that are not known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from raykd.cluster.topology import Topology
from raykd.errors import ExportError, RunError
from raykd.precompute import model_cost
from raykd.precompute.latency import Timing
from raykd.spec import load
from raykd.sweep.driver import run_sweep
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.sweep import Sweep
from tests.silent import Silent
from tests.sweep.in_process import Untracked, without_ray

SMALL = """\
name: small
corpus: {source: builtin, languages: [en], train: 12, dev: 4, test: 4}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {kind: structural}
schedule: {epochs: 1, anneal_horizon: 2}
search: {trials: 1, sampler: grid}
"""


def swept(folder: Path, text: str = SMALL, cluster: Topology | None = None) -> Any:
    """The sweep, run in this process."""
    (folder / "sweep.yaml").write_text(text)
    sweep = Sweep(load(folder / "sweep.yaml", [f"store={folder / 'store'}"]))
    cluster = cluster or Topology.of({"CPU": 1.0})
    run_sweep(PhaseContext(sweep, cluster, Silent()), Untracked())  # type: ignore[arg-type]
    return sweep


def test_a_sweep_keeps_its_grid_and_its_trials_have_the_costs_of_now(tmp_path, monkeypatch):
    with without_ray():
        monkeypatch.setattr(
            model_cost, "time_in_turns", lambda calls: dict.fromkeys(calls, Timing(1.0, 2.0, 0.01))
        )
        first = swept(tmp_path)
        (trial,) = first.records.trials()
        assert trial.grid["latency_ms"] == [0.04, pytest.approx(1.0)]
        assert (
            trial.grid == first.records.grid() == json.loads(first.records.folder.read("costs.json"))["grid"]
        )
        assert "bytes" not in trial.grid
        shutil.rmtree(tmp_path / "store" / "costs")
        monkeypatch.setattr(
            model_cost, "time_in_turns", lambda calls: dict.fromkeys(calls, Timing(3.0, 4.0, 0.09))
        )
        (resumed,) = swept(tmp_path).records.trials()
    assert (trial.cost["latency_ms"], resumed.cost["latency_ms"]) == (1.0, 3.0)
    assert resumed.grid == trial.grid


def test_figures_that_are_named_are_measured(tmp_path):
    search = "search: {trials: 1, objectives: {f1: max, latency_ms_int8: min}, constraints: ['bytes_torch < 1e9']}\n"
    with without_ray():
        (trial,) = swept(
            tmp_path, SMALL.replace("search: {trials: 1, sampler: grid}\n", search)
        ).records.trials()
    assert {
        "latency_ms",
        "latency_ms_int8",
        "latency_ms_torch",
        "speedup_int8",
        "compression_int8",
    } <= trial.cost.keys()


def test_a_search_for_what_turns_out_to_have_no_export_ends_before_its_trials(tmp_path, monkeypatch):
    def fails(model: Any) -> bytes:
        raise ExportError("no graph of it; export another")

    monkeypatch.setattr(model_cost, "float32_file", fails)
    message = r"latency_ms is not known, since the student bilstm has no export \(no graph of it\); search latency_ms_t"
    with without_ray(), pytest.raises(RunError, match=message):
        swept(tmp_path)


def test_without_an_export_the_default_is_the_latency_in_pytorch(tmp_path):
    (tmp_path / "x.vec").write_text("1 2\nthe 0.5 1.0\n")
    contextual = f"hidden_dim: 6, contextual: {{vectors: {tmp_path / 'x.vec'}}}, vocabulary"
    text = SMALL.replace("hidden_dim: 6, vocabulary", contextual)
    (tmp_path / "sweep.yaml").write_text(text)
    sweep = Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path / 'store'}"]))
    assert list(sweep.file.objectives) == ["f1", "latency_ms_torch", "parameters"]
    sweep.records.open(sweep_id="x", text=text, resume=False, objectives=sweep.file.objectives)
    assert sweep.records.objectives == sweep.file.objectives
