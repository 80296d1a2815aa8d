"""GPU figures in a sweep, and the gain of training on GPUs, with made-up measurements of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from raykd.cli import cluster
from raykd.cluster.topology import Topology
from raykd.errors import PlacementError
from raykd.figures.results import Cost
from raykd.precompute.latency import hardware
from raykd.precompute.measurement import check_gpu
from raykd.precompute.model_cost import GPU, MeasuredCost, find_sizes, measure_cost, store_cost
from raykd.spec import load
from raykd.storage.store import Storage
from raykd.sweep.phases import costs
from raykd.sweep.sweep import Sweep
from tests.sweep.in_process import call, without_ray
from tests.sweep.test_costs import SMALL, swept

ON = {GPU: {"name": "a GPU", "torch": "2", "cuda": "13"}}
SEARCH = "search: {trials: 1, objectives: {f1: max, latency_ms_gpu: min, sentences_per_s_gpu_bf16: max}}\n"
ON_GPUS = SMALL + "resources: {students: {gpus_per_worker: 0.5}}\n"


@contextmanager
def a_gpu(monkeypatch: pytest.MonkeyPatch, *, training: float) -> Iterator[None]:
    """Sweeps compute here, on two CPUs and a GPU on which so many pieces a second are trained."""

    def measure_shapes(
        store_uri: str, runs: Any, *, resources: Any, listener: Any, runtimes: Any, **_: Any
    ) -> Any:
        check_gpu(runtimes, resources, topology)
        storage = Storage(store_uri)
        for run in runs:
            measure_cost(store_uri, run)
            figures = {"training_pieces_per_s_gpu": training}
            for runtime in runtimes:
                figures |= {f"latency_ms_{runtime}": 0.25, f"latency_ms_batch32_{runtime}": 0.5}
                figures[f"sentences_per_s_{runtime}"] = 1e5 if run.role == "student" else 1e4
            sizes = find_sizes(storage, run)
            assert sizes is not None
            store_cost(storage, run, MeasuredCost(sizes, Cost(figures, sizes.shape, ON)))
        return hardware() | (ON if runtimes else {})

    @contextmanager
    def connected(*_: Any, **__: Any) -> Iterator[Topology]:
        yield topology

    topology = Topology.of({"CPU": 2.0, "GPU": 1.0})
    with without_ray():
        monkeypatch.setattr(costs, "measure_shapes", measure_shapes)
        monkeypatch.setattr(cluster, "connected", connected)
        yield


def test_figures_of_a_gpu_are_searched_and_kept_like_any_other(tmp_path, monkeypatch):
    with a_gpu(monkeypatch, training=1.0):
        text = SMALL.replace("search: {trials: 1, sampler: grid}\n", SEARCH)
        (tmp_path / "sweep.yaml").write_text(text)
        sweep = Sweep(load(tmp_path / "sweep.yaml", [f"store={tmp_path / 'store'}"]))
        with pytest.raises(PlacementError, match=r"figures that end in _gpu, .* are timed on \{GPU: 1\}"):
            costs.check_measurable(sweep, Topology.of({"CPU": 1.0}))
        (trial,) = swept(tmp_path, text, Topology.of({"CPU": 2.0, "GPU": 1.0})).records.trials()
    assert trial.cost["latency_ms_gpu"] == 0.25
    assert trial.cost["sentences_per_s_gpu_bf16"] == 1e5
    assert trial.cost["speedup_gpu"] == 1.0
    assert trial.cost["latency_ms"] == 1.0


@pytest.mark.parametrize(("training", "pays"), [(2000.0, False), (5000.0, True)])
def test_plan_says_where_gpus_do_not_pay(tmp_path, monkeypatch, capsys, training, pays):
    """On two CPUs a step takes a second (without Ray's help), so they train 2 × 1,024 pieces a second together."""
    (tmp_path / "sweep.yaml").write_text(ON_GPUS)
    with a_gpu(monkeypatch, training=training / 2):
        call("plan", str(tmp_path / "sweep.yaml"), "--set", f"store={tmp_path / 'store'}")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("GPUs: they")]
    expected = (
        "GPUs: they do not pay for E6 H6 crf: at most 2,000 pieces/s in training over all runs at once, and 2,048 "
        "without them; set resources.students.gpus_per_worker: 0"
    )
    assert lines == ([] if pays else [expected])
