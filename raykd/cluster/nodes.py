"""Which nodes of a cluster do a sweep's work. A node that cannot is left out, and what failed on it is done elsewhere.

The driver asks each node before it is used, and all of them again when something fails: is the store that I write
there, can you write into it, is your raykd mine (`node_check.py`). What no question finds shows in the runs: a node on
which several in a row end by a fault of the place, while others end well elsewhere. Where all nodes have a fault it is
not theirs: the sweep ends with what they said.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import NodeDiedError, RayError, TaskUnschedulableError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raykd import __version__
from raykd.cluster.topology import Group, Topology, nodes_of
from raykd.errors import PlacementError, StoreError
from raykd.pluralise import pluralise
from raykd.redact import redact
from raykd.storage.store import Storage
from raykd.training.node_check import WRITTEN_BYTES, find_node_fault

ANSWER_S = 60.0
"""How long nodes have for their answer: one that is asked first starts a process."""
LOOK_S = 5.0
"""Seconds between two looks for nodes that have come."""
STRIKES = 3
"""So many runs in a row end by a fault of the place on a node that is then left out."""
NODE_LABEL = "ray.io/node-id"
FOLDER = "nodes"
"""In the store, while nodes are asked."""


def elsewhere(avoid: Iterable[str]) -> dict[str, str]:
    """The label selector of Ray for all nodes but these; empty where none is to be avoided."""
    ids = sorted(avoid)
    return {NODE_LABEL: f"!in({', '.join(ids)})"} if ids else {}


@dataclass
class _Strikes:
    """What failed on a node since a run last ended well there."""

    count: int = 0
    meanwhile: set[str] = field(default_factory=set)
    """The nodes on which a run has ended well since then."""


class Nodes:
    """The nodes of the cluster to which this process is connected, for the work of one sweep."""

    def __init__(
        self, store: Storage, *, gpus: bool = False, warn: Callable[[str], None] = lambda text: None
    ):
        """gpus: whether models compute on GPUs where a node has any."""
        self._store, self._gpus, self.warn = store, gpus, warn
        self.left_out: dict[str, str] = {}
        """Id of a node that gets no more work → why."""
        self._asked: set[str] = set()
        self._names: dict[str, str] = {}
        self._strikes: dict[str, _Strikes] = {}
        self._looked = 0.0

    @property
    def avoid(self) -> tuple[str, ...]:
        """The ids of the nodes that are left out."""
        return tuple(sorted(self.left_out))

    def usable(self, cluster: Topology) -> Topology:
        """The cluster without the nodes that are left out."""
        nodes = tuple(node for node in cluster.nodes if node.id not in self.left_out)
        return replace(cluster, nodes=nodes, left_out=len(nodes) < len(cluster.nodes))

    def ask(self, *, again: bool = False) -> bool:
        """Ask the nodes that were not asked before, or `again` all of them; whether one is left out now that was not.

        Where there is one node only, it is the driver's, and nobody is asked; nor without Ray.

        Raises:
            PlacementError: no node can do the work.
            StoreError: the driver cannot write into the store.
        """
        self._looked = time.monotonic()
        rows = [row for row in ray.nodes() if row["Alive"]] if ray.is_initialized() else []
        for row in rows:
            address = f"{row['NodeManagerAddress']}, {row['NodeID'][:8]} in Ray"
            self._names[row["NodeID"]] = f"{row['NodeManagerHostname']} ({address})"
        able = [row for row in rows if row["Resources"].get("CPU") and row["NodeID"] not in self.left_out]
        todo = [row for row in able if again or row["NodeID"] not in self._asked]
        if len(rows) < 2 or not todo:
            return False
        faults = self._answers(todo)
        self._asked.update(row["NodeID"] for row in todo)
        left = len(able) - len(faults)
        for node, why in faults.items():
            self._leave_out(node, why, left)
        if not left:
            said = "; ".join(f"{self._names[node]}: {why}" for node, why in self.left_out.items())
            raise PlacementError(f"no node of the cluster can do this sweep's work: {said}")
        return bool(faults)

    def look(self) -> None:
        """Ask nodes that have come; called often. Raises as `ask`."""
        if time.monotonic() - self._looked > LOOK_S:
            self.ask()

    def blamed(self, node: str, why: str, *, of_place: bool) -> bool:
        """A run failed, on `node` where that is known: whether a node is to blame for it, so that it is to be done
        again elsewhere. All nodes are asked; `of_place`: the fault is known to be none of the run's own.

        Raises:
            PlacementError: no node can do the work.
        """
        try:
            if self.ask(again=True) or node in self.left_out:
                return True
        except StoreError:  # the driver cannot reach it either
            return False
        if not of_place or not node:
            return False
        own = self._strikes.setdefault(node, _Strikes())
        own.count += 1
        if own.count < STRIKES or not own.meanwhile - self.left_out.keys():
            return False
        many = f"{own.count} runs in a row failed on it while others ended well elsewhere"
        self._leave_out(node, f"{many}, the last with: {why}", len(own.meanwhile - self.left_out.keys()))
        return True

    def worked(self, node: str) -> None:
        """A run ended well on this node."""
        self._strikes.pop(node, None)
        for other in self._strikes.values():
            other.meanwhile.add(node)

    def refuse_too_small(self, group: Group) -> None:
        """Raises PlacementError where the nodes that are not left out, all of them together, have no place for `group`;
        Ray would wait for ever.
        """
        if not self.left_out:
            return
        cluster = self.usable(Topology(nodes_of(ray.nodes())))
        if cluster.fits(group) < 1:
            said = "; ".join(f"{self._names.get(node, node)}: {why}" for node, why in self.left_out.items())
            raise PlacementError(f"one run takes {group}; the nodes {cluster} are left, and {said}")

    def _answers(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Id → fault of those of the nodes that have one. Nodes that go away meanwhile have none."""
        sign = f"{FOLDER}/{uuid.uuid4().hex}"
        self._store.write(sign, bytes(WRITTEN_BYTES))  # as much as each of them writes
        try:
            asked = {self._question(row, sign): row["NodeID"] for row in rows}
            done, late = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S)
            found = {asked[each]: _answer(each) for each in done}
            for each in late:
                ray.cancel(each, force=True)
                found[asked[each]] = (
                    f"it did not answer within {ANSWER_S:.0f} s: is the server of a mounted folder gone, "
                    "or can it start no process?"
                )
        finally:
            with suppress(StoreError):
                for name in self._store.names(sign):
                    self._store.remove(name)
                self._store.remove_empty(FOLDER)
        return {node: redact(fault) for node, fault in found.items() if fault}

    def _question(self, row: Mapping[str, Any], sign: str) -> Any:
        gpus = self._gpus and bool(row["Resources"].get("GPU"))
        options: dict[str, Any] = {
            "num_cpus": 0,
            "max_retries": 1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(row["NodeID"], soft=False),
            # A process that has looked at all GPUs would go on with these when Ray gives it one.
            "max_calls": 1 if gpus else 0,
        }
        question: Any = find_node_fault
        task: Any = ray.remote(**options)(question)
        return task.remote(self._store.uri, sign, __version__, gpus=gpus)

    def _leave_out(self, node: str, why: str, left: int) -> None:
        self.left_out[node] = why
        self.warn(
            f"node {self._names[node]} gets no work of this sweep: {why}. "
            f"{pluralise(left, 'other node')} can do it; --resume asks this one again"
        )


def _answer(reference: Any) -> str:
    try:
        return ray.get(reference)
    except (NodeDiedError, TaskUnschedulableError):  # it is gone
        return ""
    except (RayError, ImportError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1] if lines else type(error).__name__
        return f"raykd does not start there ({reason}): install the same raykd and Python on every node"
