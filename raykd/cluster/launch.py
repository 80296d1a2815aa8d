"""Two launchers for the one training loop: inside this actor (one worker), or through Ray Train (several, DDP; one as
well with `resources.ray_train`).
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
    from raykd.cluster.group import Group


class Launcher:
    """Does one run after the other, from inside a slot. What it starts for the first one it keeps."""

    def __init__(self) -> None:
        self._group: Group | None = None

    def launch(
        self,
        store_uri: str,
        run: Run,
        resources: Resources,
        report: Callable[[PlainObject], None],
        avoid: tuple[str, ...] = (),
    ) -> RunResult:
        """Execute `run` with `resources.workers` workers, on none of the nodes to `avoid`; each epoch is passed to
        `report`.

        Starting Ray Train takes 17–32 s, a running actor almost nothing: so a single worker computes here.

        Raises:
            RunError: if the run's workers failed more often than `resources.max_failures`.
        """
        found = find_result(Storage(store_uri), run)
        if found is not None:
            return found
        if not resources.uses_ray_train:
            torch.set_num_threads(max(1, int(resources.cpus_per_worker)))
            gpus = resources.gpus_per_worker
            worker = Worker(device=assigned_device(gpus), share=gpus or 1.0)
            with reported(run.id):
                return execute_run(
                    store_uri, run, worker=worker, report=lambda epoch: report(launcher_report(run, epoch))
                )
        if self._group is None or not self._group.lives:
            from raykd.cluster.group import Group  # a single worker starts sooner without Ray Train

            self._group = Group(store_uri, resources, avoid)
        return self._group.do(run, report)

    def close(self) -> None:
        """End what was started."""
        if self._group is not None:
            self._group.close()
            self._group = None


LAUNCHER = Launcher()
"""That of this process: a slot."""
