"""What the parts of a sweep take of a cluster: the section `resources` of a sweep file."""

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
    """What the runs of one role take. A key that is not written is as in `resources` itself."""

    workers: Workers | None = None
    cpus_per_worker: Cpus | None = None
    gpus_per_worker: Gpus | None = None
    accelerator_type: Accelerator | None = None
    custom: Custom = Field(default_factory=dict)
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Runs of this role at the same time."""


class PrecomputeRole(Frozen):
    """What the actors take that hold a teacher, or a frozen encoder, and read text."""

    workers: Workers | None = None
    """How many there are; by default `precompute_workers`, else as many as fit."""
    cpus_per_worker: Cpus | None = None
    """By default that of `resources`, at most 1."""
    gpus_per_worker: Gpus | None = None
    """By default that of `resources`."""
    accelerator_type: Accelerator | None = None
    custom: Custom = Field(default_factory=dict)


class LatencyTarget(Frozen):
    """The node on which latency is measured, on one of its CPU threads. By default one with the custom resource
    `raykd_probe`, and where there is none, any node with a CPU.
    """

    accelerator_type: Accelerator | None = None
    """A node that has this accelerator; the model runs on its CPU all the same."""
    custom: Custom = Field(default_factory=dict)
    """A node that has this much of these custom resources."""
    labels: dict[str, str] = Field(default_factory=dict)
    """A node with these labels of Ray (`ray start --labels`)."""


class AddedNodes(Frozen):
    """Nodes that the cluster's autoscaler may add."""

    node: Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(min_length=1)]
    """What one has, by the names of Ray: `{CPU: 8, GPU: 1}`."""
    most: Annotated[int, Field(ge=1)]
    """How many of them there may be, those that are there included."""


class Resources(Frozen):
    """What one run takes of the cluster. Never part of an identity: one worker or four compute the same."""

    workers: Workers = 1
    cpus_per_worker: Cpus = 1.0
    gpus_per_worker: Gpus = 0.0
    """A part of one (0.25: four runs share a GPU), or whole ones."""
    accelerator_type: Accelerator | None = None
    """Only nodes with this accelerator, by the name that Ray has for it (`A100`, `L4`)."""
    custom: Custom = Field(default_factory=dict)
    """Custom resources of Ray that each worker takes: `{fast_disk: 1}`."""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """Runs at the same time; by default as many as fit."""
    precompute_workers: Workers | None = None
    """Actors that hold a teacher while the transfer set is computed; by default as many as fit."""
    ray_train: bool = False
    """Start runs of one worker under Ray Train, too, as those of several are, to try Ray Train and NCCL on a node with
    one GPU. It takes 17–32 s more."""
    max_failures: Annotated[int, Field(ge=0)] = 2
    """How often a run whose worker died is taken up again from its last checkpoint."""
    teachers: Role | None = None
    """What differs for runs that train a teacher."""
    precompute: PrecomputeRole | None = None
    """What differs for the actors that read text with a teacher or a frozen encoder."""
    students: Role | None = None
    """What differs for runs that train a student."""
    latency: LatencyTarget | None = None
    """The node on which latency is measured."""
    autoscale: tuple[AddedNodes, ...] = ()
    """What an autoscaler may add to the cluster, where Ray itself does not know it."""
    wait_minutes: Annotated[float, Field(ge=0)] = 20.0
    """How long a phase waits for nodes that an autoscaler adds."""

    @model_validator(mode="after")
    def _a_gpu_has_one_worker(self) -> Resources:
        for role in get_args(RunRole):
            own = self.for_role(role)
            if own.workers > 1 and 0 < own.gpus_per_worker < 1:
                raise ValueError(
                    f"{role}: {own.workers} workers of one run cannot share a GPU ({own.gpus_per_worker:g} each), "
                    "since NCCL takes one worker for each; set gpus_per_worker: 1, or workers: 1"
                )
        return self

    def for_role(self, role: RunRole) -> Resources:
        """What runs of this role take, in the place of what all take."""
        own = self.teachers if role == "teachers" else self.students
        roles = {"teachers": None, "students": None, "precompute": None, "latency": None, "autoscale": ()}
        return self.model_copy(update=roles | _written(own))

    @property
    def uses_ray_train(self) -> bool:
        """True where Ray Train starts the workers of a run, beside the process of its slot."""
        return self.ray_train or self.workers > 1

    @property
    def precompute_actor(self) -> PrecomputeRole:
        """What an actor of precompute takes, everything filled in but how many there are."""
        inherited = {
            "workers": self.precompute_workers,
            "cpus_per_worker": min(1.0, self.cpus_per_worker),
            "gpus_per_worker": self.gpus_per_worker,
            "accelerator_type": self.accelerator_type,
            "custom": self.custom,
        }
        return PrecomputeRole(**inherited | _written(self.precompute))


def worker_resources(of: Resources | PrecomputeRole) -> dict[str, float]:
    """What one worker takes, by the names of Ray."""
    return _by_ray(of.cpus_per_worker or 0.0, of.gpus_per_worker or 0.0, of.accelerator_type, of.custom)


def gpu_probe_resources(of: Resources) -> dict[str, float]:
    """The resources of a measurement on a GPU: a whole one, of the kind that these runs take."""
    return _by_ray(0.0, 1.0, of.accelerator_type, {})


def latency_resources(target: LatencyTarget) -> dict[str, float]:
    """What a measurement of latency takes on its node."""
    return _by_ray(1.0, 0.0, target.accelerator_type, target.custom)


def _by_ray(
    cpus: float, gpus: float, accelerator: str | None, custom: Mapping[str, float]
) -> dict[str, float]:
    # Ray gives each node one of its accelerator's kind, whatever their number, and takes a thousandth itself.
    kind = {f"accelerator_type:{accelerator}": 0.001} if accelerator else {}
    return {"CPU": cpus, **({"GPU": gpus} if gpus else {}), **kind, **custom}


def _written(role: Frozen | None) -> dict[str, Any]:
    return (
        {name: getattr(role, name) for name in role.model_fields_set if getattr(role, name) is not None}
        if role
        else {}
    )
