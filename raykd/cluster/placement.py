"""Where the phases of a sweep are placed: what does not fit is refused before anything is computed.

Ray would wait for it for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from raykd.cluster.topology import TINY, Group, Node, Topology, shown
from raykd.errors import PlacementError
from raykd.recipes.resources import LatencyTarget, Resources, RunRole, latency_resources, worker_resources

DRIVER_CPUS = 0.1
"""The process that starts a run of several workers computes nothing itself."""
ASLEEP_BYTES, ASLEEP_SHARE = 450 * 2**20, 0.125
"""What a worker holds that has nothing to do, and the share of the node's memory that all of them may hold."""
PROBE = "raykd_probe"
"""A custom resource: a node that has it is kept quiet for measurements."""


@dataclass(frozen=True)
class Placements:
    """How much of each phase is done at the same time."""

    teachers: int
    precompute: int
    students: int


def preflight(resources: Resources, cluster: Topology) -> Placements:
    """What fits of each phase, on the nodes that there are and those that may be added.

    Raises:
        PlacementError: one of them cannot be placed; the arithmetic is shown.
    """
    found = Placements(
        concurrency(resources, cluster, "teachers"),
        readers(resources, cluster),
        concurrency(resources, cluster, "students"),
    )
    check_target(resources.latency, cluster)
    return found


def group_of(resources: Resources) -> Group:
    """What one run takes."""
    driver_cpus = DRIVER_CPUS if resources.uses_ray_train else 0.0
    return Group(worker_resources(resources), resources.workers, driver_cpus)


def concurrency(resources: Resources, cluster: Topology, role: RunRole = "students") -> int:
    """How many runs are done at once: as many as are asked for, else as many as fit. Where nodes were left out, as many
    as are asked for is the most.

    Raises:
        PlacementError: if one run, or as many as are asked for, cannot be placed.
    """
    own, section = resources.for_role(role), _section(resources, role)
    if own.uses_ray_train and not cluster.dashboard:
        alone = "resources.ray_train: false" if own.workers == 1 else f"{section}.workers: 1"
        raise PlacementError(
            f"{alone.partition(':')[0]}: Ray Train waits for Ray's dashboard, and it does not run. "
            f"Set {alone}, or start it (its log is dashboard.log in Ray's folder)"
        )
    group, most = group_of(own), cluster.grown
    fits = most.fits(group)
    if fits < 1:
        raise PlacementError(_nowhere(f"{section}: one run", section, group, cluster))
    wanted = own.concurrency
    if wanted is not None and wanted > fits and not cluster.left_out:
        short = _short(group.total, most, wanted)
        arithmetic = (
            _sum(short, group.total[short] * wanted, cluster, f"{wanted} × {group.total[short]:g} = ")
            if short
            else f"{wanted} × {group}, more than there is room for on {_nodes(cluster)}"
        )
        takes = f"{section}.concurrency: {wanted} runs at once take"
        raise PlacementError(f"{takes} {arithmetic}; set it to at most {fits}")
    return min(wanted or fits, fits)


def reader_group(resources: Resources) -> Group:
    """What one actor of precompute takes."""
    return Group(worker_resources(resources.precompute_actor))


def readers(resources: Resources, cluster: Topology) -> int:
    """How many actors of precompute there are: as many as are asked for, else as many as fit.

    Raises:
        PlacementError: if one of them, or as many as are asked for, cannot be placed.
    """
    own, group, most = resources.precompute_actor, reader_group(resources), cluster.grown
    fits, section = most.fits(group), _section(resources, "precompute")
    if fits < 1:
        raise PlacementError(_nowhere(f"{section}: one actor of precompute", section, group, cluster))
    if own.workers is not None and own.workers > fits and not cluster.left_out:
        written = resources.precompute is not None and resources.precompute.workers is not None
        key = "resources.precompute.workers" if written else "resources.precompute_workers"
        short = _short(group.total, most, own.workers)
        each = group.total[short] if short else 0.0
        arithmetic = (
            _sum(short, each * own.workers, cluster, f"{own.workers} × {each:g} = ")
            if short
            else f"{own.workers} × {group}, more than there is room for on {_nodes(cluster)}"
        )
        raise PlacementError(f"{key}: {arithmetic}; set it to at most {fits}")
    return min(own.workers or fits, fits)


def keeps_slots(resources: Resources, cluster: Topology) -> bool:
    """Whether the slots that train teachers wait for the trials, while the teachers' signals are computed and latency
    is measured. A slot takes 5 processor seconds to start.

    Slots hold their CPUs while they sleep, and Ray would place nothing else there. On the only node there is, they are
    used without asking Ray. On several, Ray has to count; a slot with a GPU holds its memory, too.
    """
    own, slots = resources.for_role("students"), concurrency(resources, cluster)
    if (
        own != resources.for_role("teachers")
        or own.gpus_per_worker
        or len(cluster.nodes) != 1
        or cluster.grows
    ):
        return False
    # Whatever is no CPU is not given twice.
    others = {
        *worker_resources(resources.precompute_actor),
        *(latency_resources(resources.latency) if resources.latency else ()),
    }
    if others & set(worker_resources(own)) - {"CPU"}:
        return False
    memory = cluster.nodes[0].resources.get("memory", math.inf)
    return slots * own.workers * ASLEEP_BYTES <= ASLEEP_SHARE * memory


def check_target(target: LatencyTarget | None, cluster: Topology) -> None:
    """Raises PlacementError where no node is one on which latency is to be measured."""
    if latency_node(target, cluster.grown) is not None:
        return
    if target is None:
        raise PlacementError(
            f"latency is measured on one CPU, and there is none: {_nodes(cluster)}{_growing(cluster)}"
        )
    labels = f" with the labels {dict(target.labels)}" if target.labels else ""
    raise PlacementError(
        f"resources.latency: no node has {shown(latency_resources(target))}{labels}: {_nodes(cluster)}; "
        f"change it, or omit it to measure on any node{_growing(cluster)}"
    )


def latency_node(target: LatencyTarget | None, cluster: Topology) -> Node | None:
    """The node on which latency is measured: the same one for the same cluster. None where there is none."""
    asks = [latency_resources(target)] if target is not None else [{"CPU": 1.0, PROBE: 1.0}, {"CPU": 1.0}]
    labels: Mapping[str, str] = target.labels if target is not None else {}
    for ask in asks:
        fit = [node for node in cluster.nodes if node.places(ask) and labels.items() <= node.labels.items()]
        if fit:
            return min(fit, key=lambda node: node.id)
    return None


def _section(resources: Resources, role: str) -> str:
    return "resources" if getattr(resources, role) is None else f"resources.{role}"


def _short(total: Mapping[str, float], cluster: Topology, many: int) -> str:
    """The resource of which all nodes together have too little; empty where only the nodes are too small."""
    shares = {name: cluster.total(name) / (amount * many) for name, amount in total.items()}
    scarce = min(shares, key=lambda name: shares[name])
    return scarce if shares[scarce] < 1 - TINY else ""


def _nowhere(what: str, section: str, group: Group, cluster: Topology) -> str:
    """Why not even one fits, and what to lower."""
    short, several = _short(group.total, cluster.grown, 1), group.workers > 1
    if short.startswith("accelerator_type:"):
        kinds = sorted(
            {name for node in cluster.grown.nodes for name in node.resources if "accelerator_type" in name}
        )
        others = ", ".join(kind.split(":", 1)[1] for kind in kinds) or "none"
        wanted = short.split(":", 1)[1]
        return f"{section}.accelerator_type: no node has {wanted} (there are: {others}){_growing(cluster)}"
    lower = f"lower {f'{section}.workers or ' if several else ''}{section}."
    if not short:
        small = min(
            group.each,
            key=lambda name: max(n.resources.get(name, 0.0) / group.each[name] for n in cluster.grown.nodes),
        )
        there = f"{_nodes(cluster)}, and a worker is placed whole on one of them"
        return f"{what} takes {group}; there are {there}; {lower}{_key(small)}{_growing(cluster)}"
    workers = f"{group.workers} workers" if several else "1 worker"
    driver = f" + {group.driver_cpus:g} for its driver" if group.driver_cpus and short == "CPU" else ""
    counted = f"{workers} × {group.each[short]:g} {_unit(short)}{driver} = "
    return f"{what} takes {_sum(short, group.total[short], cluster, counted)}; {lower}{_key(short)}{_growing(cluster)}"


def _sum(name: str, asked: float, cluster: Topology, counted: str) -> str:
    """`3 × 1 = 3 CPUs, the cluster has 2`."""
    more = f" and may grow to {cluster.grown.total(name):g}" if cluster.grows else ""
    return f"{counted}{asked:g} {_unit(name)}, the cluster has {cluster.total(name):g}{more}"


def _nodes(cluster: Topology) -> str:
    more = ", ".join(f"{each.most} × {shown(each.node.resources)}" for each in cluster.may_add if each.most)
    return f"nodes {cluster}" + (f", and it may add {more}" if more else "")


def _growing(cluster: Topology) -> str:
    """What to write for a cluster that is small now."""
    if cluster.grows or cluster.total("CPU"):
        return ""
    return " (where the cluster grows: resources.autoscale says what may be added)"


def _unit(name: str) -> str:
    return f"{name}s" if name in ("CPU", "GPU") else name


def _key(name: str) -> str:
    """The key of the sweep file that says how much of a resource a worker takes."""
    return {"CPU": "cpus_per_worker", "GPU": "gpus_per_worker"}.get(name, f"custom.{name}")
