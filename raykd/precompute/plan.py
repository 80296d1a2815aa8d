"""The plan of a precompute: one Ray Data pipeline over all shards missing from the store.

One row of the pipeline is one range of sentences. An actor loads the row's teacher (and keeps it in memory), reads the
sentences from the store, writes the shards of the missing signals, and returns only checksums. The manifests are
written when all shards of a teacher are complete. A killed precompute loses nothing that was committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raykd.errors import StoreError
from raykd.needs import is_derived
from raykd.pluralise import pluralise
from raykd.precompute.pipeline import Placement, Row, launch_on_ray
from raykd.precompute.shard_writer import ShardJob, TeacherHandle, raise_error
from raykd.signals import SIGNALS, Column, Need
from raykd.storage.store import Storage
from raykd.transfer import (
    Coverage,
    Origin,
    RowRange,
    ShardEntry,
    Text,
    clean_temporaries,
    find_coverage,
    row_ranges,
    write_text,
)


@dataclass(frozen=True)
class PrecomputeTask:
    """One teacher, one text, and the signals to store, sources before derived signals."""

    teacher: TeacherHandle
    text: Text
    needs: tuple[Need, ...]
    shard_sentences: int | None = None
    """Most sentences of a shard; None: as in the plan."""

    def origin(self, need: Need) -> Origin:
        """Return the description of a stored signal, which decides its folder."""
        return Origin(
            signal=need.signal,
            layer=need.layer,
            teacher_id=self.teacher.signals_id or self.teacher.teacher_id,
            decoding=self.teacher.decoding if SIGNALS[need.signal].decoded else "",
            weights_sha256=self.teacher.weights_sha256,
            text_id="" if SIGNALS[need.signal].once_per_teacher else self.text.id,
            tags=self.teacher.sizes.tags,
            k=need.k,
        )

    def rows_of(self, column: Column) -> np.ndarray:
        """Return the number of rows per sentence in a column [N]."""
        return column.row_counts(self.text.lengths, self.teacher.unit)

    def bytes_of(self, need: Need) -> np.ndarray:
        """Return the bytes per sentence in a shard of the signal [N], without those of the file itself."""
        sizes, columns = self.teacher.sizes, SIGNALS[need.signal].columns
        parts = [column.bytes_per_row(sizes, need) * self.rows_of(column) for column in columns]
        return _ROW_BYTES + np.sum(parts, axis=0)


@dataclass(frozen=True)
class PrecomputePlan:
    """The signals needed of a sweep's teachers.

    Attributes:
        store: URI of the store.
        tasks: One for each teacher.
        shard_sentences: Most sentences of a shard.
        shard_bytes: Most bytes of a shard; a shard of long sentences has fewer of them.
        token_budget: Padded tokens that a teacher reads at once; None: as many as suit its device.
    """

    store: str
    tasks: tuple[PrecomputeTask, ...]
    shard_sentences: int = 2000
    shard_bytes: int = 64 * 2**20
    token_budget: int | None = None

    def coverage(self) -> tuple[TaskCoverage, ...]:
        """Return the stored and the missing shards of the tasks; nothing is computed."""
        return tuple(_cover(self, task) for task in self.tasks)

    def shard_jobs(self) -> tuple[ShardJob, ...]:
        """Return the jobs of an actor, one for each task."""
        return tuple(
            ShardJob(task.teacher, task.text.id, {need: task.origin(need) for need in task.needs})
            for task in self.tasks
        )


@dataclass(frozen=True)
class TaskCoverage:
    """The stored and the missing shards of one task."""

    task: PrecomputeTask
    signals: Mapping[Need, Coverage]

    @cached_property
    def parts(self) -> tuple[Coverage, ...]:
        """The coverages of the signals."""
        return tuple(self.signals.values())

    def rows(self) -> list[Row]:
        """Return the pipeline rows of the task: one for each range of sentences that lacks a signal.

        Signals stored once per teacher are part of the first row.
        """
        pending: dict[RowRange, list[str]] = {}
        once = [
            need.name
            for need, part in self.signals.items()
            if SIGNALS[need.signal].once_per_teacher and part.pending
        ]
        for need, part in self.signals.items():
            if not SIGNALS[need.signal].once_per_teacher:
                for rows in part.pending:
                    pending.setdefault(rows, []).append(need.name)
        if once:
            first = min(pending, default=RowRange(0, 0))
            pending[first] = [*once, *pending.get(first, [])]
        return [self._row(rows, names) for rows, names in sorted(pending.items())]

    def _row(self, rows: RowRange, names: list[str]) -> Row:
        # A derived signal is computed from the shard of its source, which may be stored already.
        sources = {
            source
            for need in self.signals
            if need.name in names and is_derived(need, self.task.teacher.offers)
            for source in SIGNALS[need.signal].sources
        }
        standing = {
            need.name: entry.model_dump(mode="json")
            for need, part in self.signals.items()
            if need.signal in sources
            for entry in part.stored
            if entry.rows == rows or SIGNALS[need.signal].once_per_teacher
        }
        work = json.dumps({"pending": names, "standing": standing})
        return {"first": rows.first, "last": rows.last, "work": work}

    def missing_bytes(self, need: Need) -> int:
        """Return the bytes of a signal's missing shards, computed from the lengths of their sentences."""
        pending = self.signals[need].pending
        signal, sizes, files = SIGNALS[need.signal], self.task.teacher.sizes, _FILE_BYTES * len(pending)
        if not pending or signal.once_per_teacher:
            per_file = sum(column.bytes_per_row(sizes, need) for column in signal.columns)
            return files + per_file * len(pending)
        ends = np.concatenate([[0], np.cumsum(self.task.bytes_of(need))])
        return files + sum(int(ends[rows.last] - ends[rows.first]) for rows in pending)


# Row number, length and list offset; schema, metadata and footer of one Arrow file.
_ROW_BYTES, _FILE_BYTES = 8 + 4 + 4, 2500


@dataclass(frozen=True)
class SignalEstimate:
    """The size of one signal of all teachers together; `sentences` is 0 for a signal stored once per teacher."""

    sentences: int = 0
    cached_bytes: int = 0
    missing_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the complete signal."""
        return self.cached_bytes + self.missing_bytes

    def __add__(self, other: SignalEstimate) -> SignalEstimate:
        left, right = vars(self), vars(other)
        return SignalEstimate(**{name: left[name] + right[name] for name in left})


@dataclass(frozen=True)
class Estimate:
    """An estimate of a precompute: the shards that are stored, those that are missing, and the bytes of both."""

    cached_shards: int
    missing_shards: int
    cached_sets: int
    sets: int
    signals: Mapping[str, SignalEstimate]
    """By `Need.name`."""

    @property
    def cached_bytes(self) -> int:
        """Bytes of the stored shards."""
        return sum(signal.cached_bytes for signal in self.signals.values())

    @property
    def missing_bytes(self) -> int:
        """Bytes of the missing shards."""
        return sum(signal.missing_bytes for signal in self.signals.values())


@dataclass(frozen=True)
class PrecomputeResult:
    """The result of a precompute.

    Attributes:
        computed_shards: Pipeline rows that were computed now.
        shards: Shards in the store.
        bytes: Bytes of these shards.
        tokens: Tokens of the labelled text.
        largest_error: Largest absolute error of a number by rounding to float16 or 8 bits.
    """

    computed_shards: int
    shards: int
    bytes: int
    tokens: int
    largest_error: float


Launch = Callable[[PrecomputePlan, list[Row], Placement], Iterable[Row]]


def estimate(plan: PrecomputePlan) -> Estimate:
    """Return an estimate of a precompute, before any teacher is trained.

    Args:
        plan: of the precompute.
    """
    covered = plan.coverage()
    parts = [part for task in covered for part in task.parts]
    signals: dict[str, SignalEstimate] = {}
    for task in covered:
        for need, part in task.signals.items():
            signal_estimate = SignalEstimate(
                0 if SIGNALS[need.signal].once_per_teacher else len(task.task.text),
                sum(entry.bytes for entry in part.stored),
                task.missing_bytes(need),
            )
            signals[need.name] = signals.get(need.name, SignalEstimate()) + signal_estimate
    return Estimate(
        cached_shards=sum(len(part.stored) for part in parts),
        missing_shards=sum(len(part.pending) for part in parts),
        cached_sets=sum(all(part.complete for part in task.parts) for task in covered),
        sets=len(covered),
        signals=signals,
    )


def pending_rows(covered: Sequence[TaskCoverage]) -> list[Row]:
    """Return the pipeline rows of all tasks of a plan."""
    return [{"task": number, **row} for number, task in enumerate(covered) for row in task.rows()]


def precompute(
    plan: PrecomputePlan,
    *,
    placement: Placement | None = None,
    on_range: Callable[[Row], None] | None = None,
    launch: Launch | None = None,
) -> PrecomputeResult:
    """Compute the missing shards of a plan and commit the transfer sets. Ray must be running.

    Shards that were finished before an error are kept: call again for the rest.

    Args:
        plan: of the precompute.
        placement: of the actors.
        on_range: called with the `task`, the `first` row and the number of `sentences` of each finished range.
        launch: runs the rows; tests replace it.

    Raises:
        PlacementError: an actor cannot be placed; raised before anything starts.
        StoreError: an actor could not write, or a shard was computed and is not in the store.
        RunError: a teacher or Ray failed.
    """
    covered = plan.coverage()
    rows = pending_rows(covered)
    computed: list[Row] = []
    for task in plan.tasks:
        write_text(Storage(plan.store), task.text)
    if rows:
        for result in (launch or launch_on_ray)(plan, rows, placement or Placement()):
            raise_error(result["error"])
            computed.append(result)
            if on_range is not None:
                on_range(result)
    for number, task in enumerate(covered):
        for part in task.parts:
            clean_temporaries(part.folder)
        _commit(task, [result for result in computed if result["task"] == number])
    return _summary(plan, len(computed))


def _cover(plan: PrecomputePlan, task: PrecomputeTask) -> TaskCoverage:
    store = Storage(plan.store)
    ranges = row_ranges(
        [task.bytes_of(need) for need in task.needs if not SIGNALS[need.signal].once_per_teacher],
        len(task.text),
        shard_sentences=task.shard_sentences or plan.shard_sentences,
        shard_bytes=plan.shard_bytes,
    )
    signals: dict[Need, Coverage] = {}
    for need in task.needs:
        sources = SIGNALS[need.signal].sources if is_derived(need, task.teacher.offers) else ()
        source_coverages = (
            signals[source]
            for source in signals
            if source.signal in sources and not SIGNALS[source.signal].once_per_teacher
        )
        signals[need] = find_coverage(store, task.origin(need), ranges, source=next(source_coverages, None))
    return TaskCoverage(task, signals)


def _commit(covered: TaskCoverage, results: Sequence[Row]) -> None:
    answers = [json.loads(result["entries"]) for result in results]
    for need, part in covered.signals.items():
        part.commit(
            [ShardEntry.model_validate(entries[need.name]) for entries in answers if need.name in entries],
            covered.task.text.lengths,
            covered.task.rows_of(SIGNALS[need.signal].columns[0]),
        )


def _summary(plan: PrecomputePlan, computed: int) -> PrecomputeResult:
    parts = [part for task in plan.coverage() for part in task.parts]
    # If the store was not mounted on an actor's node, the actor wrote into a local folder of that node.
    lost = [f"{part.folder.address}/{rows.name}" for part in parts for rows in part.pending]
    if lost:
        problem = f"was computed and is not in the store ({pluralise(len(lost), 'shard')} in all)"
        raise StoreError(lost[0], problem, "mount the store on every node, and run it again for the rest")
    entries = [entry for part in parts for entry in part.stored]
    return PrecomputeResult(
        computed_shards=computed,
        shards=len(entries),
        bytes=sum(entry.bytes for entry in entries),
        tokens=sum(int(task.text.lengths.sum()) for task in plan.tasks),
        largest_error=max((entry.largest_error for entry in entries), default=0.0),
    )
