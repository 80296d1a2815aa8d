"""The section `resources` of a sweep file: the share of a cluster that each part of a sweep takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from raykd.spec import Frozen

RunRole = Literal["teachers", "students"]


def _one_or_parts_of_one(gpus: float) -> float:
    if gpus > 1 and gpus != int(gpus):
        raise ValueError("a worker takes a part of one GPU (0.25), or whole ones (1, 2)")
    return gpus


Workers = Annotated[int, Field(ge=1)]
Cpus = Annotated[float, Field(gt=0)]
Gpus = Annotated[float, Field(ge=0), AfterValidator(_one_or_parts_of_one)]
Accelerator = Annotated[str, Field(min_length=1)]
Custom = dict[str, Annotated[float, Field(gt=0)]]


class Role(Frozen):
    """Resources of the runs of one role. A key that is not written is as in `resources` itself."""

    workers: Workers | None = None
    cpus_per_worker: Cpus | None = None
    gpus_per_worker: Gpus | None = None
    accelerator_type: Accelerator | None = None
    custom: Custom = Field(default_factory=dict)
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Runs of this role at the same time."""


class PrecomputeRole(Frozen):
    """Resources of the precompute actors, which hold a teacher, or a frozen encoder, and read text."""

    workers: Workers | None = None
    """Number of actors; by default `precompute_workers`, else as many as fit."""
    cpus_per_worker: Cpus | None = None
    """By default `resources.cpus_per_worker`, at most 1."""
    gpus_per_worker: Gpus | None = None
    """By default `resources.gpus_per_worker`."""
    accelerator_type: Accelerator | None = None
    custom: Custom = Field(default_factory=dict)


class LatencyTarget(Frozen):
    """The node for measuring latency, on one of its CPU threads.

    By default a node with the custom resource `raykd_probe`, and if there is none, any node with a CPU.
    """

    accelerator_type: Accelerator | None = None
    """Only a node with this accelerator; the model still runs on its CPU."""
    custom: Custom = Field(default_factory=dict)
    """Only a node with this much of these custom resources."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Only a node with these Ray labels (`ray start --labels`)."""


class AddedNodes(Frozen):
    """Nodes for the cluster's autoscaler to add."""

    node: Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1)]
    """Resources of one node, by their names in Ray: `{CPU: 8, GPU: 1}`."""
    most: Annotated[int, Field(ge=1)]
    """Most nodes of this kind, including those already running."""


class Resources(Frozen):
    """Resources of one run. They never change results: one worker or four compute the same."""

    workers: Workers = 1
    cpus_per_worker: Cpus = 1.0
    gpus_per_worker: Gpus = 0.0
    """A part of a GPU (0.25: four runs share one), or whole GPUs."""
    accelerator_type: Accelerator | None = None
    """Only nodes with this accelerator, by its name in Ray (`A100`, `L4`)."""
    custom: Custom = Field(default_factory=dict)
    """Custom resources of Ray that each worker takes: `{fast_disk: 1}`."""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Runs at the same time; by default as many as fit."""
    precompute_workers: Workers | None = None
    """Actors that hold a teacher while the transfer set is computed; by default as many as fit."""
    ray_train: bool = False
    """Start runs with one worker under Ray Train too, as runs with several workers always are. Use it to try Ray Train
    and NCCL on a node with one GPU; each run takes 17–32 s longer."""
    max_failures: Annotated[int, Field(ge=0)] = 2
    """Most restarts of a run from the last checkpoint after a worker died."""
    teachers: Role | None = None
    """Changes for runs that train a teacher."""
    precompute: PrecomputeRole | None = None
    """Changes for the actors that read text with a teacher or a frozen encoder."""
    students: Role | None = None
    """Changes for runs that train a student."""
    latency: LatencyTarget | None = None
    """The node on which latency is measured."""
    autoscale: tuple[AddedNodes, ...] = ()
    """Nodes that an autoscaler may add to the cluster; needed only if Ray itself does not know them."""
    wait_minutes: Annotated[float, Field(ge=0)] = 20.0
    """Longest wait of a phase for nodes that an autoscaler adds."""

    @model_validator(mode="after")
    def _a_gpu_has_one_worker(self) -> Resources:
        for role in get_args(RunRole):
            resources = self.for_role(role)
            if resources.workers > 1 and 0 < resources.gpus_per_worker < 1:
                raise ValueError(
                    f"{role}: {resources.workers} workers of one run cannot share a GPU "
                    f"({resources.gpus_per_worker:g} each), since NCCL takes one worker per GPU; "
                    "set gpus_per_worker: 1, or workers: 1"
                )
        return self

    def for_role(self, role: RunRole) -> Resources:
        """Return the resources of the runs of one role: its settings laid over those common to all roles."""
        role_settings = self.teachers if role == "teachers" else self.students
        other_sections = {
            "teachers": None,
            "students": None,
            "precompute": None,
            "latency": None,
            "autoscale": (),
        }
        return self.model_copy(update=other_sections | _written(role_settings))

    @property
    def uses_ray_train(self) -> bool:
        """True if Ray Train starts the workers of a run, in addition to the process of its slot."""
        return self.ray_train or self.workers > 1

    @property
    def precompute_actor(self) -> PrecomputeRole:
        """The resources of one precompute actor, with defaults filled in; `workers` may still be None."""
        inherited = {
            "workers": self.precompute_workers,
            "cpus_per_worker": min(1.0, self.cpus_per_worker),
            "gpus_per_worker": self.gpus_per_worker,
            "accelerator_type": self.accelerator_type,
            "custom": self.custom,
        }
        return PrecomputeRole(**inherited | _written(self.precompute))


def worker_resources(settings: Resources | PrecomputeRole) -> dict[str, float]:
    """Return the resources of one worker, by their names in Ray.

    Args:
        settings: Resources of a role, or of precompute.
    """
    return _ray_resources(
        settings.cpus_per_worker or 0.0,
        settings.gpus_per_worker or 0.0,
        settings.accelerator_type,
        settings.custom,
    )


def gpu_probe_resources(settings: Resources) -> dict[str, float]:
    """Return the Ray resources of a measurement on a GPU: one whole GPU, of the kind that these runs take.

    Args:
        settings: Resources of a role.
    """
    return _ray_resources(0.0, 1.0, settings.accelerator_type, {})


def latency_resources(target: LatencyTarget) -> dict[str, float]:
    """Return the Ray resources of a latency measurement.

    Args:
        target: The node on which latency is measured.
    """
    return _ray_resources(1.0, 0.0, target.accelerator_type, target.custom)


def _ray_resources(
    cpus: float, gpus: float, accelerator: str | None, custom: Mapping[str, float]
) -> dict[str, float]:
    # A node has 1 of the resource for its kind of accelerator, however many it has; like Ray itself, take 0.001 of it.
    kind = {f"accelerator_type:{accelerator}": 0.001} if accelerator else {}
    return {"CPU": cpus, **({"GPU": gpus} if gpus else {}), **kind, **custom}


def _written(role: Frozen | None) -> dict[str, Any]:
    return (
        {name: getattr(role, name) for name in role.model_fields_set if getattr(role, name) is not None}
        if role
        else {}
    )
