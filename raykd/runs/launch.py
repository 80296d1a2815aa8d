"""Two launchers for the one training loop: inside this actor (one worker), or through Ray Train (several, DDP)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import ray.train
import ray.train.torch
import torch
from ray.train.torch import TorchConfig, TorchTrainer
from ray.tune.integration.ray_train import TuneReportCallback

from raykd.errors import RunError
from raykd.results import RunResult
from raykd.runs.distil import EpochReport, Worker
from raykd.runs.execute import execute, find_result
from raykd.runs.resources import Resources, taken
from raykd.runs.run import Run
from raykd.storage import Storage


def launch(
    store_uri: str, run: Run, resources: Resources, report: Callable[[dict[str, Any]], None]
) -> RunResult:
    """Execute `run` with `resources.workers` workers from inside a Tune trial; each epoch is passed to `report`.

    Starting Ray Train takes 17–32 s for each run, a running actor almost nothing: so a single worker computes here.

    Raises:
        RunError: if the run's workers failed more often than `resources.max_failures`.
    """
    found = find_result(Storage(store_uri), run)
    if found is not None:
        return found
    if resources.workers == 1:
        torch.set_num_threads(max(1, int(resources.cpus_per_worker)))
        worker = Worker(device=_device(resources.gpus_per_worker))
        return execute(store_uri, run, worker=worker, report=lambda epoch: report(_epoch_report(run, epoch)))
    return _through_ray_train(store_uri, run, resources)


def _through_ray_train(store_uri: str, run: Run, resources: Resources) -> RunResult:
    gpu = resources.gpus_per_worker > 0
    trainer = TorchTrainer(
        _worker,
        train_loop_config={"store": store_uri, "run": run.to_plain(), "resources": resources.model_dump()},
        torch_config=TorchConfig(backend="nccl" if gpu else "gloo"),
        scaling_config=ray.train.ScalingConfig(
            num_workers=resources.workers, use_gpu=gpu, resources_per_worker=taken(resources)
        ),
        run_config=ray.train.RunConfig(
            name=run.id,
            # The run keeps its checkpoints in the store itself; Train has only its bookkeeping here.
            storage_path=tempfile.mkdtemp(prefix="raykd-train-"),
            callbacks=[TuneReportCallback()],
            failure_config=ray.train.FailureConfig(
                max_failures=resources.max_failures, controller_failure_limit=3
            ),
        ),
    )
    try:
        trainer.fit()
    except Exception as error:
        raise RunError(f"{run.id}: its {resources.workers} workers failed: {_last_line(error)}") from error
    result = find_result(Storage(store_uri), run)
    if result is None:
        raise RunError(f"{run.id}: its workers ended without a result")
    return result


def _worker(config: dict[str, Any]) -> None:
    resources = Resources(**config["resources"])
    torch.set_num_threads(max(1, int(resources.cpus_per_worker)))
    context = ray.train.get_context()
    worker = Worker(context.get_world_rank(), context.get_world_size(), _device(resources.gpus_per_worker))
    run = Run.from_plain(config["run"])
    execute(
        config["store"],
        run,
        worker=worker,
        report=lambda epoch: ray.train.report(_epoch_report(run, epoch)),
    )


def _epoch_report(run: Run, epoch: EpochReport) -> dict[str, Any]:
    """What is reported of an epoch: its metrics below one key, apart from what Tune adds beside it."""
    return {"epoch_report": epoch.metrics(), "run_id": run.id}


def _device(gpus: float) -> torch.device:
    if gpus and torch.cuda.is_available():
        return ray.train.torch.get_device() if torch.distributed.is_initialized() else torch.device("cuda")
    return torch.device("cpu")


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
