"""Consistent measurement of costs: which shapes are timed, which of them together, and which again.

Shapes are timed in turns, a few at a time, always together with one whose latency is known, the anchor. If the anchor
differs from its stored latency, the speed of the machine has changed, and all shapes are timed again. Shapes measured
under load are timed again as soon as the machine is quiet. A smaller shape that is slower than a larger one is timed
again, together with the larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import ray
from ray.exceptions import RayTaskError, TaskUnschedulableError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raykd.cluster.connection import topology
from raykd.cluster.growth import wait_for_slots
from raykd.cluster.listener import Listener, Unit
from raykd.cluster.nodes import Nodes
from raykd.cluster.placement import PROBE, check_target, latency_node
from raykd.cluster.progress_channel import reported
from raykd.cluster.topology import Group, Node, Topology, shown
from raykd.errors import PlacementError, StoreError
from raykd.figures.cost_grid import measurements_contradict
from raykd.figures.results import LOADED, Cost
from raykd.figures.table import COSTS, ENDINGS, GPU_RUNTIMES, PARAMETERS, Runtime
from raykd.identity import PlainObject
from raykd.pluralise import pluralise
from raykd.precompute.gpu_cost import gpu_hardware, measure_on_gpu
from raykd.precompute.latency import hardware
from raykd.precompute.machine_load import current_load
from raykd.precompute.model_cost import (
    MAX_MODELS,
    MeasuredCost,
    add_cost_note,
    find_cost,
    measure_together,
    store_cost,
)
from raykd.precompute.processor import processor_name
from raykd.recipes.resources import LatencyTarget, Resources, gpu_probe_resources, latency_resources
from raykd.recipes.run import Run
from raykd.storage.store import Storage

Measure = Callable[[Sequence[Run]], Sequence[MeasuredCost]]
"""Measures the first of some runs together, at least one."""
LATENCIES = tuple(
    figure.name for figure in COSTS if figure.form == "milliseconds" and not figure.name.endswith("_p90")
)
GROUP = "shapes"
"""Name of shapes measured together, in progress reports."""
MAX_WARNINGS = 3
"""Most contradictions with a warning of their own."""


@dataclass
class Bench:
    """The measurement of shapes on one machine.

    Attributes:
        storage: The store, for the costs.
        hardware: Description of the machine.
        measure: Measures shapes on the machine.
        load: Gives the load of the machine by other programs, from 0 to 1.
        listener: Of the phase.
        runtimes: Forms in which models are timed beside the float32 export.
    """

    storage: Storage
    hardware: PlainObject
    measure: Measure
    load: Callable[[], float]
    listener: Listener
    runtimes: Sequence[Runtime] = ()
    costs: dict[str, Cost] = field(default_factory=dict)
    """Id of a run → cost of its shape."""

    def run(self, runs: Sequence[Run]) -> None:
        """Measure the shapes of runs without a stored cost.

        Args:
            runs: of different shapes.
        """
        self.costs = {
            run.id: cost
            for run in runs
            if (cost := find_cost(self.storage, run, self.hardware, self.runtimes)) is not None
        }
        stored = [run for run in runs if run.id in self.costs]
        loaded = [run for run in stored if self.costs[run.id].loaded]
        repeated = loaded if loaded and self.load() <= LOADED else []
        pending = [run for run in runs if run.id not in self.costs or run in repeated]
        self.listener.begin("latency", len(runs), done_before=len(runs) - len(pending))
        if pending:
            steady = [run for run in stored if run not in pending]
            self._measure_steadily(runs, pending, self._smallest(steady))
            self._measure_contradictions(runs)
        self._warn_of_load(runs)

    def _measure_steadily(self, runs: Sequence[Run], pending: Sequence[Run], anchor: Run | None) -> None:
        """Measure `pending`; if the anchor shows that the speed of the machine has changed, measure all of `runs`."""
        change = self._measure_beside(pending, anchor)
        if not change:
            return
        self.listener.note(
            f"latency: {change}, so {pluralise(len(runs), 'shape')} are timed again, all together"
        )
        self.listener.begin("latency", len(runs))
        if change := self._measure_beside(runs, None):
            self.listener.warn(
                f"latency: {change} once more: the speed of this machine changes, and so do latencies"
            )

    def _measure_beside(self, pending: Sequence[Run], anchor: Run | None, *, counts: bool = True) -> str:
        """Measure in groups, each together with the anchor, and store the costs.

        Args:
            pending: runs whose shapes are measured.
            anchor: a run whose cost is known; None: choose one from the first group for the following groups.
            counts: whether the shapes count as progress of the phase.

        Returns:
            The change of the anchor's latency, in words; empty if there is none.
        """
        remaining, change = list(pending), ""
        while remaining:
            group = remaining if anchor is None else [anchor, *remaining]
            group_size = min(len(remaining), MAX_MODELS - (anchor is not None))
            self.listener.started(Unit("latency", GROUP, {GROUP: ""}, counts=group_size if counts else 0))
            measured = list(self.measure(group))
            self.listener.ended(GROUP)
            if anchor is not None and len(measured) == 1:  # the anchor is so large that nothing else fits
                anchor = None
                continue
            for run, measurement in zip(group, measured, strict=False):
                if run is anchor:
                    change = change or _describe_change(self.costs[run.id], measurement.cost)
                    continue
                self.costs[run.id] = store_cost(self.storage, run, measurement)
                if counts:
                    self.listener.advance("latency")
            remaining = remaining[len(measured) - (anchor is not None) :]
            anchor = anchor or self._smallest(group[: len(measured)])
        return change

    def _smallest(self, runs: Sequence[Run]) -> Run | None:
        """The run with the fewest parameters, which is timed fastest."""
        return min(runs, key=lambda run: self.costs[run.id].figures[PARAMETERS.name], default=None)

    def _measure_contradictions(self, runs: Sequence[Run]) -> None:
        """Time contradicting shapes again, and add a note to shapes that contradict again."""
        pairs = contradictions(runs, self.costs)
        if not pairs:
            return
        contradicting = list({run.id: run for pair in pairs for run in pair}.values())
        slow, fast = (_describe_shape(self.costs[run.id]) for run in pairs[0])
        self.listener.note(
            f"latency: {slow} was slower than {fast}, "
            f"which is larger; {pluralise(len(contradicting), 'shape')} of such pairs are timed again"
        )
        self._measure_beside(contradicting, None, counts=False)
        for small, large in contradictions(contradicting, self.costs)[:MAX_WARNINGS]:
            text = f"slower than {_describe_shape(self.costs[large.id])}, though smaller in every size; timed twice"
            self.costs[small.id] = add_cost_note(self.storage, small, self.hardware, text)
            self.listener.warn(f"latency: {_describe_shape(self.costs[small.id])} is {text}")

    def _warn_of_load(self, runs: Sequence[Run]) -> None:
        loads = [cost.load for run in runs if (cost := self.costs[run.id]).loaded]
        if loads:
            self.listener.warn(
                f"latency: {len(loads)} of {pluralise(len(runs), 'shape')} timed while other programs used up to "
                f"{max(loads):.0%} of the machine; raykd plan or raykd sweep times them again once it is quiet"
            )


def contradictions(runs: Sequence[Run], costs: Mapping[str, Cost]) -> list[tuple[Run, Run]]:
    """Return pairs of runs: the first is smaller in every size than the second, yet slower beyond the noise.

    Args:
        runs: of different shapes.
        costs: run id → cost.
    """
    return [
        (small, large)
        for small, large in permutations(runs, 2)
        if _smaller(costs[small.id], costs[large.id]) and _slower(costs[small.id], costs[large.id])
    ]


def _smaller(cost: Cost, larger: Cost) -> bool:
    """Return true if two shapes are of one kind and no size of the first is larger."""
    return (
        cost.shape != larger.shape
        and cost.figures[PARAMETERS.name] <= larger.figures[PARAMETERS.name]
        and _is_within(cost.shape, larger.shape)
    )


def _is_within(value: Any, bound: Any) -> bool:
    if isinstance(value, Mapping) and isinstance(bound, Mapping):
        return value.keys() == bound.keys() and all(_is_within(value[key], bound[key]) for key in value)
    if _is_size(value) and _is_size(bound):
        return value <= bound
    return value == bound


def _is_size(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _slower(cost: Cost, faster: Cost) -> bool:
    return any(
        cost.figures[name] > faster.figures[name] and _differ(cost, faster, name)
        for name in LATENCIES
        if name in cost.figures and name in faster.figures
    )


def _differ(cost: Cost, second: Cost, name: str) -> bool:
    spreads = cost.spreads.get(name, 0.0), second.spreads.get(name, 0.0)
    return measurements_contradict(cost.figures[name], second.figures[name], *spreads)


def _describe_change(stored: Cost, now: Cost) -> str:
    """The change of a shape's latency from the stored one, in words; empty if there is none."""
    for name in LATENCIES:
        if name in stored.figures and name in now.figures and _differ(stored, now, name):
            values = f"{name} {now.figures[name]:.3g}, was {stored.figures[name]:.3g}"
            return f"{_describe_shape(stored)} has another latency than before ({values})"
    return ""


def _describe_shape(cost: Cost) -> str:
    """Kind and sizes of a shape: `bilstm embedding_dim 16, hidden_dim 32`."""
    model = dict(cost.shape.get("model", {}))
    sizes = [f"{key} {value}" for key, value in model.items() if _is_size(value)]
    return f"{model.get('kind', 'a model')} {', '.join(sizes)}".rstrip()


def measure_shapes(
    store_uri: str,
    runs: Sequence[Run],
    *,
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None = None,
    runtimes: Sequence[Runtime] = (),
) -> PlainObject:
    """Measure the shapes of runs on one node, and store the costs.

    The node is the one that `resources.latency` names. For runtimes on a GPU it is a node with a whole GPU of the kind
    on which students train. If a node is at fault, another one measures.

    Args:
        store_uri: of the store.
        runs: of different shapes.
        resources: of the sweep.
        cluster: the cluster.
        listener: of the phase.
        nodes: the nodes, if one at fault should be avoided.
        runtimes: forms in which models are timed beside the float32 export.

    Returns:
        The description of the hardware.

    Raises:
        PlacementError: there is no such node or no GPU, or the node went away.
    """
    gpu_runtimes: list[Runtime] = [runtime for runtime in runtimes if runtime in GPU_RUNTIMES]
    cpu_runtimes: list[Runtime] = [runtime for runtime in runtimes if runtime not in GPU_RUNTIMES]
    check_gpu(runtimes, resources, cluster)
    while True:
        try:
            node = _measure_on_node(store_uri, runs, resources, cluster, listener, nodes, cpu_runtimes)
            gpu = _measure_on_gpu(store_uri, runs, resources, listener, gpu_runtimes) if gpu_runtimes else {}
            return {**node, **gpu}
        except (StoreError, RayTaskError):
            if nodes is None or not nodes.ask(all_nodes=True):
                raise


def _measure_on_node(
    store_uri: str,
    runs: Sequence[Run],
    resources: Resources,
    cluster: Topology,
    listener: Listener,
    nodes: Nodes | None,
    runtimes: Sequence[Runtime],
) -> PlainObject:
    target = resources.latency
    if cluster.grows and latency_node(target, topology()) is None:
        ask = latency_resources(target or LatencyTarget())
        wait_for_slots("latency", Group(ask), 1, cluster, listener, minutes=resources.wait_minutes)
    if nodes is not None:
        nodes.ask()
    now = replace(topology(without=nodes.avoid if nodes is not None else ()), may_add=())
    check_target(target, now)
    node = latency_node(target, now)
    assert node is not None
    on = hardware(_run_on(node, processor_name))
    takes = _task_resources(target, node) | ({"CPU": 0.0} if cluster.slots_asleep else {})

    def measure(some: Sequence[Run]) -> Sequence[MeasuredCost]:
        plain = [run.to_plain() for run in some]
        return _run_on(node, _measure, measure_together, store_uri, plain, tuple(runtimes), takes=takes)

    bench = Bench(
        Storage(store_uri), on, measure, lambda: _run_on(node, current_load, takes=takes), listener, runtimes
    )
    try:
        bench.run(runs)
    except TaskUnschedulableError as error:
        raise PlacementError("the node on which latency is measured went away; start it again") from error
    return on


def _measure_on_gpu(
    store_uri: str, runs: Sequence[Run], resources: Resources, listener: Listener, runtimes: Sequence[Runtime]
) -> PlainObject:
    """Measure on a GPU; return its description."""
    # A process that had a GPU keeps some of its memory; so each task has a process of its own.
    takes = gpu_probe_resources(resources.for_role("students"))
    gpus, accelerator = takes.pop("GPU"), {name: amount for name, amount in takes.items() if name != "CPU"}
    on_a_gpu: Any = ray.remote(num_cpus=0, num_gpus=gpus, resources=accelerator, max_calls=1)
    on: Any = ray.get(on_a_gpu(gpu_hardware).remote())

    def measure(some: Sequence[Run]) -> Sequence[MeasuredCost]:
        plain = [run.to_plain() for run in some]
        return ray.get(on_a_gpu(_measure).remote(measure_on_gpu, store_uri, plain, tuple(runtimes)))

    Bench(Storage(store_uri), on, measure, lambda: 0.0, listener, runtimes).run(runs)
    return on


def check_gpu(runtimes: Sequence[Runtime], resources: Resources, cluster: Topology) -> None:
    """Raise PlacementError if a figure is to be timed on a GPU and no node has one of the students' kind.

    Args:
        runtimes: forms in which models are timed.
        resources: of the sweep.
        cluster: the cluster.
    """
    gpu_runtimes: list[Runtime] = [runtime for runtime in runtimes if runtime in GPU_RUNTIMES]
    takes = gpu_probe_resources(resources.for_role("students"))
    if gpu_runtimes and cluster.grown.fits(Group(takes)) < 1:
        names = ", ".join(f"figures that end in {ENDINGS[runtime]}" for runtime in gpu_runtimes)
        raise PlacementError(
            f"search: {names} are timed on {shown(takes)}, which no node has; search other costs"
        )


def _measure(
    together: Callable[[Storage, Sequence[Run], Sequence[Runtime]], list[MeasuredCost]],
    store_uri: str,
    plain: Iterable[PlainObject],
    runtimes: Sequence[Runtime],
) -> list[MeasuredCost]:
    with reported(GROUP):
        return together(Storage(store_uri), [Run.from_plain(run) for run in plain], runtimes)


def _task_resources(target: LatencyTarget | None, node: Node) -> dict[str, float]:
    """The resources of a measuring task, with the whole probe resource: two sweeps must not disturb each other."""
    probe = {PROBE: 1.0} if target is None and node.resources.get(PROBE) else {}
    return latency_resources(target or LatencyTarget()) | probe


def _run_on(
    node: Node, function: Callable[..., Any], *arguments: Any, takes: Mapping[str, float] | None = None
) -> Any:
    """The result of `function`, called on a node."""
    if takes is None and node.id == ray.get_runtime_context().get_node_id():
        return function(*arguments)
    custom_resources = {name: amount for name, amount in (takes or {}).items() if name != "CPU"}
    on_node: Any = NodeAffinitySchedulingStrategy(node.id, soft=False)
    task: Any = ray.remote(
        num_cpus=(takes or {}).get("CPU", 0),
        resources=custom_resources,
        scheduling_strategy=on_node,
        max_calls=0,
    )(function)
    return ray.get(task.remote(*arguments))
