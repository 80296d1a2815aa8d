"""Several workers under Ray Train, which live as long as their slot and take run after run.

Ray Train takes 17–32 s to start, so one `TorchTrainer` does the runs of a slot: what its workers execute is a loop over
runs. A run that is stopped or that fails by itself does not end them. When a worker dies, Ray Train starts all of them
again, and they take up the run in hand from its checkpoint.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import ray
import ray.train
import ray.train.torch
import torch
from ray.exceptions import RayError
from ray.train.torch import TorchConfig, TorchTrainer
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from typing_extensions import override

from raykd.cluster.mailbox import Mailbox
from raykd.cluster.nodes import elsewhere
from raykd.cluster.progress_channel import reported
from raykd.errors import RaykdError, RunError
from raykd.figures.results import RunResult
from raykd.identity import PlainObject
from raykd.recipes.resources import Resources, worker_resources
from raykd.recipes.run import Run
from raykd.redact import redact
from raykd.storage.store import Storage
from raykd.training.device import assigned_device
from raykd.training.epoch_report import EpochReport
from raykd.training.execute import execute_run, find_result, launcher_report
from raykd.training.worker import Worker

CLOSING_S = 8.0
"""Seconds for which a closing slot waits for its workers; a slot is killed ten seconds after it is asked to end."""


class TrainWorkers:
    """The workers of one slot; the constructor starts them."""

    def __init__(self, store_uri: str, resources: Resources, avoid: tuple[str, ...] = ()):
        """Start the workers.

        Args:
            store_uri: URI of the store.
            resources: Number and resources of the workers.
            avoid: Ids of nodes on which no worker may be placed.
        """
        self._store_uri, self._avoid = store_uri, avoid
        same_node: Any = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor: Any = ray.remote(num_cpus=0, scheduling_strategy=same_node)(Mailbox)
        self._mailbox = actor.remote(resources.workers, resources.max_failures)
        self._thread = threading.Thread(target=self._work, args=(resources,), daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """True while the workers can do runs."""
        return self._thread.is_alive()

    def do(self, run: Run, report: Callable[[PlainObject], None]) -> RunResult:
        """Execute a run on the workers.

        The run is stopped if `report` raises: the workers leave it when the next run is given.

        Args:
            run: The run.
            report: Called with the report of each epoch; the workers wait until it returns.

        Raises:
            RaykdError: the run or its node is at fault.
            RunError: the workers died more often than `resources.max_failures` during this run.
        """
        ray.get(self._mailbox.give.remote(run.to_plain()))
        heard = 0
        while True:
            kind, message = ray.get(self._mailbox.hear.remote(heard))
            if kind == "end":
                break
            report(message)
            heard += 1
        if message is not None:
            raise message
        result = find_result(Storage(self._store_uri), run)
        if result is None:
            raise RunError(f"{run.id}: its workers ended without a result")
        return result

    def close(self) -> None:
        """End the workers; a worker in the middle of an epoch ends with this process."""
        with suppress(RayError):
            ray.get(self._mailbox.close.remote())
        self._thread.join(CLOSING_S)

    def _work(self, resources: Resources) -> None:
        # Runs keep their checkpoints in the store themselves; Train has only its bookkeeping here.
        scratch, reason = tempfile.mkdtemp(prefix="raykd-train-"), "they ended"
        try:
            _trainer(self._store_uri, resources, self._mailbox, scratch, self._avoid).fit()
        except Exception as error:
            reason = _last_line(error)
        shutil.rmtree(scratch, ignore_errors=True)
        with suppress(RayError):
            ray.get(self._mailbox.gone.remote(reason))


def _trainer(
    store_uri: str, resources: Resources, mailbox: Any, scratch: str, avoid: tuple[str, ...]
) -> TorchTrainer:
    gpu = resources.gpus_per_worker > 0
    return TorchTrainer(
        _worker,
        train_loop_config={"store": store_uri, "resources": resources.model_dump(), "mailbox": mailbox},
        torch_config=TorchConfig(backend="nccl" if gpu else "gloo"),
        scaling_config=ray.train.ScalingConfig(
            num_workers=resources.workers,
            use_gpu=gpu,
            resources_per_worker=worker_resources(resources),
            label_selector=elsewhere(avoid) or None,
        ),
        run_config=ray.train.RunConfig(
            storage_path=scratch,
            callbacks=[_Failures(mailbox)],
            # The mailbox counts the failures of each run.
            failure_config=ray.train.FailureConfig(max_failures=-1, controller_failure_limit=3),
        ),
    )


class _Failures(ray.train.UserCallback):
    """Reports failed workers to the mailbox; Ray Train calls it before restarting them."""

    def __init__(self, mailbox: Any):
        self._mailbox = mailbox

    @override
    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        reason = _last_line(next(iter(worker_exceptions.values()), RuntimeError("a worker died")))
        ray.get(self._mailbox.failed.remote(reason))


def _worker(config: PlainObject) -> None:
    resources, mailbox = Resources(**config["resources"]), config["mailbox"]
    torch.set_num_threads(max(1, int(resources.cpus_per_worker)))
    context = ray.train.get_context()
    device = assigned_device(resources.gpus_per_worker)
    if device.type == "cuda":
        device = ray.train.torch.get_device()  # of several on its node, its own
    worker, number = Worker(context.get_world_rank(), context.get_world_size(), device), -1
    while (next_run := ray.get(mailbox.take.remote(number))) is not None:
        number, plain = next_run
        _execute(config["store"], Run.from_plain(plain), worker, mailbox, number)


class _StoppedError(Exception):
    """The current run was replaced by the next one."""


def _execute(store_uri: str, run: Run, worker: Worker, mailbox: Any, number: int) -> None:
    def report(epoch: EpochReport) -> None:
        plain_report = launcher_report(run, epoch) if worker.rank == 0 else None
        if not ray.get(mailbox.epoch.remote(number, epoch.epoch, plain_report)):
            raise _StoppedError

    try:
        with reported(run.id) if worker.rank == 0 else nullcontext():
            execute_run(store_uri, run, worker=worker, report=report)
    except _StoppedError:
        return
    except Exception as error:
        run_at_fault = isinstance(error, RaykdError)
        run_error = (
            error if run_at_fault else RunError(redact(f"{type(error).__name__}: {_last_line(error)}"))
        )
        if not ray.get(mailbox.leave.remote(number, worker.rank, run_error, run_at_fault=run_at_fault)):
            raise
    else:
        ray.get(mailbox.leave.remote(number, worker.rank, None))


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return redact(lines[-1].strip()) if lines else type(error).__name__
