"""Placement before Ray is asked: how many runs fit, and the arithmetic shown where none does."""

from __future__ import annotations

import pytest

import raykd.runs.cluster as cluster_module
from raykd.errors import PlacementError
from raykd.runs.cluster import concurrency, connected
from raykd.runs.recipe import Resources


@pytest.mark.parametrize(
    ("asked", "cluster", "fit"),
    [
        ({}, {"CPU": 2.0}, 2),
        ({"cpus_per_worker": 0.5}, {"CPU": 2.0}, 4),
        ({"cpus_per_worker": 0.1}, {"CPU": 1.0}, 10),  # 1.0 / 0.1 falls a hair short of 10 in floating point
        ({"cpus_per_worker": 1.5}, {"CPU": 4.0}, 2),
        ({"concurrency": 2}, {"CPU": 4.0}, 2),
        # Several workers have a driver of 0.1 CPUs beside them.
        ({"workers": 2}, {"CPU": 4.0}, 1),
        ({"workers": 2}, {"CPU": 4.2}, 2),
        ({"workers": 2, "cpus_per_worker": 0.9}, {"CPU": 2.0}, 1),
        ({"gpus_per_worker": 1.0}, {"CPU": 16.0, "GPU": 3.0}, 3),
        ({"gpus_per_worker": 0.5, "workers": 2}, {"CPU": 3.0, "GPU": 4.0}, 1),
    ],
    ids=str,
)
def test_as_many_runs_as_fit(asked, cluster, fit):
    assert concurrency(Resources(**asked), cluster) == fit


@pytest.mark.parametrize(
    ("asked", "cluster", "message"),
    [
        (
            {"workers": 2}, {"CPU": 2.0},
            "resources: one run takes 2 workers × 1 CPUs + 0.1 for its driver = 2.1 CPUs, the cluster has 2; "
            "lower resources.workers or resources.cpus_per_worker",
        ),
        (
            {"cpus_per_worker": 3.0}, {"CPU": 2.0},
            "resources: one run takes 1 worker × 3 CPUs = 3 CPUs, the cluster has 2; "
            "lower resources.cpus_per_worker",
        ),
        (
            {"gpus_per_worker": 1.0}, {"CPU": 2.0},
            "resources: one run takes 1 worker × 1 GPUs = 1 GPUs, the cluster has 0; "
            "lower resources.gpus_per_worker",
        ),
        (
            {"concurrency": 3}, {"CPU": 2.0},
            "resources.concurrency: 3 runs at once take 3 × 1 = 3 CPUs, the cluster has 2; set it to at most 2",
        ),
        (
            {"concurrency": 3, "gpus_per_worker": 0.5}, {"CPU": 8.0, "GPU": 1.0},
            "resources.concurrency: 3 runs at once take 3 × 0.5 = 1.5 GPUs, the cluster has 1; set it to at most 2",
        ),
    ],
    ids=["workers", "cpus", "gpus", "concurrency by CPUs", "concurrency by GPUs"],
)  # fmt: skip
def test_what_cannot_be_placed_is_refused_with_its_arithmetic(asked, cluster, message):
    with pytest.raises(PlacementError) as refused:
        concurrency(Resources(**asked), cluster)
    assert str(refused.value) == message


@pytest.mark.timeout(60)
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"])
def test_a_cluster_that_does_not_answer_is_refused_at_once(monkeypatch, address):
    monkeypatch.setattr(cluster_module.ray, "is_initialized", lambda: False)
    with pytest.raises(PlacementError, match=f"no Ray cluster answers at {address}"), connected(address):
        pass
