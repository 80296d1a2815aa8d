"""The Ray cluster: connect to it or start it, and refuse what does not fit: Ray would wait for it for ever."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import floor
from typing import Any, cast
from urllib.parse import urlsplit

import ray
from ray._private import ray_constants
from ray._private import worker as ray_worker
from ray.exceptions import RayError

from raykd.errors import PlacementError
from raykd.runs.recipe import Resources

# The process that starts a run under Ray Train computes nothing itself.
DRIVER_CPUS = 0.1
PROBE = "raykd_probe"
VITAL = (ray_constants.PROCESS_TYPE_RAYLET, ray_constants.PROCESS_TYPE_GCS_SERVER)
WATCH_S = 0.5

# Train polls its workers every 2 s by default: the last report before a crash can be lost, and each run starts later.
ENVIRONMENT = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "60",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    # On Ctrl-C Tune would end its run as if everything were done.
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # PyTorch and oneDNN each keep a plan with its buffers for each shape of a matrix product, by default 1,024, and
    # batches have many: they grow to gigabytes while a teacher reads a corpus.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
    "LRU_CACHE_CAPACITY": "16",
}


@contextmanager
def connected(
    address: str | None = None, *, died: Callable[[str], None] = lambda problem: None
) -> Iterator[dict[str, float]]:
    """Connect to `address` (or $RAY_ADDRESS, or the job's cluster), or start Ray here; yields the cluster's resources.

    A cluster that was started here is shut down at the end; one that was joined is only left. `died` is called from
    another thread with what happened when Ray dies here: calls to it then wait for ever, or end this process after a
    minute without a word, so `died` has to end it.

    Raises:
        PlacementError: no cluster answers at `address`, or Ray does not start here.
    """
    if ray.is_initialized():
        yield _resources()
        return
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        with _sigterm_restored():
            _join(address) if address else _start()
        with nullcontext() if address else _watched(died):
            yield _resources()
    finally:
        ray.shutdown()


@contextmanager
def _watched(died: Callable[[str], None]) -> Iterator[None]:
    """Calls `died` when one of the two processes dies without which no other lives."""
    ended, node = threading.Event(), cast(Any, ray_worker._global_node)

    def watch() -> None:
        while not ended.wait(WATCH_S):
            dead = [kind for kind, _ in node.dead_processes() if kind in VITAL]
            if dead:
                node.kill_all_processes(check_alive=False, allow_graceful=False)
                died(
                    f"Ray's process {dead[0]} on this machine died, most often for lack of memory (its logs are in "
                    f"{node.get_logs_dir_path()})"
                )
                return

    thread = threading.Thread(target=watch, name="raykd-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _resources() -> dict[str, float]:
    return {name: float(amount) for name, amount in ray.cluster_resources().items()}


def _join(address: str) -> None:
    _check_answers(address)
    try:
        ray.init(address=address, runtime_env={"env_vars": ENVIRONMENT}, **_quietly())
    except (RuntimeError, ConnectionError, RayError) as error:
        hint = "a cluster with authentication needs RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN here"
        raise PlacementError(
            f"the Ray cluster at {address} cannot be joined ({_reason(error)}); {hint}"
        ) from error


def _start() -> None:
    """Start Ray on this machine, for this process alone: it listens on the loopback interface, and asks for a token
    that only the processes which come of this one have."""
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # the same, for Ray's own processes
    # Without a mode Ray chooses authentication by token, and with a token it writes none into the home folder.
    os.environ.pop("RAY_AUTH_MODE", None)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    how = {
        "num_cpus": int(os.environ.get("RAYKD_CPUS", os.cpu_count() or 1)),
        "resources": {PROBE: 1},
        # Train's placement-group cleaner polls the dashboard, and hangs without.
        "include_dashboard": True,
        "object_store_memory": 512 << 20,
    }
    for again in (True, False):
        try:
            ray.init(address="local", **how, **_quietly())
            return
        except (
            Exception
        ) as error:  # Ray raises many kinds, and Exception itself where a node starts too slowly
            ray.shutdown()
            if not again:
                raise PlacementError(
                    f"Ray does not start on this machine ({_reason(error)}); make room in its folder "
                    "($RAY_TMPDIR, else /tmp/ray), in /dev/shm and in memory"
                ) from error


def _quietly() -> dict[str, Any]:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("ray.data", "ray.tune", "ray.train"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return {"log_to_driver": False, "logging_level": logging.ERROR}


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _check_answers(address: str) -> None:
    """Refuse a host that does not answer: Ray would try for minutes."""
    where = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), timeout=10).close()
    except (OSError, ValueError) as error:
        raise PlacementError(
            f"no Ray cluster answers at {address} ({error}); check --address and $RAY_ADDRESS, "
            "or omit both to start Ray on this machine"
        ) from error


@contextmanager
def _sigterm_restored() -> Iterator[None]:
    """Restores the handler of SIGTERM, which Ray replaces when it starts by one that prints its stack."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def trial_cpus(resources: Resources) -> float:
    """CPUs that one run takes, its driver included."""
    work = resources.workers * resources.cpus_per_worker
    return work if resources.workers == 1 else work + DRIVER_CPUS


def concurrency(resources: Resources, cluster: dict[str, float]) -> int:
    """How many runs are done at once: as many as are asked for, else as many as fit.

    Raises:
        PlacementError: if one run, or as many as are asked for, cannot be placed; the arithmetic is shown.
    """
    asks = {"CPU": trial_cpus(resources), "GPU": resources.workers * resources.gpus_per_worker}
    fits = {unit: _fits(unit, one, cluster, resources) for unit, one in asks.items() if one}
    scarce = min(fits, key=lambda unit: fits[unit])
    wanted, one, there = resources.concurrency, asks[scarce], cluster.get(scarce, 0.0)
    if wanted is not None and wanted > fits[scarce]:
        raise PlacementError(
            f"resources.concurrency: {wanted} runs at once take {wanted} × {one:g} = {wanted * one:g} {scarce}s, "
            f"the cluster has {there:g}; set it to at most {fits[scarce]}"
        )
    return wanted or fits[scarce]


def _fits(unit: str, one: float, cluster: dict[str, float], resources: Resources) -> int:
    there = cluster.get(unit, 0.0)
    # A quotient such as 9.999999999999998 is 10.
    count = floor(there / one + 1e-9)
    if count < 1:
        each, several = f"{unit.lower()}s_per_worker", resources.workers > 1
        workers = f"{resources.workers} workers" if several else "1 worker"
        driver = f" + {DRIVER_CPUS:g} for its driver" if several and unit == "CPU" else ""
        raise PlacementError(
            f"resources: one run takes {workers} × {getattr(resources, each):g} {unit}s{driver} = {one:g} {unit}s, "
            f"the cluster has {there:g}; lower {'resources.workers or ' if several else ''}resources.{each}"
        )
    return count
