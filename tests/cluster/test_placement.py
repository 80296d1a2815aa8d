"""Placement before Ray is asked: how much fits of each phase, and the arithmetic shown where nothing does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raykd.cluster.placement import (
    ASLEEP_BYTES,
    ASLEEP_SHARE,
    concurrency,
    keeps_slots,
    latency_node,
    preflight,
    readers,
)
from raykd.cluster.topology import Node, NodeType, Topology
from raykd.errors import PlacementError
from raykd.recipes.resources import LatencyTarget, Resources


@pytest.mark.parametrize(
    ("resources", "cluster", "fit"),
    [
        ({}, {"CPU": 2.0}, 2),
        ({"cpus_per_worker": 0.5}, {"CPU": 2.0}, 4),
        ({"cpus_per_worker": 0.1}, {"CPU": 1.0}, 10),  # 1.0 / 0.1 falls a hair short of 10 in floating point
        ({"cpus_per_worker": 1.5}, {"CPU": 4.0}, 2),
        ({"concurrency": 2}, {"CPU": 4.0}, 2),
        # Several workers have a driver of 0.1 CPUs beside them.
        ({"workers": 2}, {"CPU": 4.0}, 1),
        ({"workers": 2}, {"CPU": 4.2}, 2),
        ({"ray_train": True}, {"CPU": 2.0}, 1),
        ({"workers": 2, "cpus_per_worker": 0.9}, {"CPU": 2.0}, 1),
        ({"gpus_per_worker": 1.0}, {"CPU": 16.0, "GPU": 3.0}, 3),
        ({"gpus_per_worker": 2.0, "workers": 2}, {"CPU": 3.0, "GPU": 4.0}, 1),
    ],
    ids=str,
)
def test_as_many_runs_as_fit(resources, cluster, fit):
    assert concurrency(Resources(**resources), Topology.of(cluster)) == fit


@pytest.mark.parametrize(
    ("resources", "cluster", "message"),
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
def test_what_cannot_be_placed_is_refused_with_its_arithmetic(resources, cluster, message):
    with pytest.raises(PlacementError) as refused:
        concurrency(Resources(**resources), Topology.of(cluster))
    assert str(refused.value) == message


def test_several_workers_of_a_run_need_rays_dashboard():
    without = replace(Topology.of({"CPU": 8.0}), dashboard=False)
    assert concurrency(Resources(), without) == 8
    with pytest.raises(PlacementError, match=r"resources\.workers: Ray Train waits for Ray's dashboard"):
        concurrency(Resources(workers=2), without)
    with pytest.raises(PlacementError, match=r"Set resources\.ray_train: false, or start it"):
        concurrency(Resources(ray_train=True), without)


GPU_NODE = {"CPU": 16.0, "GPU": 1.0}


def refused(resources: Resources, *nodes: dict[str, float]) -> str:
    with pytest.raises(PlacementError) as error:
        preflight(resources, Topology.of(*nodes))
    return str(error.value)


def test_where_nodes_were_left_out_what_is_asked_for_is_the_most():
    resources = Resources.model_validate({"concurrency": 3, "precompute_workers": 3})
    two = Topology((Node({"CPU": 1.0}), Node({"CPU": 1.0})), left_out=True)
    assert (concurrency(resources, two), readers(resources, two)) == (2, 2)
    more = replace(two, nodes=two.nodes * 3)
    assert (concurrency(resources, more), readers(resources, more)) == (3, 3)
    with pytest.raises(PlacementError, match="one run takes"):
        concurrency(resources, replace(two, nodes=()))


def test_actors_of_precompute_are_as_many_as_the_gpus():
    """Seen: 16 CPUs and one GPU gave 16 actors, refused after the teachers: `3 × 1 GPU = 3 of 1`."""
    assert preflight(Resources(gpus_per_worker=1.0), Topology.of(GPU_NODE)).precompute == 1
    assert readers(Resources(gpus_per_worker=0.25), Topology.of(GPU_NODE)) == 4
    assert readers(Resources(cpus_per_worker=4.0), Topology.of(GPU_NODE)) == 16
    resources = Resources(cpus_per_worker=4.0, precompute={"cpus_per_worker": 4.0})
    assert readers(resources, Topology.of(GPU_NODE)) == 4


def test_nodes_are_compared_not_sums():
    """Seen: 3 CPUs a worker on two nodes with 2 was accepted, and waited for ever."""
    assert refused(Resources(cpus_per_worker=3.0), {"CPU": 2.0}, {"CPU": 2.0}) == (
        "resources: one run takes {CPU: 3}; there are nodes 2 × {CPU: 2}, and a worker is placed whole on one of them; "
        "lower resources.cpus_per_worker"
    )
    assert "lower resources.gpus_per_worker" in refused(
        Resources(gpus_per_worker=2.0), {"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0, "GPU": 1.0}
    )
    assert refused(Resources(concurrency=2, cpus_per_worker=1.5), {"CPU": 2.0}, {"CPU": 1.0}) == (
        "resources.concurrency: 2 runs at once take 2 × {CPU: 1.5}, more than there is room for on nodes "
        "1 × {CPU: 2}, 1 × {CPU: 1}; set it to at most 1"
    )


def test_a_head_without_cpus_and_no_worker_yet_is_accepted_where_it_grows():
    head, worker = Node({"memory": 4e9}), Node({"CPU": 4.0})
    grows = Topology((head,), (NodeType(worker, 3),))
    placement = preflight(Resources(cpus_per_worker=2.0), grows)
    assert (placement.teachers, placement.precompute, placement.students) == (6, 12, 6)
    with pytest.raises(PlacementError) as error:
        preflight(Resources(cpus_per_worker=2.0, concurrency=7), grows)
    assert str(error.value) == (
        "resources.concurrency: 7 runs at once take 7 × 2 = 14 CPUs, the cluster has 0 and may grow to 12; "
        "set it to at most 6"
    )
    assert refused(Resources(), {"memory": 4e9}) == (
        "resources: one run takes 1 worker × 1 CPUs = 1 CPUs, the cluster has 0; lower resources.cpus_per_worker "
        "(where the cluster grows: resources.autoscale says what may be added)"
    )


def test_each_role_takes_its_own_and_the_rest_from_resources():
    file = Resources(
        cpus_per_worker=2.0,
        max_failures=5,
        teachers={"gpus_per_worker": 1.0, "accelerator_type": "A100"},
        students={"gpus_per_worker": 0.1, "concurrency": 7},
        precompute={"workers": 2},
    )
    teachers, students = file.for_role("teachers"), file.for_role("students")
    assert (teachers.cpus_per_worker, teachers.gpus_per_worker, teachers.max_failures) == (2, 1, 5)
    assert (students.accelerator_type, students.gpus_per_worker, students.concurrency) == (None, 0.1, 7)
    assert teachers.teachers is None
    assert Resources(**students.model_dump()) == students, "as an actor gets it"
    cluster = Topology.of({"CPU": 32.0, "GPU": 2.0, "accelerator_type:A100": 1.0}, {"CPU": 8.0, "GPU": 1.0})
    placement = preflight(file, cluster)
    assert (placement.teachers, placement.precompute, placement.students) == (2, 2, 7)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            {"teachers": {"cpus_per_worker": 20.0}},
            "resources.teachers: one run takes 1 worker × 20 CPUs = 20 CPUs, the cluster has 16; "
            "lower resources.teachers.cpus_per_worker",
        ),
        (
            {"students": {"concurrency": 20}},
            "resources.students.concurrency: 20 runs at once take 20 × 1 = 20 CPUs, the cluster has 16; "
            "set it to at most 16",
        ),
        (
            {"precompute_workers": 17},
            "resources.precompute_workers: 17 × 1 = 17 CPUs, the cluster has 16; set it to at most 16",
        ),
        (
            {"precompute": {"workers": 3, "gpus_per_worker": 1.0}},
            "resources.precompute.workers: 3 × 1 = 3 GPUs, the cluster has 1; set it to at most 1",
        ),
        (
            {"precompute": {"gpus_per_worker": 2.0}},
            "resources.precompute: one actor of precompute takes 1 worker × 2 GPUs = 2 GPUs, the cluster has 1; "
            "lower resources.precompute.gpus_per_worker",
        ),
        ({"accelerator_type": "A100"}, "resources.accelerator_type: no node has A100 (there are: L4)"),
        (
            {"custom": {"fast_disk": 1.0}},
            "resources: one run takes 1 worker × 1 fast_disk = 1 fast_disk, the cluster has 0; "
            "lower resources.custom.fast_disk",
        ),
        (
            {"latency": {"labels": {"kind": "phone"}}},
            "resources.latency: no node has {CPU: 1} with the labels {'kind': 'phone'}: nodes 1 × "
            "{CPU: 16, GPU: 1, L4}; change it, or omit it to measure on any node",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_each_phase_is_refused_before_anything_is_computed(resources, message):
    assert refused(Resources(**resources), {**GPU_NODE, "accelerator_type:L4": 1.0}) == message


def test_parts_of_several_gpus_are_refused():
    with pytest.raises(ValueError, match="a part of one GPU"):
        Resources(gpus_per_worker=1.5)


@pytest.mark.parametrize(
    ("resources", "role"),
    [
        ({"workers": 2, "gpus_per_worker": 0.5}, "teachers"),
        ({"gpus_per_worker": 0.25, "students": {"workers": 2}}, "students"),
        ({"workers": 2, "gpus_per_worker": 1.0, "teachers": {"gpus_per_worker": 0.5}}, "teachers"),
    ],
)
def test_workers_of_one_run_that_would_share_a_gpu_are_refused(resources, role):
    with pytest.raises(ValueError, match=rf"{role}: 2 workers of one run cannot share a GPU"):
        Resources(**resources)
    Resources(workers=2, gpus_per_worker=0.5, teachers={"workers": 1}, students={"gpus_per_worker": 0.0})


def test_latency_is_measured_on_the_node_that_the_file_names():
    probe, plain = (
        Node({"CPU": 2.0, "raykd_probe": 1.0}, id="p"),
        Node({"CPU": 2.0}, {"kind": "phone"}, id="a"),
    )
    arm = Node({"CPU": 2.0, "arm": 1.0}, id="z")
    cluster = Topology((arm, probe, plain, Node({}, id="0")))
    assert latency_node(None, cluster) == probe
    assert latency_node(None, Topology((arm, plain))) == plain
    assert latency_node(LatencyTarget(custom={"arm": 1.0}), cluster) == arm
    assert latency_node(LatencyTarget(labels={"kind": "phone"}), cluster) == plain
    assert latency_node(LatencyTarget(labels={"kind": "tablet"}), cluster) is None


ROOM = 2 * ASLEEP_BYTES / ASLEEP_SHARE
"""Memory of a node on which two workers may sleep."""


@pytest.mark.parametrize(
    ("resources", "node", "slots"),
    [
        ({}, {"CPU": 2.0}, True),
        ({"workers": 2, "cpus_per_worker": 0.9}, {"CPU": 2.0}, True),
        ({"students": {"cpus_per_worker": 1.0}}, {"CPU": 2.0}, True),
        ({"students": {"cpus_per_worker": 0.5}}, {"CPU": 2.0}, False),
        ({"teachers": {"concurrency": 1}}, {"CPU": 2.0}, False),
        ({}, {"CPU": 2.0, "memory": ROOM}, True),
        ({}, {"CPU": 2.0, "memory": ROOM - 1}, False),
        ({"workers": 2, "concurrency": 1}, {"CPU": 4.0, "memory": ROOM}, True),
        ({"workers": 2, "concurrency": 1}, {"CPU": 4.0, "memory": ROOM - 1}, False),
        ({"gpus_per_worker": 0.5}, {"CPU": 2.0, "GPU": 1.0}, False),
        ({"precompute": {"gpus_per_worker": 1.0}}, {"CPU": 2.0, "GPU": 1.0}, True),
        ({"custom": {"disk": 1.0}}, {"CPU": 2.0, "disk": 2.0}, False),
        (
            {"custom": {"disk": 1.0}, "precompute": {"custom": {"net": 1.0}}},
            {"CPU": 2.0, "disk": 2.0, "net": 1.0}, True,
        ),
        (
            {"students": {"custom": {"disk": 1.0}}, "teachers": {"custom": {"disk": 1.0}},
             "latency": {"custom": {"disk": 1.0}}},
            {"CPU": 2.0, "disk": 2.0}, False,
        ),
    ],
    ids=str,
)  # fmt: skip
def test_slots_wait_for_the_trials_where_what_is_computed_meanwhile_has_room(resources, node, slots):
    assert keeps_slots(Resources(**resources), Topology.of(node)) == slots


def test_slots_of_several_nodes_and_of_a_cluster_that_grows_do_not_wait():
    node = Node({"CPU": 2.0})
    assert keeps_slots(Resources(), Topology((node,)))
    assert not keeps_slots(Resources(), Topology((node, node)))
    assert not keeps_slots(Resources(), Topology((node,), (NodeType(node, 1),)))
