"""Wait for nodes from an autoscaler: each phase requests the nodes it needs, and reports the wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from raykd.cluster import connection as ray_cluster
from raykd.cluster.listener import Listener
from raykd.cluster.topology import Group, Topology
from raykd.errors import PlacementError

LOOK_S = 2.0
"""Seconds between two looks at the cluster."""


@dataclass(frozen=True)
class Autoscaler:
    """Access to a growing cluster: look at it, request nodes, wait. Tests replace the fields."""

    look: Callable[[], Topology] = field(default_factory=lambda: ray_cluster.topology)
    ask: Callable[[Sequence[Mapping[str, float]]], None] = field(default_factory=lambda: ray_cluster.ask_for)
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def wait_for_slots(
    phase: str,
    group: Group,
    at_once: int,
    cluster: Topology,
    listener: Listener,
    *,
    minutes: float,
    exactly: bool = False,
    autoscaler: Autoscaler | None = None,
) -> int:
    """Wait until the cluster has room for the groups of a phase.

    Args:
        phase: Name of the phase, for messages.
        group: Workers that are placed together.
        at_once: Number of groups that should run at the same time.
        cluster: The cluster at the start of the sweep.
        listener: Shows the wait.
        minutes: Longest wait.
        exactly: If True, fewer groups than `at_once` do not suffice.
        autoscaler: Replaces the access to the cluster in tests.

    Returns:
        The number of groups that have room, at most `at_once`.

    Raises:
        PlacementError: too few nodes came in time.
    """
    if not cluster.grows:
        return at_once
    way = autoscaler or Autoscaler()
    available = min(at_once, way.look().fits(group))
    if available == at_once:
        return at_once
    waiting, began = f"nodes for {phase}", way.clock()
    listener.begin(waiting, at_once, done_before=available)
    wait_text = f"waiting for {at_once} × {group}"
    listener.note(f"{phase}: {wait_text}: {available} of {at_once} there; the autoscaler is asked for them")
    try:
        way.ask(group.bundles * at_once)
        while available < at_once and way.clock() - began < 60 * minutes:
            way.pause(LOOK_S)
            now = min(at_once, way.look().fits(group))
            passed = way.clock() - began
            detail = f"{wait_text}: {now} of {at_once} there, {passed / 60:.0f} min of at most {minutes:g}"
            if now > available:
                listener.advance(waiting, now - available, detail=detail)
            else:
                listener.detail(waiting, detail)
            available = now
    finally:
        # It would stand when this process has ended, and nodes that nobody uses with it.
        way.ask([])
    if available == at_once or (available and not exactly):
        if available < at_once:
            listener.warn(
                f"{phase}: {available} of {at_once} × {group} came in {minutes:g} min; going on with these"
            )
        listener.end(waiting, f"{available} × {group} there")
        return available
    raise PlacementError(
        f"{phase}: {at_once} × {group} asked of the autoscaler, {available} there after {minutes:g} min "
        f"(nodes {way.look()}); look at what it says (ray status), or raise resources.wait_minutes"
    )
