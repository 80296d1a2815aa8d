"""The Ray cluster: connect to it or start it, and refuse what does not fit: Ray would wait for it for ever."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor
from urllib.parse import urlsplit

import ray

from raykd.errors import PlacementError
from raykd.runs.recipe import Resources

# The process that starts a run under Ray Train computes nothing itself.
DRIVER_CPUS = 0.1
PROBE = "raykd_probe"

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
}


@contextmanager
def connected(address: str | None = None) -> Iterator[dict[str, float]]:
    """Connect to `address` (or $RAY_ADDRESS, or the job's cluster), or start Ray here; yields the cluster's resources.

    A cluster that was started here is shut down at the end; one that was joined is only left.
    """
    if ray.is_initialized():
        yield _resources()
        return
    with _sigterm_restored():
        _start(address or os.environ.get("RAY_ADDRESS"))
    try:
        yield _resources()
    finally:
        ray.shutdown()


def _resources() -> dict[str, float]:
    return {name: float(amount) for name, amount in ray.cluster_resources().items()}


def _start(address: str | None) -> None:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in ("ray.data", "ray.tune", "ray.train"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        _check_answers(address)
        ray.init(address=address, runtime_env={"env_vars": ENVIRONMENT}, **quiet)
        return
    # Ray requires a token since 2.60; a cluster that only this process can reach needs none.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    # The dashboard stays on: Train's placement-group cleaner polls it, and hangs without.
    cpus = int(os.environ.get("RAYKD_CPUS", os.cpu_count() or 1))
    ray.init(
        num_cpus=cpus,
        resources={PROBE: 1},
        include_dashboard=True,
        object_store_memory=512 << 20,
        **quiet,
    )


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
