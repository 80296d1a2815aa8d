"""Two launchers for the one training loop: this process, or Ray Train.

One worker computes in this process. Several workers (DDP), and one with `resources.ray_train`, need Ray Train.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from raykd.cluster.progress_channel import reported
from raykd.figures.results import RunResult
from raykd.identity import PlainObject
from raykd.recipes.resources import Resources
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.device import assigned_device
from raykd.training.execute import execute_run, find_result, launcher_report
from raykd.training.worker import Worker

if TYPE_CHECKING:
    from raykd.cluster.group import TrainWorkers


class Launcher:
    """Executes one run after another inside a slot, and keeps the workers between runs."""

    def __init__(self) -> None:
        self._group: TrainWorkers | None = None

    def launch(
        self,
        store_uri: str,
        run: Run,
        resources: Resources,
        report: Callable[[PlainObject], None],
        avoid: tuple[str, ...] = (),
    ) -> RunResult:
        """Execute a run.

        Starting Ray Train takes 17–32 s and a running actor almost nothing, so a single worker computes in this
        process.

        Args:
            store_uri: URI of the store.
            run: The run.
            resources: Number and resources of the workers.
            report: Called with the report of each epoch.
            avoid: Ids of nodes on which no worker may be placed.

        Raises:
            RunError: the workers failed more often than `resources.max_failures`.
        """
        stored_result = find_result(Storage(store_uri), run)
        if stored_result is not None:
            return stored_result
        if not resources.uses_ray_train:
            torch.set_num_threads(max(1, int(resources.cpus_per_worker)))
            gpus = resources.gpus_per_worker
            worker = Worker(device=assigned_device(gpus), share=gpus or 1.0)
            with reported(run.id):
                return execute_run(
                    store_uri, run, worker=worker, report=lambda epoch: report(launcher_report(run, epoch))
                )
        if self._group is None or not self._group.lives:
            from raykd.cluster.group import TrainWorkers  # a single worker starts sooner without Ray Train

            self._group = TrainWorkers(store_uri, resources, avoid)
        return self._group.do(run, report)

    def close(self) -> None:
        """End the workers."""
        if self._group is not None:
            self._group.close()
            self._group = None


LAUNCHER = Launcher()
"""The launcher of this process, which is a slot."""
