"""The gain of training the models of a sweep on GPUs, from training steps that were timed on both processors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raykd.cluster.placement import group_of
from raykd.cluster.topology import Topology
from raykd.figures.table import TRAINING_SPEED, TRAINING_SPEED_GPU
from raykd.recipes.resources import RunRole
from raykd.recipes.run import Run
from raykd.sweep.sweep import Sweep
from raykd.training.model_folder import is_trained

ROLES: tuple[RunRole, ...] = ("teachers", "students")


@dataclass(frozen=True)
class GpuGain:
    """The training speed of one model, in pieces per second over all runs that run at once.

    Attributes:
        on_gpus: Speed on GPUs, at most: runs that share a GPU are assumed as fast as a run with a whole one.
        on_cores: Speed of as many runs as fit on the CPU cores.
    """

    role: RunRole
    run: Run
    on_gpus: float
    on_cores: float

    @property
    def pays(self) -> bool:
        """True if training on GPUs is faster."""
        return self.on_gpus > self.on_cores


def trains_on_gpus(sweep: Sweep) -> bool:
    """True if any model of the sweep is trained on GPUs.

    Args:
        sweep: The sweep.
    """
    return any(sweep.file.resources.for_role(role).gpus_per_worker for role in ROLES)


def gpu_gains(sweep: Sweep, cluster: Topology) -> Iterator[GpuGain]:
    """Yield the gains of the shapes trained and timed on GPUs.

    Args:
        sweep: The sweep.
        cluster: The nodes and their resources.
    """
    trained = {
        "teachers": [run for _, run in sweep.members if is_trained(run)],
        "students": sweep.shapes(),
    }
    for role in ROLES:
        resources = sweep.file.resources.for_role(role)
        if not resources.gpus_per_worker:
            continue
        without = resources.model_copy(update={"gpus_per_worker": 0.0, "accelerator_type": None})
        on_gpus, on_cores = (cluster.grown.fits(group_of(kind)) for kind in (resources, without))
        limit = resources.concurrency or max(on_gpus, on_cores)
        for run in trained[role]:
            speeds = sweep.cost(run).figures
            if TRAINING_SPEED.name in speeds and TRAINING_SPEED_GPU.name in speeds:
                yield GpuGain(
                    role,
                    run,
                    resources.workers * min(on_gpus, limit) * speeds[TRAINING_SPEED_GPU.name],
                    resources.workers * min(on_cores, limit) * speeds[TRAINING_SPEED.name],
                )
