"""What teachers know, computed once: one Ray Data pipeline over every shard that is missing from the store.

One row of the pipeline is one shard. An actor loads the teacher that the shard asks for (and keeps it),
reads the shard's sentences from the store, writes what the teacher offers of them (a chain's emissions,
transitions and K best paths; any other teacher's token marginals and best path),
and hands back checksums only. The manifests are written when all shards of a teacher stand. Kill it at
any moment: what was committed stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import ray
import ray.data
from ray.exceptions import RayError

from raykd.errors import PlacementError, RunError
from raykd.runs.shard_writer import ShardJob, ShardWriter, TeacherHandle, raise_told
from raykd.runs.stderr import without_lines
from raykd.signals import SIGNALS
from raykd.storage import Storage
from raykd.transfer import (
    Coverage,
    Origin,
    RowRange,
    ShardEntry,
    Text,
    clean_temporaries,
    cover_kbest,
    cover_tokens,
    cover_transitions,
    row_ranges,
    write_text,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class PrecomputeTask:
    """One teacher about one text."""

    teacher: TeacherHandle
    text: Text

    def origin(self, signal: str, *, k: int = 0) -> Origin:
        """What the stored signal is."""
        return Origin(
            signal=signal,
            teacher_id=self.teacher.teacher_id,
            weights_sha256=self.teacher.weights_sha256,
            text_id="" if SIGNALS[signal].per == "teacher" else self.text.id,
            tags=self.teacher.tags,
            k=k,
        )

    @property
    def tokens(self) -> Origin:
        """What is stored of each token: the scores of a chain, the marginals of any other teacher."""
        return self.origin("emissions" if self.teacher.chain else "token_marginals")

    @property
    def transitions(self) -> Origin | None:
        """The transitions, of a chain only."""
        return self.origin("transitions") if self.teacher.chain else None


@dataclass(frozen=True)
class PrecomputePlan:
    """Everything a sweep wants to know from its teachers: what each offers of tokens and, with `k` > 0, K
    best paths.

    `token_budget`: padded tokens that a teacher reads at once.
    """

    store: str
    tasks: tuple[PrecomputeTask, ...]
    k: int = 0
    shard_sentences: int = 2000
    token_budget: int = 8000

    def coverage(self) -> tuple[TaskCoverage, ...]:
        """What stands in the store and what is missing, task by task. Computes nothing."""
        return tuple(_cover(self, task) for task in self.tasks)

    def shard_jobs(self) -> tuple[ShardJob, ...]:
        """What an actor must know of each task: ids only, the sentences stay in the store."""
        return tuple(_shard_job(task) for task in self.tasks)


@dataclass(frozen=True)
class TaskCoverage:
    """What one task has in the store."""

    task: PrecomputeTask
    tokens: Coverage
    """Emissions, or token marginals."""
    transitions: Coverage | None
    kbest: Coverage | None

    @cached_property
    def parts(self) -> tuple[Coverage, ...]:
        """The signals that are asked for."""
        return tuple(part for part in (self.transitions, self.tokens, self.kbest) if part is not None)

    def rows(self) -> list[Row]:
        """The pipeline rows that finish this task: one per shard that lacks tokens, paths or both."""
        tokens = {rows.first: rows for rows in self.tokens.pending}
        kbest = {rows.first: rows for rows in self.kbest.pending} if self.kbest is not None else {}
        standing = {entry.first: entry.model_dump_json() for entry in self.tokens.standing}
        k = self.kbest.origin.k if self.kbest is not None else 0
        rows = [
            {
                "first": first,
                "last": shard.last,
                "standing": standing.get(first, ""),
                "k": k if first in kbest else 0,
            }
            for first, shard in sorted({**tokens, **kbest}.items())
        ]
        # A shard brings its teacher's transitions along; where all stand, one empty row fetches them.
        alone = self.transitions.pending if self.transitions is not None else ()
        return rows or [{"first": 0, "last": 0, "standing": "", "k": 0}] * len(alone)

    def missing_bytes(self) -> int:
        """Bytes that the missing shards will take, from the lengths of their sentences."""
        return sum(self._bytes(part, rows) for part in self.parts for rows in part.pending)

    def _bytes(self, part: Coverage, rows: RowRange) -> int:
        signal, tags = SIGNALS[part.origin.signal], part.origin.tags
        if signal.per == "teacher":
            return signal.bytes_per_teacher(tags) + _FILE_BYTES
        lengths = self.task.text.lengths[rows.first : rows.last]
        # Every size is linear in the length: one token more is one token's bytes more.
        base, one = (signal.bytes_per_sentence(length, tags, part.origin.k) for length in (0, 1))
        return base * len(rows) + (one - base) * int(lengths.sum()) + _ROW_BYTES * len(rows) + _FILE_BYTES


# Row number, length and list offset; schema, metadata and footer of one Arrow file.
_ROW_BYTES, _FILE_BYTES = 8 + 4 + 4, 2500


@dataclass(frozen=True)
class Estimate:
    """What a precompute would do: shards that stand, shards that are missing, and the bytes both take."""

    cached_shards: int
    missing_shards: int
    cached_bytes: int
    missing_bytes: int
    cached_sets: int
    sets: int


@dataclass(frozen=True)
class Precomputed:
    """What a precompute did: pipeline rows computed, and what stands now, for tokens of text in all.

    `largest_error` is the largest absolute error that float16 brought into a score.
    """

    computed_shards: int
    shards: int
    bytes: int
    tokens: int
    largest_error: float


@dataclass(frozen=True)
class Placement:
    """What the actors take: `actors` of them (None: as many as fit), each with these CPUs and GPUs."""

    actors: int | None = None
    cpus_per_actor: float = 1.0
    gpus_per_actor: float = 0.0


Progress = Callable[[int, int, int], None]
"""Called as `(done, total, sentences)` after each shard; `sentences` is the size of the shard just done."""

Launch = Callable[[PrecomputePlan, list[Row], Placement], Iterable[Row]]


def estimate(plan: PrecomputePlan) -> Estimate:
    """What `precompute` would find and do, before any teacher is trained."""
    covered = plan.coverage()
    standing = [entry for task in covered for part in task.parts for entry in part.standing]
    return Estimate(
        cached_shards=len(standing),
        missing_shards=sum(len(part.pending) for task in covered for part in task.parts),
        cached_bytes=sum(entry.bytes for entry in standing),
        missing_bytes=sum(task.missing_bytes() for task in covered),
        cached_sets=sum(all(part.complete for part in task.parts) for task in covered),
        sets=len(covered),
    )


def precompute(
    plan: PrecomputePlan,
    *,
    placement: Placement | None = None,
    on_shard: Progress | None = None,
    launch: Launch | None = None,
) -> Precomputed:
    """Compute what is missing of the plan's transfer sets and commit them. Ray must be running.

    Raises PlacementError before anything starts when an actor cannot be placed; StoreError, RunError and the
    other errors of an actor as they are. Shards finished before an error are kept: run it again for the rest.
    """
    covered = plan.coverage()
    rows = [{"task": number, **row} for number, task in enumerate(covered) for row in task.rows()]
    computed: list[Row] = []
    if rows:
        for number in sorted({row["task"] for row in rows}):
            write_text(Storage(plan.store), plan.tasks[number].text)
        for result in (launch or launch_on_ray)(plan, rows, placement or Placement()):
            raise_told(result["error"])
            computed.append(result)
            if on_shard is not None:
                on_shard(len(computed), len(rows), result["sentences"])
    for number, task in enumerate(covered):
        for part in task.parts:
            clean_temporaries(part.folder)
        _commit(task, [result for result in computed if result["task"] == number])
    return _summary(plan, len(computed))


def launch_on_ray(plan: PrecomputePlan, rows: list[Row], placement: Placement) -> Iterator[Row]:
    """Run the pipeline rows through one pool of actors; results come as shards finish."""
    actors = _fitting_actors(placement, len(rows))
    threads = max(1, int(placement.cpus_per_actor))
    with _quiet_ray_data():
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            cast(Any, ShardWriter),  # Ray Data takes classes too; its annotation forgets them
            fn_constructor_args=(plan.store, plan.shard_jobs(), plan.token_budget, threads),
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=placement.cpus_per_actor,
            num_gpus=placement.gpus_per_actor,
        )
        try:
            yield from dataset.iter_rows()
        except RayError as error:
            last_line = str(error).strip().rpartition("\n")[2]
            raise RunError(f"Ray could not compute the transfer set: {last_line}") from error


@contextmanager
def _quiet_ray_data() -> Iterator[None]:
    """Progress is told through `on_shard`; Ray Data's own bars and notes would be drawn over it."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    bars, level = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        # Ray complains of its own actor pool, which keeps a reference to what it says might be lost.
        with without_lines("has constructor arguments in the object store"):
            yield
    finally:
        context.enable_progress_bars = bars
        logger.setLevel(level)


def _cover(plan: PrecomputePlan, task: PrecomputeTask) -> TaskCoverage:
    store = Storage(plan.store)
    ranges = row_ranges(len(task.text), plan.shard_sentences)
    tokens = cover_tokens(store, task.tokens, ranges)
    transitions = None if task.transitions is None else cover_transitions(store, task.transitions)
    # A teacher that is no chain tells one path; that more are asked for was refused before.
    k = plan.k if task.teacher.chain else min(plan.k, 1)
    kbest = cover_kbest(store, tokens, k) if k else None
    return TaskCoverage(task, tokens, transitions, kbest)


def _shard_job(task: PrecomputeTask) -> ShardJob:
    return ShardJob(task.teacher, task.text.id, task.tokens, task.transitions)


def _commit(covered: TaskCoverage, results: Sequence[Row]) -> None:
    for part in covered.parts:
        told = [result[part.origin.signal] for result in results]
        part.commit([ShardEntry.model_validate_json(entry) for entry in told if entry])


def _summary(plan: PrecomputePlan, computed: int) -> Precomputed:
    entries = [entry for task in plan.coverage() for part in task.parts for entry in part.standing]
    return Precomputed(
        computed_shards=computed,
        shards=len(entries),
        bytes=sum(entry.bytes for entry in entries),
        tokens=sum(int(task.text.lengths.sum()) for task in plan.tasks),
        largest_error=max((entry.largest_error for entry in entries), default=0.0),
    )


def _fitting_actors(placement: Placement, shards: int) -> int:
    has = ray.cluster_resources()
    asks = {"CPU": placement.cpus_per_actor, "GPU": placement.gpus_per_actor}
    fits = min((int(has.get(kind, 0) // each) for kind, each in asks.items() if each > 0), default=shards)
    wanted = placement.actors or max(1, min(fits, shards))
    if wanted > fits:
        # Ray Data would wait for ever for what the cluster does not have.
        arithmetic = "; ".join(
            f"{wanted} × {each:g} {kind} = {wanted * each:g} of {has.get(kind, 0):g}"
            for kind, each in asks.items()
            if each > 0
        )
        raise PlacementError(
            f"precompute cannot place its actors: {arithmetic}. Lower resources.precompute_workers"
        )
    return min(wanted, shards)
