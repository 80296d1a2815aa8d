"""The precompute pipeline on Ray Data: rows go through a pool of actors, and dead actors are replaced."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from ray.exceptions import RayActorError, RayError
from ray.util.annotations import RayDeprecationWarning

from raykd.cluster.connection import topology
from raykd.cluster.nodes import elsewhere
from raykd.cluster.progress_channel import reported
from raykd.cluster.topology import Group
from raykd.errors import PlacementError, RunError
from raykd.identity import PlainObject
from raykd.precompute.shard_writer import ShardJob, ShardWriter

Row = PlainObject
"""A row of the pipeline: the argument of a `ShardWriter`, or its answer."""


class Plan(Protocol):
    """The actors' view of a `PrecomputePlan`."""

    @property
    def store(self) -> str:
        """URI of the store."""
        ...

    @property
    def token_budget(self) -> int | None:
        """Padded tokens of one batch of a teacher; None: as many as suit its device."""

    def shard_jobs(self) -> tuple[ShardJob, ...]:
        """Return the jobs of an actor, by the index of their task."""
        ...


@dataclass(frozen=True)
class Placement:
    """The resources of the actors.

    Attributes:
        actors: Number of actors; None: as many as fit.
        cpus_per_actor: CPUs of one actor.
        gpus_per_actor: GPUs of one actor, or a part of one.
    """

    actors: int | None = None
    cpus_per_actor: float = 1.0
    gpus_per_actor: float = 0.0
    extra_resources: Mapping[str, float] = field(default_factory=dict)
    """Accelerator type and custom resources, by their names in Ray."""
    slots_asleep: bool = False
    """True if the actors run on the CPUs of sleeping slots, so that Ray must reserve none."""
    max_failures: int = 2
    """Number of times that the pipeline is restarted after an actor died."""
    avoid: tuple[str, ...] = ()
    """Ids of nodes on which no actor is placed."""


class ReportingWriter(ShardWriter):
    """A shard writer with progress reports on the current range."""

    def __call__(self, row: Row) -> Row:
        """Write the missing shards of `row`, as `ShardWriter` does."""
        with reported(range_id(row)):
            return super().__call__(row)


def range_id(row: Row) -> str:
    """Return the name of a row's range of sentences in progress reports."""
    return f"range {row['task']}/{row['first']}"


def launch_on_ray(plan: Plan, rows: list[Row], placement: Placement) -> Iterator[Row]:
    """Run pipeline rows through pools of actors, and yield results as shards finish.

    If an actor dies, the rows without a result go through a new pool. Ray itself would restart the actor for ever, even
    if a shard needs more memory than there is.

    Args:
        plan: the store and the jobs.
        rows: of the pipeline.
        placement: of the actors.

    Raises:
        PlacementError: the actors do not fit on the cluster.
        RunError: too many actors died, or Ray failed.
    """
    actors, remaining = _fitting_actors(placement, len(rows)), {_key(row): row for row in rows}
    for attempt in range(placement.max_failures + 1):
        try:
            for result in _pipeline(plan, list(remaining.values()), placement, actors):
                del remaining[_key(result)]
                yield result
            return
        except RayActorError as error:
            if not remaining:
                return
            if attempt == placement.max_failures:
                raise _failed(f"{attempt + 1} actors died", error) from error
            # The node may be gone too, so count again how many actors fit.
            actors = min(actors, max(1, topology(without=placement.avoid).fits(_group(placement))))
        except RayError as error:
            raise _failed("Ray could not compute the transfer set", error) from error


def _pipeline(plan: Plan, rows: list[Row], placement: Placement, actors: int) -> Iterator[Row]:
    import ray.data  # half a second, and a plan does without

    threads = max(1, int(placement.cpus_per_actor))
    with _quiet_ray_data():
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            cast(Any, ReportingWriter),  # Ray Data takes classes too, which its annotation does not say
            fn_constructor_args=(
                plan.store,
                plan.shard_jobs(),
                plan.token_budget,
                threads,
                placement.gpus_per_actor,
            ),
            compute=ray.data.ActorPoolStrategy(size=min(actors, len(rows))),
            num_cpus=0 if placement.slots_asleep else placement.cpus_per_actor,
            num_gpus=placement.gpus_per_actor,
            resources=dict(placement.extra_resources),
            label_selector=elsewhere(placement.avoid) or None,
            max_restarts=0,
        )
        yield from dataset.iter_rows()


def _key(row: Row) -> tuple[int, int]:
    return row["task"], row["first"]


def _failed(problem: str, error: RayError) -> RunError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    hint = "what is computed is kept; run it again for the rest"
    return RunError(f"{problem}: {lines[-1] if lines else type(error).__name__}; {hint}")


@contextmanager
def _quiet_ray_data() -> Iterator[None]:
    """Silence Ray Data, whose lines would be drawn over the writers' progress; errors are raised all the same."""
    import ray.data

    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    bars, level = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # There is no other way yet to pass `max_restarts`; the parameters named in Ray's warning do not include it.
            warnings.simplefilter("ignore", RayDeprecationWarning)
            yield
    finally:
        context.enable_progress_bars = bars
        logger.setLevel(level)


def _group(placement: Placement) -> Group:
    return Group(
        {"CPU": placement.cpus_per_actor, "GPU": placement.gpus_per_actor, **placement.extra_resources}
    )


def _fitting_actors(placement: Placement, shards: int) -> int:
    group, nodes = _group(placement), topology(without=placement.avoid)
    requested = min(placement.actors or shards, shards)
    fits = nodes.fits(group)
    if fits < 1 or (placement.actors and fits < requested):
        # Ray Data would wait for ever for resources that the cluster does not have.
        raise PlacementError(
            f"precompute cannot place its actors: {requested if placement.actors else 1} × {group}, and the nodes are "
            f"{nodes}. Lower resources.precompute"
        )
    return min(requested, fits)
