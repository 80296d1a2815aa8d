"""The placement of the phases of a sweep: a phase that does not fit is refused before anything is computed.

Ray would wait for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from raykd.cluster.topology import TINY, Group, Node, Topology, shown
from raykd.errors import PlacementError
from raykd.recipes.resources import LatencyTarget, Resources, RunRole, latency_resources, worker_resources

DRIVER_CPUS = 0.1
"""CPUs of the process that starts a run of several workers; it computes nothing itself."""
ASLEEP_BYTES, ASLEEP_SHARE = 450 * 2**20, 0.125
"""Bytes of memory held by an idle worker, and the share of the node's memory that all of them may hold."""
PROBE = "raykd_probe"
"""A custom resource: a node that has it is kept quiet for measurements."""


@dataclass(frozen=True)
class Placements:
    """Number of simultaneous runs, or actors, in every phase."""

    teachers: int
    precompute: int
    students: int


def preflight(resources: Resources, cluster: Topology) -> Placements:
    """Count the runs and actors that fit in every phase, on present nodes and on nodes that may be added.

    Args:
        resources: Resources of the sweep.
        cluster: Nodes of the cluster.

    Raises:
        PlacementError: a phase cannot be placed; the message shows the arithmetic.
    """
    placements = Placements(
        concurrency(resources, cluster, "teachers"),
        readers(resources, cluster),
        concurrency(resources, cluster, "students"),
    )
    check_target(resources.latency, cluster)
    return placements


def group_of(resources: Resources) -> Group:
    """Return the group of workers of one run.

    Args:
        resources: Resources of one run.
    """
    driver_cpus = DRIVER_CPUS if resources.uses_ray_train else 0.0
    return Group(worker_resources(resources), resources.workers, driver_cpus)


def concurrency(resources: Resources, cluster: Topology, role: RunRole = "students") -> int:
    """Return the number of simultaneous runs: the requested number, else as many as fit.

    If nodes were left out, the requested number is only an upper bound.

    Args:
        resources: Resources of the sweep.
        cluster: Nodes of the cluster.
        role: Role of the runs.

    Raises:
        PlacementError: one run, or the requested number, cannot be placed.
    """
    role_resources, section = resources.for_role(role), _section(resources, role)
    if role_resources.uses_ray_train and not cluster.dashboard:
        alone = "resources.ray_train: false" if role_resources.workers == 1 else f"{section}.workers: 1"
        raise PlacementError(
            f"{alone.partition(':')[0]}: Ray Train waits for Ray's dashboard, and it does not run. "
            f"Set {alone}, or start it (its log is dashboard.log in Ray's folder)"
        )
    group, grown = group_of(role_resources), cluster.grown
    fits = grown.fits(group)
    if fits < 1:
        raise PlacementError(_nowhere(f"{section}: one run", section, group, cluster))
    requested = role_resources.concurrency
    if requested is not None and requested > fits and not cluster.left_out:
        short = _short(group.total, grown, requested)
        arithmetic = (
            _sum(short, group.total[short] * requested, cluster, f"{requested} × {group.total[short]:g} = ")
            if short
            else f"{requested} × {group}, more than there is room for on {_nodes(cluster)}"
        )
        takes = f"{section}.concurrency: {requested} runs at once take"
        raise PlacementError(f"{takes} {arithmetic}; set it to at most {fits}")
    return min(requested or fits, fits)


def reader_group(resources: Resources) -> Group:
    """Return the group for one actor of precompute.

    Args:
        resources: Resources of the sweep.
    """
    return Group(worker_resources(resources.precompute_actor))


def readers(resources: Resources, cluster: Topology) -> int:
    """Return the number of actors of precompute: the requested number, else as many as fit.

    Args:
        resources: Resources of the sweep.
        cluster: Nodes of the cluster.

    Raises:
        PlacementError: one actor, or the requested number, cannot be placed.
    """
    actor, group, grown = resources.precompute_actor, reader_group(resources), cluster.grown
    fits, section = grown.fits(group), _section(resources, "precompute")
    if fits < 1:
        raise PlacementError(_nowhere(f"{section}: one actor of precompute", section, group, cluster))
    if actor.workers is not None and actor.workers > fits and not cluster.left_out:
        written = resources.precompute is not None and resources.precompute.workers is not None
        key = "resources.precompute.workers" if written else "resources.precompute_workers"
        short = _short(group.total, grown, actor.workers)
        amount = group.total[short] if short else 0.0
        arithmetic = (
            _sum(short, amount * actor.workers, cluster, f"{actor.workers} × {amount:g} = ")
            if short
            else f"{actor.workers} × {group}, more than there is room for on {_nodes(cluster)}"
        )
        raise PlacementError(f"{key}: {arithmetic}; set it to at most {fits}")
    return min(actor.workers or fits, fits)


def keeps_slots(resources: Resources, cluster: Topology) -> bool:
    """Return True if the slots of the teachers' phase are kept for the trials.

    They sleep while signals are computed and latency is measured; starting a slot again takes 5 processor seconds.
    Sleeping slots hold their CPUs, and Ray would place nothing else there. On a single node these CPUs are used
    without asking Ray. On several nodes Ray has to count; and a sleeping slot with a GPU holds GPU memory.

    Args:
        resources: Resources of the sweep.
        cluster: Nodes of the cluster.
    """
    student, slots = resources.for_role("students"), concurrency(resources, cluster)
    if (
        student != resources.for_role("teachers")
        or student.gpus_per_worker
        or len(cluster.nodes) != 1
        or cluster.grows
    ):
        return False
    # Whatever is no CPU is not given twice.
    shared = {
        *worker_resources(resources.precompute_actor),
        *(latency_resources(resources.latency) if resources.latency else ()),
    }
    if shared & set(worker_resources(student)) - {"CPU"}:
        return False
    memory = cluster.nodes[0].resources.get("memory", math.inf)
    return slots * student.workers * ASLEEP_BYTES <= ASLEEP_SHARE * memory


def check_target(target: LatencyTarget | None, cluster: Topology) -> None:
    """Refuse a target of latency measurements without a node.

    Args:
        target: The node on which to measure; None: any.
        cluster: Nodes of the cluster.

    Raises:
        PlacementError: no node meets it.
    """
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
    """Return the node for measuring latency, the same one for the same cluster.

    Args:
        target: Resources and labels of the node; None: any node, best one with the resource `raykd_probe`.
        cluster: Nodes of the cluster.

    Returns:
        None if no node meets the target.
    """
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
    """The scarcest resource of all nodes together; empty if only the single nodes are too small."""
    shares = {name: cluster.total(name) / (amount * many) for name, amount in total.items()}
    scarce = min(shares, key=lambda name: shares[name])
    return scarce if shares[scarce] < 1 - TINY else ""


def _nowhere(subject: str, section: str, group: Group, cluster: Topology) -> str:
    """A message for a group without a place, with the resource to lower."""
    short, several = _short(group.total, cluster.grown, 1), group.workers > 1
    if short.startswith("accelerator_type:"):
        kinds = sorted(
            {name for node in cluster.grown.nodes for name in node.resources if "accelerator_type" in name}
        )
        accelerators = ", ".join(kind.split(":", 1)[1] for kind in kinds) or "none"
        accelerator = short.split(":", 1)[1]
        return f"{section}.accelerator_type: no node has {accelerator} (there are: {accelerators}){_growing(cluster)}"
    lower = f"lower {f'{section}.workers or ' if several else ''}{section}."
    if not short:
        small = min(
            group.worker_bundle,
            key=lambda name: max(
                n.resources.get(name, 0.0) / group.worker_bundle[name] for n in cluster.grown.nodes
            ),
        )
        nodes = f"{_nodes(cluster)}, and a worker is placed whole on one of them"
        return f"{subject} takes {group}; there are {nodes}; {lower}{_key(small)}{_growing(cluster)}"
    workers = f"{group.workers} workers" if several else "1 worker"
    driver = f" + {group.driver_cpus:g} for its driver" if group.driver_cpus and short == "CPU" else ""
    counted = f"{workers} × {group.worker_bundle[short]:g} {_unit(short)}{driver} = "
    arithmetic = _sum(short, group.total[short], cluster, counted)
    return f"{subject} takes {arithmetic}; {lower}{_key(short)}{_growing(cluster)}"


def _sum(name: str, requested: float, cluster: Topology, counted: str) -> str:
    """`3 × 1 = 3 CPUs, the cluster has 2`."""
    more = f" and may grow to {cluster.grown.total(name):g}" if cluster.grows else ""
    return f"{counted}{requested:g} {_unit(name)}, the cluster has {cluster.total(name):g}{more}"


def _nodes(cluster: Topology) -> str:
    more = ", ".join(
        f"{node_type.max_nodes} × {shown(node_type.node.resources)}"
        for node_type in cluster.may_add
        if node_type.max_nodes
    )
    return f"nodes {cluster}" + (f", and it may add {more}" if more else "")


def _growing(cluster: Topology) -> str:
    """A hint for a growing cluster without CPUs."""
    if cluster.grows or cluster.total("CPU"):
        return ""
    return " (where the cluster grows: resources.autoscale says what may be added)"


def _unit(name: str) -> str:
    return f"{name}s" if name in ("CPU", "GPU") else name


def _key(name: str) -> str:
    """The key of the sweep file for a resource of a worker."""
    return {"CPU": "cpus_per_worker", "GPU": "gpus_per_worker"}.get(name, f"custom.{name}")
