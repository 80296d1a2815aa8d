"""Whether GPUs pay for training the models of a sweep, from steps that were timed on both."""

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
    """Pieces a second in training one model, over all runs that are done at once."""

    role: RunRole
    run: Run
    on_gpus: float
    """At most: runs that share a GPU are as fast as one that has it to itself."""
    on_cores: float
    """Of as many runs as the processors alone have room for."""

    @property
    def pays(self) -> bool:
        """Whether training on GPUs is faster."""
        return self.on_gpus > self.on_cores


def trains_on_gpus(sweep: Sweep) -> bool:
    """Whether any model of the sweep is trained on GPUs."""
    return any(sweep.file.resources.for_role(role).gpus_per_worker for role in ROLES)


def gpu_gains(sweep: Sweep, cluster: Topology) -> Iterator[GpuGain]:
    """The gain of each shape that is trained on GPUs and was timed on one."""
    trained = {
        "teachers": [run for _, run in sweep.members if is_trained(run)],
        "students": sweep.shapes(),
    }
    for role in ROLES:
        own = sweep.file.resources.for_role(role)
        if not own.gpus_per_worker:
            continue
        without = own.model_copy(update={"gpus_per_worker": 0.0, "accelerator_type": None})
        on_gpus, on_cores = (cluster.grown.fits(group_of(each)) for each in (own, without))
        most = own.concurrency or max(on_gpus, on_cores)
        for run in trained[role]:
            speeds = sweep.cost(run).figures
            if TRAINING_SPEED.name in speeds and TRAINING_SPEED_GPU.name in speeds:
                yield GpuGain(
                    role,
                    run,
                    own.workers * min(on_gpus, most) * speeds[TRAINING_SPEED_GPU.name],
                    own.workers * min(on_cores, most) * speeds[TRAINING_SPEED.name],
                )
