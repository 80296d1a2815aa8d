"""Running sweeps in the test's process, without Ray."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from raykd.cli import cluster
from raykd.cli.main import main
from raykd.cluster.jobs import Outcome
from raykd.cluster.topology import Topology
from raykd.errors import RunError
from raykd.precompute import model_cost, transfer
from raykd.precompute.latency import Timing, hardware
from raykd.precompute.model_cost import measure_cost
from raykd.precompute.plan import precompute
from raykd.sweep import driver, lease
from raykd.sweep.driver import run_phases
from raykd.sweep.phases import costs
from raykd.sweep.phases.interface import PhaseContext
from raykd.sweep.phases.teachers import Teachers
from raykd.sweep.sweep import Sweep
from raykd.training.execute import execute_run
from raykd.training.worker import Worker
from tests.silent import Silent
from tests.transfer.samples import here


@contextmanager
def without_ray() -> Iterator[list[Any]]:
    """Compute sweeps in the process of the test with given latencies; yield the list of finished runs, in order."""
    finished_runs: list[Any] = []

    def work(scheduler: Any, *, store_uri: str, resources: Any, concurrent: int, nodes: Any) -> None:
        while (job := scheduler.next()) is not None:
            results = []
            try:
                for run in job.runs:
                    report = partial(_report, scheduler, job.key, run.id)
                    results.append(execute_run(store_uri, run, worker=Worker(), report=report))
                    finished_runs.append(run)
            except _StoppedError as stopped:
                scheduler.ended(job.key, Outcome("PRUNED", message=str(stopped)))
            except RunError as error:
                scheduler.ended(job.key, Outcome("FAILED", message=str(error)))
            else:
                scheduler.ended(job.key, Outcome("COMPLETE", tuple(results)))

    def measure_shapes(store_uri: str, runs: Any, *, listener: Any, runtimes: Any = (), **_: Any) -> Any:
        listener.begin("latency", len(runs))
        for run in runs:
            measure_cost(store_uri, run, runtimes)
            listener.advance("latency")
        return hardware()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "work", work)
        patch.setattr(costs, "measure_shapes", measure_shapes)
        patch.setattr(transfer, "precompute", partial(precompute, launch=here))
        patch.setattr(cluster, "connected", _one_cpu)
        patch.setattr(lease, "SETTLE_S", 0.0)
        patch.setattr(model_cost, "time_training", lambda model, batch: Timing(1000.0, 1000.0))
        patch.setattr(model_cost, "time_in_turns", lambda calls: dict.fromkeys(calls, Timing(1.0, 2.0)))
        yield finished_runs


def train_teachers(sweep: Sweep) -> None:
    """The phase `teachers` alone, on one CPU."""
    context = PhaseContext(sweep, Topology.of({"CPU": 1.0}), Silent())
    run_phases(context, [Teachers(context)])


class Untracked:
    """A tracking server without effect."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


def call(*words: str) -> None:
    """Run the command `raykd …` in this process; it must succeed, and `capsys` has its output."""
    assert not code_of(*words)


def code_of(*words: str) -> int:
    """Return the exit code of the command `raykd …`, run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["raykd", *words])
        patch.setattr(signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as exit_info:
            main()
    return int(exit_info.value.code or 0)


@contextmanager
def _one_cpu(address: str | None = None, **options: Any) -> Iterator[Topology]:
    yield Topology.of({"CPU": 1.0})


class _StoppedError(Exception):
    """The scheduler stopped the trial."""


def _report(scheduler: Any, key: str, run_id: str, epoch: Any) -> None:
    if scheduler.epoch(key, run_id, epoch.metrics()) == "stop":
        raise _StoppedError(f"stopped after epoch {epoch.epoch + 1}")
