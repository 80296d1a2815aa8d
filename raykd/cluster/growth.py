"""Waiting for the nodes that an autoscaler adds: each phase asks for what it needs, and says for what it waits."""

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
    """How the cluster is looked at and asked for more."""

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
    """How many of `group` the phase has room for: `at_once`, waiting for nodes where the cluster grows.

    After `minutes` the phase goes on with as many as there are, but none where it needs `exactly` as many as are asked
    for.

    Raises:
        PlacementError: the nodes did not come.
    """
    if not cluster.grows:
        return at_once
    way = autoscaler or Autoscaler()
    there = min(at_once, way.look().fits(group))
    if there == at_once:
        return at_once
    waiting, began = f"nodes for {phase}", way.clock()
    listener.begin(waiting, at_once, done=there)
    wanted = f"waiting for {at_once} × {group}"
    listener.note(f"{phase}: {wanted}: {there} of {at_once} there; the autoscaler is asked for them")
    try:
        way.ask(group.bundles * at_once)
        while there < at_once and way.clock() - began < 60 * minutes:
            way.pause(LOOK_S)
            now = min(at_once, way.look().fits(group))
            passed = way.clock() - began
            shown = f"{wanted}: {now} of {at_once} there, {passed / 60:.0f} min of at most {minutes:g}"
            if now > there:
                listener.advance(waiting, now - there, detail=shown)
            else:
                listener.detail(waiting, shown)
            there = now
    finally:
        # It would stand when this process has ended, and nodes that nobody uses with it.
        way.ask([])
    if there == at_once or (there and not exactly):
        if there < at_once:
            listener.warn(
                f"{phase}: {there} of {at_once} × {group} came in {minutes:g} min; going on with these"
            )
        listener.end(waiting, f"{there} × {group} there")
        return there
    raise PlacementError(
        f"{phase}: {at_once} × {group} asked of the autoscaler, {there} there after {minutes:g} min "
        f"(nodes {way.look()}); look at what it says (ray status), or raise resources.wait_minutes"
    )
