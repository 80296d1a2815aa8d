"""Waiting for an autoscaler: on recorded looks at a cluster, with a clock that the test moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from raykd.cluster.growth import Autoscaler, wait_for_slots
from raykd.cluster.topology import Group, Node, NodeType, Topology
from raykd.errors import PlacementError
from tests.silent import Silent

GPU = {"CPU": 8.0, "GPU": 1.0}
GROUP = Group({"CPU": 4.0, "GPU": 1.0})
HEAD = Topology((Node({}),), (NodeType(Node(GPU), 2),))


@dataclass
class Recorded(Silent):
    """A cluster gaining a node at the seconds in `comes`; records messages and requests."""

    comes: tuple[float, ...]
    now: float = 0.0
    messages: list[str] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)

    def way(self) -> Autoscaler:
        def pause(seconds: float) -> None:
            self.now += seconds

        return Autoscaler(
            self.look, lambda bundles: self.requests.append(list(bundles)), lambda: self.now, pause
        )

    def look(self) -> Topology:
        return Topology.of({}, *[GPU for come in self.comes if come <= self.now])

    def note(self, text: str) -> None:
        self.messages.append(text)

    def warn(self, text: str) -> None:
        self.messages.append(f"warning: {text}")

    def detail(self, phase: str, detail: str) -> None:
        self.messages.append(detail)

    def advance(self, phase: str, units: int = 1, *, detail: str = "") -> None:
        self.messages.append(f"+{units} {detail}")


def test_a_phase_asks_waits_and_says_for_what():
    cluster = Recorded(comes=(3.0, 125.0))
    assert wait_for_slots("teachers", GROUP, 2, HEAD, cluster, minutes=20, autoscaler=cluster.way()) == 2
    assert cluster.requests == [[{"CPU": 4, "GPU": 1}] * 2, []]
    waiting = "waiting for 2 × {CPU: 4, GPU: 1}"
    assert cluster.messages[0] == f"teachers: {waiting}: 0 of 2 there; the autoscaler is asked for them"
    assert f"+1 {waiting}: 1 of 2 there, 0 min of at most 20" in cluster.messages
    assert f"{waiting}: 1 of 2 there, 2 min of at most 20" in cluster.messages
    assert cluster.now == 126


def test_what_is_there_is_not_asked_for():
    cluster = Recorded(comes=(0.0, 0.0))
    assert wait_for_slots("teachers", GROUP, 2, HEAD, cluster, minutes=20, autoscaler=cluster.way()) == 2
    assert (cluster.requests, cluster.messages) == ([], [])


def test_a_cluster_that_does_not_grow_is_not_looked_at():
    still = Topology.of(GPU)
    assert wait_for_slots("teachers", GROUP, 1, still, Silent(), minutes=20, autoscaler=None) == 1


def test_nodes_that_do_not_come_end_in_the_arithmetic():
    cluster = Recorded(comes=())
    with pytest.raises(PlacementError) as refused:
        wait_for_slots("students", GROUP, 2, HEAD, cluster, minutes=3, autoscaler=cluster.way())
    assert str(refused.value) == (
        "students: 2 × {CPU: 4, GPU: 1} asked of the autoscaler, 0 there after 3 min (nodes 1 × {}); "
        "look at what it says (ray status), or raise resources.wait_minutes"
    )
    assert cluster.now == 180
    assert cluster.requests[-1] == []


def test_some_are_enough_unless_the_file_says_how_many():
    cluster = Recorded(comes=(1.0,))
    assert wait_for_slots("students", GROUP, 2, HEAD, cluster, minutes=1, autoscaler=cluster.way()) == 1
    assert cluster.messages[-1].startswith("warning: students: 1 of 2 × {CPU: 4, GPU: 1} came in 1 min")
    with pytest.raises(PlacementError, match="1 there after 1 min"):
        wait_for_slots("students", GROUP, 2, HEAD, Recorded((1.0,)), minutes=1, exactly=True,
               autoscaler=Recorded((1.0,)).way())  # fmt: skip


def test_what_was_asked_for_is_given_back_where_the_wait_is_broken_off():
    cluster = Recorded(comes=())
    way = cluster.way()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    broken = Autoscaler(way.look, way.ask, way.clock, interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for_slots("students", GROUP, 2, HEAD, cluster, minutes=1, autoscaler=broken)
    assert cluster.requests[-1] == []


@pytest.mark.slow
def test_a_real_cluster_is_asked_for_more_and_waited_for():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # Asked for by the second generation of autoscalers, a request can be read back.
    ray = {"RAY_AUTH_MODE": "disabled", "RAY_enable_autoscaler_v2": "1", "PYTHONPATH": os.getcwd()}
    script = [sys.executable, "-m", "tests.cluster.growing_cluster"]
    process = subprocess.run(script, env=environment | ray, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout.splitlines()[-1]) == {
        "head": "1 × {}",
        "told by Ray": [3],
        "told by the file": [1],
        "students": 2,
        "places": 1,
        "notes": ["students: waiting for 1 × {CPU: 2}: 0 of 1 there; the autoscaler is asked for them"],
        "asked": [{"CPU": 2.0}],
        "left": [],
        "pinned": True,
        "processor": True,
    }
