"""The resources of a cluster: nodes, groups of workers, and the number of groups that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import ceil, floor

from raykd.identity import PlainObject

Amounts = Mapping[str, float]
"""Resource, by its name in Ray (CPU, GPU, accelerator_type:A100, a custom one) → amount."""

TINY = 1e-6
"""Tolerance of quotients: 9.999999999999998 is 10. Ray counts ten-thousandths."""
MOST_NODES = 10_000
"""Number of nodes assumed for a cluster that may grow without a limit."""
OF_THE_NODE = ("node:", "memory", "object_store_memory")
"""Beginnings of resources that Ray gives to all nodes; messages leave them out."""


@dataclass(frozen=True)
class Node:
    """One machine: its resources, all of them together, whether they are used or not."""

    resources: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    def places(self, bundle: Amounts) -> int:
        """Return the number of bundles that fit on the node while nothing else runs there."""
        needs = [(name, amount) for name, amount in bundle.items() if amount > 0]
        return min(_places(name, self.resources.get(name, 0.0), amount) for name, amount in needs)


@dataclass(frozen=True)
class NodeType:
    """A kind of node for an autoscaler to add, up to `max_nodes` of them."""

    node: Node
    max_nodes: int


@dataclass(frozen=True)
class Group:
    """Workers with a common placement: `workers` equal bundles, and the CPUs of their driver.

    `group.py` starts such workers.
    """

    worker_bundle: Amounts
    workers: int = 1
    driver_cpus: float = 0.0

    @property
    def total(self) -> dict[str, float]:
        """The sum of all bundles."""
        amounts = {name: amount * self.workers for name, amount in self.worker_bundle.items() if amount > 0}
        return amounts | ({"CPU": amounts.get("CPU", 0.0) + self.driver_cpus} if self.driver_cpus else {})

    @property
    def bundles(self) -> list[dict[str, float]]:
        """The bundles, placed by Ray one by one."""
        bundle = {name: amount for name, amount in self.worker_bundle.items() if amount > 0}
        return [*([{"CPU": self.driver_cpus}] if self.driver_cpus else []), *([bundle] * self.workers)]

    def __str__(self) -> str:
        several = f"{self.workers} workers × " if self.workers > 1 else ""
        driver = f" + {self.driver_cpus:g} CPUs for their driver" if self.driver_cpus else ""
        return f"{several}{shown(self.worker_bundle)}{driver}"


@dataclass(frozen=True)
class Topology:
    """The nodes of a cluster, and those that an autoscaler may add."""

    nodes: tuple[Node, ...] = ()
    may_add: tuple[NodeType, ...] = ()
    slots_asleep: bool = False
    """True while sleeping slots hold CPUs (`placement.keeps_slots`): other work then uses these CPUs without asking
    Ray."""
    left_out: bool = False
    """True if nodes were left out (`nodes.py`): a requested number of simultaneous runs is then only an upper bound."""
    dashboard: bool = True
    """True if Ray's dashboard runs: Ray Train would wait for it."""

    @staticmethod
    def of(*nodes: Amounts) -> Topology:
        """Return a cluster of nodes with the given resources."""
        return Topology(tuple(Node(node) for node in nodes))

    @property
    def grows(self) -> bool:
        """True if nodes may be added."""
        return any(node_type.max_nodes > 0 for node_type in self.may_add)

    @property
    def grown(self) -> Topology:
        """The cluster with all possible nodes."""
        added = (
            node_type.node for node_type in self.may_add for _ in range(min(node_type.max_nodes, MOST_NODES))
        )
        return Topology((*self.nodes, *added))

    def total(self, name: str) -> float:
        """Sum of one resource over all nodes."""
        return sum(node.resources.get(name, 0.0) for node in self.nodes)

    def fits(self, group: Group) -> int:
        """Return the number of groups that fit on the present nodes together."""
        full = [node.places(group.worker_bundle) for node in self.nodes]
        workers = sum(full)
        if not group.driver_cpus:
            return workers // group.workers
        worker_cpus = group.worker_bundle.get("CPU", 0.0)
        free = [
            node.resources.get("CPU", 0.0) - fitting * worker_cpus
            for node, fitting in zip(self.nodes, full, strict=True)
        ]
        drivers = sum(_drivers(cpus, group) for cpus in free)
        groups = min(drivers, workers // group.workers)
        # Drivers go into what workers leave. After that, the place of the fewest workers becomes one for drivers.
        swaps = [
            (*_swap(cpus, group), place)
            for place, (cpus, fitting) in enumerate(zip(free, full, strict=True))
            if worker_cpus and fitting
        ]
        heapify(swaps)
        while swaps and workers // group.workers > groups:
            lost, gained, place = heappop(swaps)
            if lost > full[place]:
                continue
            full[place], free[place] = full[place] - lost, free[place] + lost * worker_cpus
            workers, drivers = workers - lost, drivers - gained
            groups = max(groups, min(drivers, workers // group.workers))
            heappush(swaps, (*_swap(free[place], group), place))
        return groups

    def __str__(self) -> str:
        kinds = Counter(shown(node.resources) for node in self.nodes)
        return ", ".join(f"{many} × {kind}" for kind, many in kinds.items()) or "no node"


def shown(amounts: Amounts) -> str:
    """Text of resources, such as `{CPU: 4, GPU: 1}`; resources that Ray gives to all nodes are left out.

    Args:
        amounts: Resource to amount.
    """
    texts = {
        name.removeprefix("accelerator_type:"): ""
        if name.startswith("accelerator_type:")
        else f": {amount:g}"
        for name, amount in amounts.items()
        if amount > 0 and not name.startswith(OF_THE_NODE)
    }
    return f"{{{', '.join(f'{name}{amount}' for name, amount in texts.items())}}}"


def nodes_of(table: Iterable[PlainObject]) -> tuple[Node, ...]:
    """Return the living nodes in a table of `ray.nodes()`."""
    return tuple(
        Node(dict(row["Resources"]), dict(row.get("Labels") or {}), row["NodeID"])
        for row in table
        if row["Alive"]
    )


def types_of(groups: Iterable[tuple[Amounts, int]], nodes: Iterable[Node]) -> tuple[NodeType, ...]:
    """Return the kinds of nodes that an autoscaler may still add.

    Args:
        groups: Resources of a node, and the largest number of such nodes; below 0: any number.
        nodes: The present nodes.
    """
    types = [(Node(dict(resources)), MOST_NODES if limit < 0 else limit) for resources, limit in groups]
    return still_added(types, nodes)


def still_added(types: Iterable[tuple[Node, int]], nodes: Iterable[Node]) -> tuple[NodeType, ...]:
    """Node types with the largest number of nodes, less those present."""
    present = [_named(node.resources) for node in nodes]
    return tuple(
        NodeType(node, max(0, limit - present.count(_named(node.resources)))) for node, limit in types
    )


def _named(resources: Amounts) -> dict[str, float]:
    """The distinguishing resources of a node's type."""
    return {
        name: amount for name, amount in resources.items() if amount > 0 and not name.startswith(OF_THE_NODE)
    }


def _places(name: str, available: float, need: float) -> int:
    if name == "GPU" and need < 1:
        return floor(available + TINY) * floor(1 / need + TINY)
    return floor(available / need + TINY)


def _drivers(cpus: float, group: Group) -> int:
    return floor(cpus / group.driver_cpus + TINY)


def _swap(cpus: float, group: Group) -> tuple[int, int]:
    """Workers to remove for one more driver, and the drivers gained, as a negative number."""
    worker_cpus, now = group.worker_bundle["CPU"], _drivers(cpus, group)
    lost = max(1, ceil(((now + 1) * group.driver_cpus - cpus) / worker_cpus - TINY))
    return lost, now - _drivers(cpus + lost * worker_cpus, group)
