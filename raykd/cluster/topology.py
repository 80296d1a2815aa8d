"""What a cluster has, node by node, what it may add, and how much fits on it at the same time. Plain data; no Ray.

The rule of packing: a worker is placed whole on one node, as Ray does, and a run's workers may be on several nodes
(Ray's PACK prefers one). A GPU is shared by parts only: two workers with 0.6 of a GPU take two GPUs. All workers of a
stage take the same, so each node has its number of places for them, and it does not matter in which order they are
taken. Where a run has a driver beside its workers, drivers go first into what workers leave, then into the place of as
few workers as possible. Ray may place a driver worse; then a run waits until another one has ended.
"""

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
"""A quotient such as 9.999999999999998 is 10; Ray counts ten-thousandths."""
MOST_NODES = 10_000
"""Where a cluster may grow without a limit."""
OF_THE_NODE = ("node:", "memory", "object_store_memory")
"""Resources that every node has of its own, which are of no use in a message."""


@dataclass(frozen=True)
class Node:
    """One machine: its resources, all of them together, whether they are used or not."""

    resources: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    def places(self, each: Amounts) -> int:
        """How many times `each` fits on this node."""
        asked = [(name, amount) for name, amount in each.items() if amount > 0]
        return min(_places(name, self.resources.get(name, 0.0), amount) for name, amount in asked)


@dataclass(frozen=True)
class NodeType:
    """A kind of node that an autoscaler may add, so many of them at most."""

    node: Node
    most: int


@dataclass(frozen=True)
class Group:
    """What is placed together: `workers` times the same, and the CPUs of a driver beside them."""

    each: Amounts
    workers: int = 1
    driver_cpus: float = 0.0

    @property
    def total(self) -> dict[str, float]:
        """The sum of everything."""
        found = {name: amount * self.workers for name, amount in self.each.items() if amount > 0}
        return found | ({"CPU": found.get("CPU", 0.0) + self.driver_cpus} if self.driver_cpus else {})

    @property
    def bundles(self) -> list[dict[str, float]]:
        """What Ray places one by one."""
        each = {name: amount for name, amount in self.each.items() if amount > 0}
        return [*([{"CPU": self.driver_cpus}] if self.driver_cpus else []), *([each] * self.workers)]

    def __str__(self) -> str:
        several = f"{self.workers} workers × " if self.workers > 1 else ""
        driver = f" + {self.driver_cpus:g} CPUs for their driver" if self.driver_cpus else ""
        return f"{several}{shown(self.each)}{driver}"


@dataclass(frozen=True)
class Topology:
    """The nodes that are there, and those that an autoscaler may add to them."""

    nodes: tuple[Node, ...] = ()
    may_add: tuple[NodeType, ...] = ()
    slots_asleep: bool = False
    """Whether slots sleep that hold CPUs (`placement.keeps_slots`): what is computed meanwhile uses these, and asks Ray
    for none."""
    left_out: bool = False
    """Whether nodes of it were left out (`nodes.py`): as many at once as are asked for are then the most."""
    dashboard: bool = True
    """True where Ray's dashboard runs, for which Ray Train waits where a run has several workers."""

    @staticmethod
    def of(*nodes: Amounts) -> Topology:
        """Nodes with these resources."""
        return Topology(tuple(Node(each) for each in nodes))

    @property
    def grows(self) -> bool:
        """Whether there may be more of it."""
        return any(each.most > 0 for each in self.may_add)

    @property
    def grown(self) -> Topology:
        """All that there can be."""
        added = (each.node for each in self.may_add for _ in range(min(each.most, MOST_NODES)))
        return Topology((*self.nodes, *added))

    def total(self, name: str) -> float:
        """What all nodes together have of a resource."""
        return sum(node.resources.get(name, 0.0) for node in self.nodes)

    def fits(self, group: Group) -> int:
        """How many of `group` fit at the same time on the nodes that are there."""
        full = [node.places(group.each) for node in self.nodes]
        workers = sum(full)
        if not group.driver_cpus:
            return workers // group.workers
        taken = group.each.get("CPU", 0.0)
        free = [
            node.resources.get("CPU", 0.0) - own * taken for node, own in zip(self.nodes, full, strict=True)
        ]
        drivers = sum(_drivers(cpus, group) for cpus in free)
        found = min(drivers, workers // group.workers)
        # Drivers go into what workers leave. After that, the place of the fewest workers becomes one for drivers.
        swaps = [
            (*_swap(cpus, group), place)
            for place, (cpus, own) in enumerate(zip(free, full, strict=True))
            if taken and own
        ]
        heapify(swaps)
        while swaps and workers // group.workers > found:
            lost, gained, place = heappop(swaps)
            if lost > full[place]:
                continue
            full[place], free[place] = full[place] - lost, free[place] + lost * taken
            workers, drivers = workers - lost, drivers - gained
            found = max(found, min(drivers, workers // group.workers))
            heappush(swaps, (*_swap(free[place], group), place))
        return found

    def __str__(self) -> str:
        kinds = Counter(shown(node.resources) for node in self.nodes)
        return ", ".join(f"{many} × {kind}" for kind, many in kinds.items()) or "no node"


def shown(amounts: Amounts) -> str:
    """`{CPU: 4, GPU: 1}`; without what every node has of its own."""
    own = {
        name.removeprefix("accelerator_type:"): ""
        if name.startswith("accelerator_type:")
        else f": {amount:g}"
        for name, amount in amounts.items()
        if amount > 0 and not name.startswith(OF_THE_NODE)
    }
    return f"{{{', '.join(f'{name}{amount}' for name, amount in own.items())}}}"


def nodes_of(table: Iterable[PlainObject]) -> tuple[Node, ...]:
    """The nodes of `ray.nodes()` that live."""
    return tuple(
        Node(dict(row["Resources"]), dict(row.get("Labels") or {}), row["NodeID"])
        for row in table
        if row["Alive"]
    )


def types_of(groups: Iterable[tuple[Amounts, int]], nodes: Iterable[Node]) -> tuple[NodeType, ...]:
    """What an autoscaler may still add to `nodes`: it has groups of nodes with these resources, and each of them has so
    many nodes at most, any number where that is below 0.
    """
    found = [(Node(dict(resources)), MOST_NODES if most < 0 else most) for resources, most in groups]
    return still_added(found, nodes)


def still_added(types: Iterable[tuple[Node, int]], nodes: Iterable[Node]) -> tuple[NodeType, ...]:
    """The types with so many nodes of them at most, less those that are there."""
    there = [_named(node.resources) for node in nodes]
    return tuple(NodeType(node, max(0, most - there.count(_named(node.resources)))) for node, most in types)


def _named(resources: Amounts) -> dict[str, float]:
    """What a node's type says of it."""
    return {
        name: amount for name, amount in resources.items() if amount > 0 and not name.startswith(OF_THE_NODE)
    }


def _places(name: str, there: float, each: float) -> int:
    if name == "GPU" and each < 1:
        return floor(there + TINY) * floor(1 / each + TINY)
    return floor(there / each + TINY)


def _drivers(cpus: float, group: Group) -> int:
    return floor(cpus / group.driver_cpus + TINY)


def _swap(cpus: float, group: Group) -> tuple[int, int]:
    """With so many CPUs left: how many workers must go for one more driver, and the drivers that come, negative."""
    taken, now = group.each["CPU"], _drivers(cpus, group)
    lost = max(1, ceil(((now + 1) * group.driver_cpus - cpus) / taken - TINY))
    return lost, now - _drivers(cpus + lost * taken, group)
