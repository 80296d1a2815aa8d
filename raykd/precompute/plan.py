"""What teachers know, computed once: one Ray Data pipeline over every shard that is missing from the store.

One row of the pipeline is one range of sentences. An actor loads the teacher that the row asks for (and keeps it),
reads the sentences from the store, writes the shards of the signals that are missing for them, and hands back
checksums only. The manifests are written when all shards of a teacher are there. Kill it at any moment: what was
committed stays.
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
    """One teacher and one text, and the signals that are stored of them, sources before what derives from them."""

    teacher: TeacherHandle
    text: Text
    needs: tuple[Need, ...]
    shard_sentences: int | None = None
    """Most sentences of a shard, where they are not the plan's."""

    def origin(self, need: Need) -> Origin:
        """What the stored signal is."""
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
        """How many rows each sentence has in a column [N]."""
        return column.row_counts(self.text.lengths, self.teacher.unit)

    def bytes_of(self, need: Need) -> np.ndarray:
        """Bytes of each sentence in a shard of the signal [N]; those of the file itself are not counted."""
        sizes, columns = self.teacher.sizes, SIGNALS[need.signal].columns
        parts = [column.bytes_per_row(sizes, need) * self.rows_of(column) for column in columns]
        return _ROW_BYTES + np.sum(parts, axis=0)


@dataclass(frozen=True)
class PrecomputePlan:
    """Everything that a sweep needs of its teachers.

    A shard has `shard_sentences` sentences, or fewer where they would take more than `shard_bytes`. `token_budget`:
    padded tokens that a teacher reads at once; None: as many as suit its device.
    """

    store: str
    tasks: tuple[PrecomputeTask, ...]
    shard_sentences: int = 2000
    shard_bytes: int = 64 * 2**20
    token_budget: int | None = None

    def coverage(self) -> tuple[TaskCoverage, ...]:
        """What is in the store and what is missing, task by task. Computes nothing."""
        return tuple(_cover(self, task) for task in self.tasks)

    def shard_jobs(self) -> tuple[ShardJob, ...]:
        """What an actor must know of each task."""
        return tuple(
            ShardJob(task.teacher, task.text.id, {need: task.origin(need) for need in task.needs})
            for task in self.tasks
        )


@dataclass(frozen=True)
class TaskCoverage:
    """What one task has in the store."""

    task: PrecomputeTask
    signals: Mapping[Need, Coverage]

    @cached_property
    def parts(self) -> tuple[Coverage, ...]:
        """The coverage of each signal."""
        return tuple(self.signals.values())

    def rows(self) -> list[Row]:
        """The pipeline rows that finish this task: one for each range of sentences that lacks a signal.

        What is stored once per teacher goes with the first of them.
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
        # A derived signal is computed from the shard of its source, which may be there already.
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
        """Bytes that the missing shards of a signal will take, from the lengths of their sentences."""
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
    """One signal of all teachers together; `sentences` is 0 where it is stored once per teacher."""

    sentences: int = 0
    cached_bytes: int = 0
    missing_bytes: int = 0

    @property
    def bytes(self) -> int:
        """What it takes when it is complete."""
        return self.cached_bytes + self.missing_bytes

    def __add__(self, other: SignalEstimate) -> SignalEstimate:
        own, its = vars(self), vars(other)
        return SignalEstimate(**{name: own[name] + its[name] for name in own})


@dataclass(frozen=True)
class Estimate:
    """What a precompute would do: shards that stand, shards that are missing, and the bytes both take."""

    cached_shards: int
    missing_shards: int
    cached_sets: int
    sets: int
    signals: Mapping[str, SignalEstimate]
    """By `Need.name`."""

    @property
    def cached_bytes(self) -> int:
        return sum(signal.cached_bytes for signal in self.signals.values())

    @property
    def missing_bytes(self) -> int:
        return sum(signal.missing_bytes for signal in self.signals.values())


@dataclass(frozen=True)
class PrecomputeResult:
    """What a precompute did: pipeline rows computed, and what stands now, for tokens of text in all.

    `largest_error` is the largest absolute error that float16 or 8 bits brought into a number.
    """

    computed_shards: int
    shards: int
    bytes: int
    tokens: int
    largest_error: float


Launch = Callable[[PrecomputePlan, list[Row], Placement], Iterable[Row]]


def estimate(plan: PrecomputePlan) -> Estimate:
    """What `precompute` would find and do, before any teacher is trained."""
    covered = plan.coverage()
    parts = [part for task in covered for part in task.parts]
    signals: dict[str, SignalEstimate] = {}
    for task in covered:
        for need, part in task.signals.items():
            own = SignalEstimate(
                0 if SIGNALS[need.signal].once_per_teacher else len(task.task.text),
                sum(entry.bytes for entry in part.stored),
                task.missing_bytes(need),
            )
            signals[need.name] = signals.get(need.name, SignalEstimate()) + own
    return Estimate(
        cached_shards=sum(len(part.stored) for part in parts),
        missing_shards=sum(len(part.pending) for part in parts),
        cached_sets=sum(all(part.complete for part in task.parts) for task in covered),
        sets=len(covered),
        signals=signals,
    )


def pending_rows(covered: Sequence[TaskCoverage]) -> list[Row]:
    """The pipeline rows of all tasks of a plan."""
    return [{"task": number, **row} for number, task in enumerate(covered) for row in task.rows()]


def precompute(
    plan: PrecomputePlan,
    *,
    placement: Placement | None = None,
    on_range: Callable[[Row], None] | None = None,
    launch: Launch | None = None,
) -> PrecomputeResult:
    """Compute what is missing of the plan's transfer sets and commit them. Ray must be running. `on_range` is called
    with the `task`, the `first` row and the number of `sentences` of each range that is done.

    Raises PlacementError before anything starts when an actor cannot be placed; StoreError, RunError and the
    other errors of an actor as they are; StoreError where a shard was computed and is not there. Shards finished
    before an error are kept: run it again for the rest.
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
    found: dict[Need, Coverage] = {}
    for need in task.needs:
        sources = SIGNALS[need.signal].sources if is_derived(need, task.teacher.offers) else ()
        own = (
            found[each]
            for each in found
            if each.signal in sources and not SIGNALS[each.signal].once_per_teacher
        )
        found[need] = find_coverage(store, task.origin(need), ranges, source=next(own, None))
    return TaskCoverage(task, found)


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
    # An actor whose node had lost the store wrote them into a folder of that node's own.
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
