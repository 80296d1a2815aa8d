"""The precompute pipeline on Ray Data: rows go through a pool of actors, and actors that die are replaced."""

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
"""A row of the pipeline, as `ShardWriter` is called with it, or answers with it."""


class Plan(Protocol):
    """What every actor must know."""

    @property
    def store(self) -> str: ...

    @property
    def token_budget(self) -> int | None: ...

    def shard_jobs(self) -> tuple[ShardJob, ...]: ...


@dataclass(frozen=True)
class Placement:
    """What the actors take: `actors` of them (None: as many as fit), each with these CPUs, GPUs and other resources."""

    actors: int | None = None
    cpus_per_actor: float = 1.0
    gpus_per_actor: float = 0.0
    extra_resources: Mapping[str, float] = field(default_factory=dict)
    """Accelerator type and custom resources, by their names in Ray."""
    slots_asleep: bool = False
    """Whether the CPUs are those of slots that sleep: Ray is asked for none."""
    max_failures: int = 2
    """How often the pipeline goes on after an actor died."""
    avoid: tuple[str, ...] = ()
    """The ids of nodes on which no actor is to be."""


class ReportingWriter(ShardWriter):
    """A writer that says how far the range in hand is."""

    def __call__(self, row: Row) -> Row:
        """Write what `row` lacks, as `ShardWriter` does."""
        with reported(range_id(row)):
            return super().__call__(row)


def range_id(row: Row) -> str:
    """The name by which the range of a pipeline row says how far it is."""
    return f"range {row['task']}/{row['first']}"


def launch_on_ray(plan: Plan, rows: list[Row], placement: Placement) -> Iterator[Row]:
    """Run the pipeline rows through pools of actors; results come as shards finish.

    When an actor dies, the rows without a result go through a new pool. Ray would restart it for ever, also where a
    shard needs more memory than there is.
    """
    actors, left = _fitting_actors(placement, len(rows)), {_key(row): row for row in rows}
    for attempt in range(placement.max_failures + 1):
        try:
            for result in _pipeline(plan, list(left.values()), placement, actors):
                del left[_key(result)]
                yield result
            return
        except RayActorError as error:
            if not left:
                return
            if attempt == placement.max_failures:
                raise _failed(f"{attempt + 1} actors died", error) from error
            # Their node may have gone with them.
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
    """Progress is reported by the writers, and errors are raised; Ray Data's own lines would be drawn over it."""
    import ray.data

    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    bars, level = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # `max_restarts` has no other way yet: Ray's hint names parameters that this one is not among.
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
    group, here = _group(placement), topology(without=placement.avoid)
    wanted = min(placement.actors or shards, shards)
    fits = here.fits(group)
    if fits < 1 or (placement.actors and fits < wanted):
        # Ray Data would wait for ever for what the cluster does not have.
        raise PlacementError(
            f"precompute cannot place its actors: {wanted if placement.actors else 1} × {group}, and the nodes are "
            f"{here}. Lower resources.precompute"
        )
    return min(wanted, fits)
