"""Packing of groups on nodes, against enumeration, and clusters as described by Ray."""

from __future__ import annotations

from itertools import product
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.cluster.topology import Group, Node, NodeType, Topology, nodes_of, still_added, types_of

TENTHS = st.integers(0, 12).map(lambda tenths: tenths / 10)


def enumerated(nodes: list[dict[str, float]], group: Group) -> int:
    """The largest number of groups over all placings of workers and drivers."""

    def placings(node: dict[str, float]) -> list[tuple[int, int]]:
        """(workers, drivers) that a node holds."""
        cpus, gpus = round(node["CPU"] * 1000), node["GPU"]
        group_cpus, driver = round(group.worker_bundle.get("CPU", 0) * 1000), round(group.driver_cpus * 1000)
        share = group.worker_bundle.get("GPU", 0)
        of_gpus = 99 if not share else floor(gpus / share) if share >= 1 else gpus * floor(1 / share + 1e-9)
        return [
            (workers, (cpus - workers * group_cpus) // driver if driver else 99)
            for workers in range(of_gpus + 1)
            if workers * group_cpus <= cpus
        ]

    best = 0
    for chosen in product(*map(placings, nodes)):
        workers, drivers = (sum(counts) for counts in zip(*chosen, strict=True))
        best = max(best, min(workers // group.workers, drivers))
    return best


NODES = st.fixed_dictionaries({"CPU": TENTHS.map(lambda cpus: 2 * cpus), "GPU": st.integers(0, 3)})


@given(
    st.lists(NODES, min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 15).map(lambda tenths: tenths / 10),
    st.sampled_from([0, 0.25, 0.5, 0.6, 1, 2]),
    st.booleans(),
)  # fmt: skip
def test_as_many_fit_as_the_best_placing_has_room_for(nodes, workers, cpus, gpus, driver):
    group = Group({"CPU": cpus, "GPU": gpus}, workers, 0.1 if driver else 0.0)
    assert Topology.of(*nodes).fits(group) == enumerated(nodes, group)


@given(
    st.lists(st.fixed_dictionaries({"CPU": TENTHS, "GPU": st.just(0)}), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(20, 999).map(lambda thousandths: thousandths / 1000),
)
def test_odd_shares_of_a_cpu_are_never_counted_too_high(nodes, workers, cpus):
    group = Group({"CPU": cpus}, workers, 0.1)
    best = enumerated(nodes, group)
    placed = Topology.of(*nodes).fits(group)
    assert best - 1 <= placed <= best
    assert placed == best or len(nodes) > 1


@pytest.mark.parametrize(
    ("nodes", "group", "fit"),
    [
        # The sums would do: 4 CPUs for one worker with 3.
        ([{"CPU": 2}, {"CPU": 2}], Group({"CPU": 3}), 0),
        ([{"CPU": 8, "GPU": 0}, {"CPU": 1, "GPU": 2}], Group({"CPU": 1, "GPU": 1}), 1),
        # A GPU is shared by parts, and a part is of one GPU.
        ([{"CPU": 8, "GPU": 2}], Group({"CPU": 1, "GPU": 0.6}), 2),
        ([{"CPU": 8, "GPU": 2}], Group({"CPU": 1, "GPU": 0.25}), 8),
        ([{"CPU": 8, "GPU": 3}], Group({"CPU": 1, "GPU": 2}), 1),
        # The workers of one run may be on several nodes, and its driver on a third one.
        ([{"CPU": 2}, {"CPU": 2}, {"CPU": 0.5}], Group({"CPU": 2}, 2, 0.1), 1),
        ([{"CPU": 2}, {"CPU": 2}], Group({"CPU": 2}, 2, 0.1), 0),
        ([{"CPU": 4, "accelerator_type:L4": 1}, {"CPU": 64}], Group({"CPU": 1, "accelerator_type:L4": 0.001}), 4),
        ([{"CPU": 1.0}], Group({"CPU": 0.1}), 10),
        ([{"CPU": 1.0}], Group({"CPU": 0.05}, 2, 0.1), 5),
        ([], Group({"CPU": 1}), 0),
    ],
    ids=str,
)  # fmt: skip
def test_what_fits_is_counted_node_by_node(nodes, group, fit):
    assert Topology.of(*nodes).fits(group) == fit


def test_a_group_says_what_it_takes():
    group = Group({"CPU": 4, "GPU": 1, "accelerator_type:A100": 0.001, "fast_disk": 0}, 2, 0.1)
    assert str(group) == "2 workers × {CPU: 4, GPU: 1, A100} + 0.1 CPUs for their driver"
    assert group.total == {"CPU": 8.1, "GPU": 2, "accelerator_type:A100": 0.002}
    assert group.bundles == [{"CPU": 0.1}, *[{"CPU": 4, "GPU": 1, "accelerator_type:A100": 0.001}] * 2]


# As ray.nodes() gives them: a head without CPUs, a worker, and one that died.
RECORDED = [
    {
        "NodeID": "a1", "Alive": True, "NodeManagerAddress": "10.0.0.1",
        "Resources": {"node:__internal_head__": 1.0, "node:10.0.0.1": 1.0, "memory": 4e9, "object_store_memory": 2e9},
        "Labels": {"ray.io/node-id": "a1", "ray.io/node-group": "headgroup"},
    },
    {
        "NodeID": "b2", "Alive": True, "NodeManagerAddress": "10.0.0.2",
        "Resources": {
            "CPU": 8.0, "GPU": 1.0, "accelerator_type:L4": 1.0, "node:10.0.0.2": 1.0, "memory": 3e10,
            "object_store_memory": 1e10,
        },
        "Labels": {"ray.io/node-id": "b2", "ray.io/accelerator-type": "L4"},
    },
    {
        "NodeID": "c3", "Alive": False, "NodeManagerAddress": "10.0.0.3", "Resources": {}, "Labels": {},
    },
]  # fmt: skip


def test_nodes_are_read_as_ray_gives_them():
    topology = Topology(nodes_of(RECORDED))
    assert [node.id for node in topology.nodes] == ["a1", "b2"]
    assert str(topology) == "1 × {}, 1 × {CPU: 8, GPU: 1, L4}"
    assert topology.nodes[1].labels["ray.io/accelerator-type"] == "L4"
    assert topology.total("CPU") == 8
    assert not topology.grows


def test_what_may_be_added_is_what_the_autoscaler_has_left():
    nodes = nodes_of(RECORDED)
    small = Node({"CPU": 8, "GPU": 1, "accelerator_type:L4": 1})
    assert still_added([(small, 3), (Node({"CPU": 64}), 2)], nodes) == (
        NodeType(small, 2), NodeType(Node({"CPU": 64}), 2),
    )  # fmt: skip
    may_add = types_of([({"CPU": 8, "GPU": 1, "accelerator_type:L4": 1}, 1), ({"CPU": 64}, 2)], nodes)
    assert [node_type.max_nodes for node_type in may_add] == [0, 2]
    topology = Topology(nodes, may_add)
    assert topology.grows
    assert topology.fits(Group({"CPU": 32})) == 0
    assert topology.grown.fits(Group({"CPU": 32})) == 4
    assert types_of([], nodes) == ()
