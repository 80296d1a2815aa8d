"""Fixtures and settings of all tests: checked annotations, and one small Ray cluster."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

# Before anything imports torch: its threads would compete for two cores over tensors of a few numbers.
os.environ["OMP_NUM_THREADS"] = "1"
# Ray's workers are as nice as the tests: 15 nicer, they get next to nothing of a processor that others want.
os.environ.update(RAY_worker_niceness="0")

import pytest
import pytest_timeout
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests import shape_checks
from tests.patience import Alarm

shape_checks.install()

# No deadline: how long an example takes says more about the machine's other work than about raykd.
settings.register_profile("raykd", deadline=None, print_blob=True)
settings.load_profile("raykd")

ROOT = Path(__file__).resolve().parents[1]

LONGEST = ("end_to_end", "training", "cluster", "precompute", "sweep")
"""Folders whose tests take longest, in this order: with several processes they are started first."""

RAY_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",  # a private cluster; no token lies on the machine that runs the tests
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",  # the last report before a crash is lost at 2 s
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "1200",  # no busy machine is to be told from one that hangs
    "RAY_worker_register_timeout_seconds": "1200",
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "1",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),  # workers import the tests' own helpers by name
}


def pytest_configure() -> None:
    """Switch off the telemetry of libraries."""
    from raykd.cluster.environment import (
        TELEMETRY_OFF,
        set_defaults,
    )  # shape checks are installed before any of raykd

    set_defaults(TELEMETRY_OFF)


class Scheduling(LoadScopeScheduling):
    """Distribute the tests over processes: all files that use the shared cluster go to one process.

    Each of the remaining files goes to one process as a whole, with its fixtures.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return "ray_cluster" if _uses_cluster(ROOT / file) else file


@cache
def _uses_cluster(file: Path) -> bool:
    return "ray_cluster" in file.read_text()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="skip the tests that are marked slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: Any, settings: Any) -> bool | None:
    """Count a test's timeout in seconds of a quiet machine."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    signal.signal(signal.SIGALRM, lambda number, frame: pytest_timeout.timeout_sigalrm(item, settings))
    item._alarm = Alarm(settings.timeout)

    def cancel() -> None:
        item._alarm.cancel()
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    item.cancel_timeout = cancel
    return True


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on the load of the machine."""
    from raykd.precompute import machine_load

    monkeypatch.setattr(machine_load, "SAMPLE_S", 0.0)
    monkeypatch.setattr(machine_load.LoadMeter, "share", lambda meter: 0.0)
    # Importing it takes seconds, for Ray.
    if nodes := sys.modules.get("raykd.cluster.nodes"):
        monkeypatch.setattr(nodes, "ANSWER_S", 1200.0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start the longest tests first, so that no process has one left at the end."""

    def order(item: pytest.Item) -> tuple[bool, int]:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        return not _uses_cluster(item.path), (*LONGEST, folder).index(folder)

    items.sort(key=order)
    if config.getoption("--quick"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: make test-all runs it"))


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[str]:
    """A local Ray cluster of 4 logical CPUs, shut down with all its processes at the end; its address.

    The dashboard is on: Train's placement-group cleaner asks it, and waits for ever where there is none.
    """
    import ray

    if ray.is_initialized():
        raise RuntimeError("a test started Ray by itself before the shared cluster; it must shut it down")
    previous = {name: os.environ.get(name) for name in RAY_ENVIRONMENT}
    os.environ.update(RAY_ENVIRONMENT)
    _start_ray()
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()
        for name, value in previous.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _start_ray() -> None:
    """Start Ray; try again where it gives up, as it does after 30 s on a busy machine."""
    import ray

    for tries_left in (3, 2, 1, 0):
        try:
            ray.init(
                address="local",  # never a cluster that happens to run here
                num_cpus=4,
                num_gpus=0,
                include_dashboard=True,
                dashboard_port=0,
                log_to_driver=False,
                logging_level="error",
                object_store_memory=256 * 2**20,
            )
            return
        # Ray raises Exception itself where a node starts too slowly.
        except Exception:
            ray.shutdown()
            if not tries_left:
                raise


@pytest.fixture
def full_ray_cluster(ray_cluster: str) -> Iterator[str]:
    """The shared cluster with all CPUs reserved."""
    import ray
    from ray.util import placement_group, remove_placement_group

    reservation = placement_group([{"CPU": ray.cluster_resources()["CPU"]}])
    ray.get(reservation.ready())
    yield ray_cluster
    remove_placement_group(reservation)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The small recipe, prepared; its store also holds three best paths and hidden states of layer 1."""
    from tests.training.small import prepared, recipe

    folder = str(tmp_path_factory.mktemp("small") / "store")
    objectives = ({"kind": "top_wk", "k": 3}, {"kind": "representation", "layer": 1})
    return prepared(folder, recipe(), *(recipe(objective=objective) for objective in objectives))


@pytest.fixture(scope="session")
def empty_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with MLflow's empty tables, to be copied: making them takes seconds."""
    from raykd.tracking.server import check_server

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    check_server(f"sqlite:///{path}")
    return path
