"""The Ray cluster: connect to it or start it, see its nodes, and ask it for more of them."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

import ray
from ray._common.utils import get_default_system_temp_dir
from ray._private import ray_constants
from ray._private import state as ray_state
from ray._private import worker as ray_worker
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError
from ray.util.client import ray as ray_client

from raykd.cluster.background import repeated
from raykd.cluster.environment import RAY, TELEMETRY_OFF, set_defaults, worker_variables
from raykd.cluster.placement import PROBE
from raykd.cluster.topology import Node, Topology, nodes_of, still_added, types_of
from raykd.errors import PlacementError
from raykd.recipes.resources import AddedNodes, Resources, worker_resources

VITAL = (ray_constants.PROCESS_TYPE_RAYLET, ray_constants.PROCESS_TYPE_GCS_SERVER)
WATCH_S = 0.5


@contextmanager
def connected(
    address: str | None = None,
    *,
    autoscale: Sequence[AddedNodes] = (),
    died: Callable[[str], None] = lambda problem: None,
) -> Iterator[Topology]:
    """Connect to a Ray cluster, or start Ray on this machine; yields the topology of the cluster.

    A cluster started here is shut down at the end; a cluster that was joined is only left. When Ray dies here, later
    calls to it wait for ever, or end this process after a minute without a message: `died` has to end the process.

    Args:
        address: Address of the cluster. None: $RAY_ADDRESS, the cluster of the job, or else a new one on this machine.
        autoscale: Nodes that a joined cluster may add, in case Ray does not tell.
        died: Called from another thread with a message when Ray dies on this machine.

    Raises:
        PlacementError: no cluster answers at `address`, or Ray does not start here.
    """
    if ray.is_initialized():
        yield topology(autoscale)
        return
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        with _sigterm_restored():
            dashboard = _join(address) if address else _start()
        with nullcontext() if address else _watched(died):
            yield replace(topology(autoscale if address else ()), dashboard=dashboard)
    finally:
        ray.shutdown()


def own_machine(resources: Resources, address: str | None) -> Topology | None:
    """Topology of a Ray on the local machine, found without starting Ray.

    Args:
        resources: Resources of the sweep.
        address: Address of a cluster, as for `connected`.

    Returns:
        None if a cluster is joined, or if resources other than CPUs are requested, which only Ray can detect.
    """
    roles = (resources.for_role("teachers"), resources.for_role("students"), resources.precompute_actor)
    requested = {name for role in roles for name in worker_resources(role)}
    joined = address or os.environ.get("RAY_ADDRESS") or ray.is_initialized()
    if joined or requested != {"CPU"} or resources.latency is not None:
        return None
    return Topology.of({"CPU": float(_cpus()), PROBE: 1.0})


def _cpus() -> int:
    return int(os.environ.get("RAYKD_CPUS", os.cpu_count() or 1))


@contextmanager
def _watched(died: Callable[[str], None]) -> Iterator[None]:
    """Call `died` when one of Ray's two vital processes on the local machine dies."""
    node = cast(Any, ray_worker._global_node)

    def watch() -> bool:
        dead = [kind for kind, _ in node.dead_processes() if kind in VITAL]
        if dead:
            node.kill_all_processes(check_alive=False, allow_graceful=False)
            died(
                f"Ray's process {dead[0]} on this machine died, most often for lack of memory (its logs are in "
                f"{node.get_logs_dir_path()})"
            )
        return bool(dead)

    with repeated(watch, WATCH_S, name="raykd-watch"):
        yield


def topology(autoscale: Sequence[AddedNodes] = (), *, without: Sequence[str] = ()) -> Topology:
    """Current topology of the cluster.

    Args:
        autoscale: Nodes that the cluster may add; if empty, those known to Ray's autoscaler.
        without: Ids of nodes to leave out.
    """
    nodes = tuple(node for node in nodes_of(ray.nodes()) if node.id not in without)
    if autoscale:
        return Topology(nodes, still_added([(Node(added.node), added.most) for added in autoscale], nodes))
    if ray_client.is_connected():  # the state of the cluster is not reached through Ray's client
        return Topology(nodes)
    # Ray Data asks the same way; Ray has no public one.
    config = ray_state.state.get_cluster_config()
    groups = config.node_group_configs if config is not None else ()
    return Topology(nodes, types_of([(group.resources, group.max_count) for group in groups], nodes))


def ask_for(bundles: Sequence[Mapping[str, float]]) -> None:
    """Request nodes for bundles from the autoscaler.

    A request stays until the next one: end it with an empty one.
    """
    request_resources(bundles=[dict(bundle) for bundle in bundles])


def _join(address: str) -> bool:
    """Join a cluster; return True if its dashboard runs."""
    _check_answers(address)
    options = _quietly()
    try:
        context = ray.init(address=address, runtime_env={"env_vars": worker_variables()}, **options)
        return bool(context.dashboard_url)
    except (RuntimeError, ConnectionError, RayError) as error:
        hint = "a cluster with authentication needs RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN here"
        raise PlacementError(
            f"the Ray cluster at {address} cannot be joined ({_reason(error)}); {hint}"
        ) from error


def _start() -> bool:
    """Start Ray for the present process alone; return True if its dashboard runs.

    Ray listens on the loopback interface, and requires a token known only to this process and its children. If the
    dashboard does not start, Ray is started without it.
    """
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # the same, for Ray's own processes
    # Without a mode Ray chooses authentication by token, and with a token it writes none into the home folder.
    os.environ.pop("RAY_AUTH_MODE", None)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    options = {
        "num_cpus": _cpus(),
        "resources": {PROBE: 1},
        "object_store_memory": 512 << 20,
    }
    # Train's placement-group cleaner polls the dashboard, and hangs without.
    dashboard, tries = True, 2
    while True:
        try:
            ray.init(address="local", include_dashboard=dashboard, **options, **_quietly())
            return dashboard
        except (
            Exception
        ) as error:  # Ray raises many kinds, and Exception itself where a node starts too slowly
            ray.shutdown()
            if "AF_UNIX path" in str(error):
                raise PlacementError(_path_too_long()) from error
            tries, dashboard = tries - 1, "dashboard" not in str(error).lower()
            if not tries:
                raise PlacementError(
                    f"Ray does not start on this machine ({_reason(error)}); make room in its folder "
                    "($RAY_TMPDIR, else /tmp/ray), in /dev/shm and in memory"
                ) from error


def _path_too_long() -> str:
    folder = get_default_system_temp_dir()
    origin = next(
        (f"${name}" for name in ("RAY_TMPDIR", "TMPDIR") if os.environ.get(name) == folder), "its default"
    )
    return (
        f"Ray does not start on this machine: the path of its temporary folder, {folder} ({origin}), has "
        f"{len(os.fsencode(folder))} bytes, and those of its sockets below are longer than the system allows; set "
        "RAY_TMPDIR to a folder with a short path: RAY_TMPDIR=/tmp"
    )


def _quietly() -> dict[str, Any]:
    set_defaults(TELEMETRY_OFF)
    set_defaults(RAY)
    for name in ("ray.data", "ray.tune", "ray.train"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return {"log_to_driver": False, "logging_level": logging.ERROR}


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _check_answers(address: str) -> None:
    """Refuse a silent host; Ray would try for minutes."""
    url = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        if url.hostname and url.port:
            socket.create_connection((url.hostname, url.port), timeout=10).close()
    except (OSError, ValueError) as error:
        raise PlacementError(
            f"no Ray cluster answers at {address} ({error}); check --address and $RAY_ADDRESS, "
            "or omit both to start Ray on this machine"
        ) from error


@contextmanager
def _sigterm_restored() -> Iterator[None]:
    """Restore the handler of SIGTERM; Ray replaces it at its start by one that prints a stack trace."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
