"""Latency is measured apart: one task at a time on the reserved probe resource, while no run computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ray

from raykd.runs.cluster import PROBE
from raykd.runs.cost import measure_cost
from raykd.runs.run import Run


def probe(store_uri: str, runs: Sequence[Run], done: Callable[[], None]) -> None:
    """Measure the cost of each run's shape, one after the other. Results are kept in the store."""
    if not runs:
        return
    # A cluster may reserve a quiet node for this by the custom resource; otherwise any one CPU serves.
    reserved: dict[str, float] = {PROBE: 1} if ray.cluster_resources().get(PROBE) else {}
    task: Any = ray.remote(num_cpus=1, resources=reserved, max_calls=0)(_measure)
    for run in runs:
        ray.get(task.remote(store_uri, run.to_plain()))
        done()


def _measure(store_uri: str, plain: dict[str, Any]) -> None:
    measure_cost(store_uri, Run.from_plain(plain))
