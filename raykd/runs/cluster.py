"""Meeting the cluster: connect, say what it has, and refuse what cannot be placed before Ray waits for it for ever."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor

import ray

from raykd.errors import PlacementError
from raykd.runs.recipe import Resources

# A trial that leads its own Ray Train run computes nothing itself.
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
        ray.init(address=address, runtime_env={"env_vars": ENVIRONMENT}, **quiet)
        return
    # Ray asks for a token since 2.60; a cluster that only this process can reach needs none.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    # The dashboard stays on: Train's placement-group cleaner polls it, and hangs without.
    ray.init(
        num_cpus=int(os.environ.get("RAYKD_CPUS", os.cpu_count() or 1)), resources={PROBE: 1}, include_dashboard=True,
        object_store_memory=512 << 20, **quiet,
    )  # fmt: skip


def trial_cpus(resources: Resources) -> float:
    """CPUs that one run takes, its driver included."""
    work = resources.workers * resources.cpus_per_worker
    return work if resources.workers == 1 else work + DRIVER_CPUS


def concurrency(resources: Resources, cluster: dict[str, float]) -> int:
    """How many runs go at once: what is asked for, or what fits.

    Raises:
        PlacementError: if one run, or as many as are asked for, cannot be placed; the arithmetic is shown.
    """
    fits = _fits(trial_cpus(resources), cluster.get("CPU", 0.0), "CPUs", resources.cpus_per_worker, resources)
    gpus = resources.workers * resources.gpus_per_worker
    if gpus:
        fits = min(fits, _fits(gpus, cluster.get("GPU", 0.0), "GPUs", resources.gpus_per_worker, resources))
    wanted = resources.concurrency
    if wanted is not None and wanted > fits:
        raise PlacementError(
            f"resources.concurrency: {wanted} runs at once take {wanted} × {trial_cpus(resources):g} = "
            f"{wanted * trial_cpus(resources):g} CPUs, the cluster has {cluster.get('CPU', 0.0):g}; "
            f"set it to at most {fits}"
        )
    return wanted or fits


def _fits(one: float, there: float, unit: str, each: float, resources: Resources) -> int:
    count = floor(there / one + 1e-9)
    if count < 1:
        raise PlacementError(
            f"resources: one run takes {resources.workers} workers × {each:g} {unit}"
            f"{' + 0.1 for its driver' if unit == 'CPUs' and resources.workers > 1 else ''} = {one:g} {unit}, "
            f"the cluster has {there:g}; lower resources.workers or resources.{unit[:3].lower()}s_per_worker"
        )
    return count
