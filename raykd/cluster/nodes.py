"""The working nodes of a sweep. Faulty nodes are left out, and their runs are repeated elsewhere.

The driver checks each node before its first use, and all nodes again after a failure: the node must see the driver's
store, be able to write into it, and have the same raykd (`node_check.py`). Other faults show in the runs: several runs
in a row end by a fault of the node, while runs elsewhere end well. If all nodes have a fault, the sweep ends with the
list of faults.
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
"""Seconds for the answers of all nodes; a node that is asked for the first time starts a process."""
LOOK_S = 5.0
"""Seconds between two looks for new nodes."""
STRIKES = 3
"""Number of runs in a row ended by faults of a node, after which the node is left out."""
NODE_LABEL = "ray.io/node-id"
FOLDER = "nodes"
"""Folder of the store for files of the check; removed afterwards."""


def elsewhere(avoid: Iterable[str]) -> dict[str, str]:
    """Ray's label selector for all nodes except some.

    Args:
        avoid: Ids of the nodes to avoid; if there are none, the selector is empty.
    """
    ids = sorted(avoid)
    return {NODE_LABEL: f"!in({', '.join(ids)})"} if ids else {}


@dataclass
class _Strikes:
    """Failures on a node since a run last ended well there."""

    count: int = 0
    meanwhile: set[str] = field(default_factory=set)
    """Other nodes on which a run has ended well since then."""


class Nodes:
    """The nodes of the connected cluster, for the work of one sweep."""

    def __init__(
        self, store: Storage, *, gpus: bool = False, warn: Callable[[str], None] = lambda text: None
    ):
        """Begin with all nodes unchecked.

        Args:
            store: The store as the driver sees it.
            gpus: True if models compute on the GPUs of nodes.
            warn: Called with a sentence about each node that is left out.
        """
        self._store, self._gpus, self.warn = store, gpus, warn
        self.left_out: dict[str, str] = {}
        """Id of a node that gets no more work → reason."""
        self._checked: set[str] = set()
        self._names: dict[str, str] = {}
        self._strikes: dict[str, _Strikes] = {}
        self._looked = 0.0

    @property
    def avoid(self) -> tuple[str, ...]:
        """Ids of the nodes left out."""
        return tuple(sorted(self.left_out))

    def usable(self, cluster: Topology) -> Topology:
        """Return the cluster without the nodes left out."""
        nodes = tuple(node for node in cluster.nodes if node.id not in self.left_out)
        return replace(cluster, nodes=nodes, left_out=len(nodes) < len(cluster.nodes))

    def ask(self, *, all_nodes: bool = False) -> bool:
        """Check the nodes not checked before, or all of them.

        A cluster of one node is the driver's machine, and is not checked; nor is anything without Ray.

        Args:
            all_nodes: Check all nodes.

        Returns:
            True if a further node is left out now.

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
        todo = [row for row in able if all_nodes or row["NodeID"] not in self._checked]
        if len(rows) < 2 or not todo:
            return False
        faults = self._answers(todo)
        self._checked.update(row["NodeID"] for row in todo)
        remaining = len(able) - len(faults)
        for node, fault in faults.items():
            self._leave_out(node, fault, remaining)
        if not remaining:
            reasons = "; ".join(f"{self._names[node]}: {reason}" for node, reason in self.left_out.items())
            raise PlacementError(f"no node of the cluster can do this sweep's work: {reasons}")
        return bool(faults)

    def look(self) -> None:
        """Check new nodes; may be called often. Raises the same errors as `ask`."""
        if time.monotonic() - self._looked > LOOK_S:
            self.ask()

    def blamed(self, node: str, reason: str, *, of_place: bool) -> bool:
        """Check all nodes after a failed run, and tell if a node is at fault.

        Args:
            node: Id of the node on which the run failed; empty if unknown.
            reason: Reason of the failure.
            of_place: True if the run itself is known not to be at fault.

        Returns:
            True if the run has to be repeated elsewhere.

        Raises:
            PlacementError: no node can do the work.
        """
        try:
            if self.ask(all_nodes=True) or node in self.left_out:
                return True
        except StoreError:  # the driver cannot reach the store either
            return False
        if not of_place or not node:
            return False
        strikes = self._strikes.setdefault(node, _Strikes())
        strikes.count += 1
        if strikes.count < STRIKES or not strikes.meanwhile - self.left_out.keys():
            return False
        many = f"{strikes.count} runs in a row failed on it while others ended well elsewhere"
        self._leave_out(
            node, f"{many}, the last with: {reason}", len(strikes.meanwhile - self.left_out.keys())
        )
        return True

    def worked(self, node: str) -> None:
        """Note the good end of a run on a node."""
        self._strikes.pop(node, None)
        for strike in self._strikes.values():
            strike.meanwhile.add(node)

    def refuse_too_small(self, group: Group) -> None:
        """Raise PlacementError if the remaining nodes together have no room for `group`; Ray would wait for ever."""
        if not self.left_out:
            return
        cluster = self.usable(Topology(nodes_of(ray.nodes())))
        if cluster.fits(group) < 1:
            reasons = "; ".join(
                f"{self._names.get(node, node)}: {reason}" for node, reason in self.left_out.items()
            )
            raise PlacementError(f"one run takes {group}; the nodes {cluster} are left, and {reasons}")

    def _answers(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Check nodes, and return id → fault of the faulty ones; nodes that go away meanwhile have none."""
        sign = f"{FOLDER}/{uuid.uuid4().hex}"
        self._store.write(sign, bytes(WRITTEN_BYTES))  # as many bytes as each node writes in its check
        try:
            questions = {self._question(row, sign): row["NodeID"] for row in rows}
            answered, late = ray.wait(list(questions), num_returns=len(questions), timeout=ANSWER_S)
            faults = {questions[question]: _answer(question) for question in answered}
            for question in late:
                ray.cancel(question, force=True)
                faults[questions[question]] = (
                    f"it did not answer within {ANSWER_S:.0f} s: is the server of a mounted folder gone, "
                    "or can it start no process?"
                )
        finally:
            with suppress(StoreError):
                for name in self._store.names(sign):
                    self._store.remove(name)
                self._store.remove_empty(FOLDER)
        return {node: redact(fault) for node, fault in faults.items() if fault}

    def _question(self, row: Mapping[str, Any], sign: str) -> Any:
        gpus = self._gpus and bool(row["Resources"].get("GPU"))
        options: dict[str, Any] = {
            "num_cpus": 0,
            "max_retries": 1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(row["NodeID"], soft=False),
            # A process that has seen all GPUs would keep seeing them when Ray later assigns it one: end it.
            "max_calls": 1 if gpus else 0,
        }
        question: Any = find_node_fault
        task: Any = ray.remote(**options)(question)
        return task.remote(self._store.uri, sign, __version__, gpus=gpus)

    def _leave_out(self, node: str, reason: str, remaining: int) -> None:
        self.left_out[node] = reason
        self.warn(
            f"node {self._names[node]} gets no work of this sweep: {reason}. "
            f"{pluralise(remaining, 'other node')} can do it; --resume asks this one again"
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
