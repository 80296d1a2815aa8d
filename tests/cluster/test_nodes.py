"""Exclusion of nodes with faults, and failures without a node at fault."""

from __future__ import annotations

import os
from typing import Any

import pytest

from raykd import __version__
from raykd.cluster import nodes
from raykd.cluster.nodes import STRIKES, Nodes, elsewhere
from raykd.cluster.topology import Group, Node, Topology
from raykd.errors import PlacementError, StoreError
from raykd.storage.store import Storage
from raykd.training import node_check
from raykd.training.node_check import find_node_fault


class Cluster:
    """Nodes with the answers to a check; `asked_nodes` holds the ids of all checks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ids: str, **cpus: float):
        self.cpus = dict.fromkeys(ids, 2.0) | cpus
        self.faults: dict[str, str] = {}
        self.asked_nodes: list[list[str]] = []
        self.warnings: list[str] = []
        monkeypatch.setattr(nodes.ray, "nodes", self.rows)
        monkeypatch.setattr(nodes.ray, "is_initialized", lambda: True)
        monkeypatch.setattr(Nodes, "_answers", lambda _, rows: self.answers([row["NodeID"] for row in rows]))

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "NodeID": node, "Alive": True, "Resources": {"CPU": cpus} if cpus else {},
                "NodeManagerHostname": f"host-{node}", "NodeManagerAddress": "10.0.0.1",
            }
            for node, cpus in self.cpus.items()
        ]  # fmt: skip

    def answers(self, ids: list[str]) -> dict[str, str]:
        self.asked_nodes.append(ids)
        return {node: fault for node, fault in self.faults.items() if node in ids}

    def nodes(self) -> Nodes:
        return Nodes(Storage("store"), warn=self.warnings.append)


def test_each_node_is_asked_once_and_one_with_a_fault_is_left_out_by_name(monkeypatch):
    cluster = Cluster(monkeypatch, "a", "b", head=0.0)
    cluster.faults = {"b": "the store is not there"}
    nodes = cluster.nodes()
    assert nodes.ask()
    assert not nodes.ask()
    assert cluster.asked_nodes == [["a", "b"]], "a node without CPUs gets no work"
    assert nodes.avoid == ("b",)
    (message,) = cluster.warnings
    assert message.startswith(
        "node host-b (10.0.0.1, b in Ray) gets no work of this sweep: the store is not there."
    )
    assert "1 other node can do it" in message
    usable = nodes.usable(Topology(tuple(Node({"CPU": 2.0}, id=node) for node in "ab")))
    assert [node.id for node in usable.nodes] == ["a"]
    assert usable.left_out
    cluster.cpus["c"] = 1.0
    assert not nodes.ask()
    assert cluster.asked_nodes[1:] == [["c"]], "it has come meanwhile"


def test_a_single_node_is_not_asked(monkeypatch):
    cluster = Cluster(monkeypatch, "a")
    assert not cluster.nodes().ask(all_nodes=True)
    assert not cluster.asked_nodes


def test_where_every_node_has_a_fault_the_sweep_ends_with_what_they_said(monkeypatch):
    cluster = Cluster(monkeypatch, "a", "b", head=0.0)
    cluster.faults = {"a": "no store", "b": "another raykd"}
    with pytest.raises(PlacementError, match=r"no node .*: host-a .*: no store; host-b .*: another raykd"):
        cluster.nodes().ask()


def test_a_run_that_fails_is_blamed_on_a_node_that_has_a_fault_now(monkeypatch):
    cluster = Cluster(monkeypatch, "a", "b")
    nodes = cluster.nodes()
    nodes.ask()
    assert not nodes.blamed("a", "the loss is not finite", of_place=False), "a fault of the run's own"
    cluster.faults = {"b": "no space left"}
    assert nodes.blamed("b", "no such file", of_place=False)
    assert nodes.blamed("b", "no such file", of_place=False), "another run that was begun there"
    assert nodes.avoid == ("b",)


def test_a_node_on_which_runs_die_in_a_row_is_left_out_where_others_end_well_elsewhere(monkeypatch):
    cluster = Cluster(monkeypatch, "a", "b")
    nodes = cluster.nodes()
    for _ in range(2 * STRIKES):
        assert not nodes.blamed("b", "its process died", of_place=True), "nobody ended well elsewhere"
    nodes.worked("b")
    for _ in range(STRIKES - 1):
        assert not nodes.blamed("b", "its process died", of_place=True)
    nodes.worked("a")
    assert nodes.blamed("b", "its process died", of_place=True)
    assert f"{STRIKES} runs in a row failed on it" in cluster.warnings[0]
    assert "its process died" in cluster.warnings[0]


def test_what_died_now_and_then_is_not_a_row(monkeypatch):
    nodes = Cluster(monkeypatch, "a", "b").nodes()
    for _ in range(3 * STRIKES):
        nodes.worked("a")
        assert not nodes.blamed("b", "its process died", of_place=True)
        nodes.worked("b")


def test_nobody_is_blamed_where_the_driver_cannot_write_either(monkeypatch):
    nodes = Cluster(monkeypatch, "a", "b").nodes()

    def answers(*_: Any) -> Any:
        raise StoreError("x", "cannot be written", "free some space", True)

    monkeypatch.setattr(Nodes, "_answers", answers)
    assert not nodes.blamed("a", "cannot be written", of_place=True)


def test_a_run_that_the_remaining_nodes_have_no_place_for_is_refused(monkeypatch):
    cluster = Cluster(monkeypatch, small=1.0, large=4.0)
    nodes = cluster.nodes()
    cluster.faults = {"large": "no store"}
    nodes.refuse_too_small(Group({"CPU": 4.0}))
    nodes.ask()
    nodes.refuse_too_small(Group({"CPU": 1.0}))
    with pytest.raises(
        PlacementError, match=r"one run takes \{CPU: 4\}; the nodes 1 × \{CPU: 1\} are left.*no store"
    ):
        nodes.refuse_too_small(Group({"CPU": 4.0}))


def test_the_selector_names_every_node_that_is_avoided():
    assert elsewhere(()) == {}
    assert elsewhere(("b", "a")) == {"ray.io/node-id": "!in(a, b)"}


def test_a_node_that_sees_the_store_and_writes_into_it_has_no_fault(tmp_path):
    Storage(str(tmp_path)).write("nodes/sign", b"")
    assert find_node_fault(str(tmp_path), "nodes/sign", __version__, gpus=False) == ""
    assert Storage(str(tmp_path)).names() == ["nodes/sign"]


def test_a_folder_of_the_same_name_is_not_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(node_check, "PAUSE_S", 0.0)
    fault = find_node_fault(str(tmp_path / "store"), "nodes/sign", __version__, gpus=False)
    assert f"the store {tmp_path}/store is not the driver's there: mount it" in fault
    assert not (tmp_path / "store").exists(), "it is not made"


def test_another_version_is_a_fault(tmp_path):
    assert "the driver 0.0.1: install the same" in find_node_fault(str(tmp_path), "x", "0.0.1", gpus=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a small file system, for root alone")
def test_a_store_or_a_cache_without_space_is_a_fault(tmp_path, monkeypatch):
    import subprocess
    import sys

    script = (
        "import sys; from raykd.training.node_check import _cache_fault, find_node_fault; "
        "from raykd import __version__; "
        "print(find_node_fault(sys.argv[1], 'sign', __version__, gpus=False)); print(_cache_fault())"
    )
    small = tmp_path / "small"
    small.mkdir()
    mounted = f'mount -t tmpfs -o size=16k none {small} && touch {small}/sign && exec "$@"'
    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, "sh", sys.executable, "-c", script, str(small)],
        capture_output=True, text=True, env=os.environ | {"RAYKD_CACHE": str(small / "cache")},
    )  # fmt: skip
    if "permitted" in ended.stderr:
        pytest.skip("no file system may be mounted here")
    store, cache = ended.stdout.splitlines()
    assert "no space left on device" in store
    assert f"its cache {small}/cache cannot be written (no space left on device): set RAYKD_CACHE" in cache
