"""The actor of the precompute pipeline: it holds teachers and turns one row, a range of sentences, into shards.

It does not know Ray: it is built from plain data, called with a plain row, and answers with one.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch

from raykd import errors
from raykd.corpora.batching import length_buckets
from raykd.errors import RaykdError, RunError
from raykd.identity import PlainObject
from raykd.needs import CHAIN, is_derived
from raykd.progress import part_of_work, report_progress, with_progress
from raykd.signals import SIGNALS, Column, Need, Sizes
from raykd.storage.store import Storage
from raykd.structures import LegalTransitions
from raykd.training.device import CPU_PIECES, assigned_device, piece_budget
from raykd.transfer import (
    Origin,
    RowRange,
    ShardEntry,
    Text,
    decode_columns,
    encode_columns,
    find_shard,
    open_shard,
    open_text,
    origin_folder,
    shard_order,
    write_shard,
)

if TYPE_CHECKING:
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.model import Output


@runtime_checkable
class SentenceReader(Protocol):
    """A teacher in memory."""

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, Output]]:
        """Batch by batch: which of the sentences, how the model reads them, what it gives. Every sentence once."""
        ...


Loader = Callable[[Storage, str, torch.device], SentenceReader]
LABELLED = 0.7
"""The share of a range that labelling takes, about, where other signals are derived from what it gives."""


@dataclass(frozen=True)
class TeacherHandle:
    """How an actor finds a teacher: `loader(Storage(store), teacher_id, device)`.

    `loader` is "module:function" or the function itself; a function defined in `__main__` is sent along.
    `weights_sha256` may stay empty in a plan that is made before the teacher is trained. `unit` is what gets one label.
    Its best paths are sought among the `legal` labellings, which `decoding` names; `signals_id` names what it gives
    besides (`models.signals_id`), by default its own id does.
    """

    store: str
    teacher_id: str
    loader: str | Loader
    sizes: Sizes
    weights_sha256: str = ""
    offers: tuple[str, ...] = CHAIN
    unit: str = "word"
    signals_id: str = ""
    decoding: str = ""
    legal: LegalTransitions | None = None

    def load(self, device: torch.device) -> SentenceReader:
        """The teacher in the memory of this device."""
        report_progress(None, "loading the model")
        loader = self.loader
        if isinstance(loader, str):
            module, _, function = loader.partition(":")
            loader = getattr(importlib.import_module(module), function)
        return loader(Storage(self.store), self.teacher_id, device)


@dataclass(frozen=True)
class ShardJob:
    """What an actor must know to write the shards of one teacher for one text: ids only, the sentences are stored."""

    teacher: TeacherHandle
    text_id: str
    origins: Mapping[Need, Origin] = field(default_factory=dict)
    """Every signal that the task stores, sources before what derives from them."""


class ShardWriter:
    """Computes the shards of one range of sentences a call, and keeps the teachers it has loaded.

    At most two teachers stay in memory: rows come teacher by teacher, so only the turn from one to the
    next meets two.
    """

    def __init__(
        self,
        store: str,
        shard_jobs: Sequence[ShardJob],
        token_budget: int | None,
        threads: int = 1,
        gpus: float = 0.0,
    ):
        """gpus: how many, or which part of one, the actor was given. token_budget: as of a `PrecomputePlan`."""
        torch.set_num_threads(threads)
        self._store, self._shard_jobs = Storage(store), shard_jobs
        self._token_budget, self._gpus = token_budget, gpus
        self._teacher: Callable[[TeacherHandle], SentenceReader] = lru_cache(maxsize=2)(
            lambda handle: handle.load(assigned_device(gpus))
        )
        self._text: Callable[[str], Text] = lru_cache(maxsize=4)(lambda name: open_text(self._store, name))

    def __call__(self, row: PlainObject) -> PlainObject:
        """Write what `row` lacks.

        row: `task` (index of the shard job), `first` and `last` (rows of the text), `work`: JSON with `pending` (the
        names of the signals to write) and `standing` (name → entry of the shards that are there and are needed).
        Answers with `task`, `first`, the number of `sentences`, and `entries` (JSON: name → entry of each shard that
        was written) or the `error`.
        """
        known = {"task": row["task"], "first": row["first"], "sentences": row["last"] - row["first"]}
        answer = known | {"entries": "{}", "error": ""}
        try:
            entries = {name: entry.model_dump(mode="json") for name, entry in self._write(row)}
            return answer | {"entries": json.dumps(entries)}
        except Exception as error:
            return answer | {"error": _error_as_json(error, row)}
        finally:
            _trim_memory()

    def _write(self, row: PlainObject) -> Iterator[tuple[str, ShardEntry]]:
        job, work = self._shard_jobs[row["task"]], json.loads(row["work"])
        rows = RowRange(row["first"], row["last"])
        entries = {name: ShardEntry.model_validate(entry) for name, entry in work["standing"].items()}
        pending = [need for need in job.origins if need.name in work["pending"]]
        for need in [need for need in pending if SIGNALS[need.signal].once_per_teacher]:
            entries[need.name] = self._write_once(job, need)
            yield need.name, entries[need.name]
        taken = [
            need for need in pending if not (SIGNALS[need.signal].once_per_teacher or _is_derived(job, need))
        ]
        derived = [need for need in pending if _is_derived(job, need)]
        if taken:
            with part_of_work(0.0, LABELLED if derived else 1.0, "labelling"):
                found = self._write_taken(job, rows, taken)
            for need, entry in found.items():
                entries[need.name] = entry
                yield need.name, entry
        first = LABELLED if taken else 0.0
        for number, need in enumerate(derived):
            report_progress(first + (1 - first) * number / len(derived), f"computing {need.name}")
            yield need.name, self._write_derived(job, need, rows, entries)

    def _write_once(self, job: ShardJob, need: Need) -> ShardEntry:
        """A signal that is stored once per teacher, taken from its output for any sentence."""
        origin, rows = job.origins[need], RowRange(0, 1)
        folder = origin_folder(self._store, origin)
        entry = find_shard(folder, rows, origin=origin)
        if entry is not None:
            return entry
        # Actors may write this at the same time: they write the same bytes.
        sentence = self._text(job.text_id).sentences(np.zeros(1, np.int64))
        *_, output = next(iter(self._teacher(job.teacher).outputs(sentence, 1)))
        values = [_array(part)[None] for part in SIGNALS[need.signal].take(output, need)]
        columns, error = encode_columns(need, job.teacher.sizes, np.zeros(0, int), np.zeros(0, int), values)
        return write_shard(folder, columns, origin=origin, rows=rows, largest_error=error)

    def _write_taken(self, job: ShardJob, rows: RowRange, needs: Sequence[Need]) -> dict[Need, ShardEntry]:
        """Signals that are taken from the teacher's outputs for the sentences of `rows`."""
        folders = {need: origin_folder(self._store, job.origins[need]) for need in needs}
        # Another sweep may have written some since this one looked.
        found = {need: find_shard(folders[need], rows, origin=job.origins[need]) for need in needs}
        entries = {need: entry for need, entry in found.items() if entry is not None}
        lacking = [need for need in needs if need not in entries]
        if not lacking:
            return entries
        text = self._text(job.text_id)
        lengths_N = text.lengths[rows.first : rows.last]
        order_N = shard_order(lengths_N)
        values = self._outputs(job, text, order_N + rows.first, lengths_N[order_N], lacking)
        for need in lacking:
            first = SIGNALS[need.signal].columns[0]
            columns, error = encode_columns(
                need, job.teacher.sizes, order_N + rows.first,
                first.row_counts(lengths_N[order_N], job.teacher.unit),
                [np.concatenate(part) for part in values[need]],
            )  # fmt: skip
            entries[need] = write_shard(
                folders[need], columns, origin=job.origins[need], rows=rows, largest_error=error
            )
        return entries

    def _outputs(
        self, job: ShardJob, text: Text, rows_N: np.ndarray, lengths_N: np.ndarray, needs: Sequence[Need]
    ) -> dict[Need, list[list[np.ndarray]]]:
        """For each need and column the values of every sentence, in the order of `rows_N`."""
        values: dict[Need, list[list[np.ndarray]]] = {
            need: [[] for _ in SIGNALS[need.signal].columns] for need in needs
        }
        layers = tuple(sorted({need.layer for need in needs if need.layer is not None}))
        teacher = self._teacher(job.teacher)  # before its device is asked what is free
        share = self._gpus or 1.0
        most = self._token_budget or piece_budget(assigned_device(self._gpus), share=share)
        for run in with_progress(length_buckets(lengths_N, most)):
            sentences = text.sentences(rows_N[run])
            collected: dict[tuple[Need, int, int], np.ndarray] = {}
            for places, batch, output in teacher.outputs(sentences, most, layers=layers):
                for need in needs:
                    collected |= _per_sentence(job, need, places, batch, output)
            for need in needs:
                for number, column in enumerate(SIGNALS[need.signal].columns):
                    own = [collected.get((need, number, place)) for place in range(len(sentences))]
                    _check_shapes(job, need, column, own, lengths_N[run])
                    values[need][number] += own  # type: ignore[arg-type]
        return values

    def _write_derived(
        self, job: ShardJob, need: Need, rows: RowRange, entries: Mapping[str, ShardEntry]
    ) -> ShardEntry:
        """A signal that is computed from stored ones, always from the rounded values."""
        signal, stored, first = SIGNALS[need.signal], {}, None
        for own in (each for each in job.origins if each.signal in signal.sources):
            entry = entries.get(own.name) or self._write_once(job, own)
            batch = open_shard(origin_folder(self._store, job.origins[own]), entry)
            stored[own.signal] = decode_columns(own, batch)
            if not SIGNALS[own.signal].once_per_teacher:
                first = (entry, batch)
        if first is None or signal.derive is None:
            raise RunError(f"{need.name} derives from stored signals, and the teacher has none of them")
        entry, batch = first
        lengths_N = batch["length"].to_numpy()
        most = self._token_budget or CPU_PIECES  # it is derived there
        values = signal.derive(stored, lengths_N, need, most, job.teacher.legal)
        columns, error = encode_columns(
            need, job.teacher.sizes, batch["sentence"].to_numpy(), lengths_N, values
        )
        folder = origin_folder(self._store, job.origins[need])
        return write_shard(
            folder, columns, origin=job.origins[need], rows=rows, largest_error=error, source=entry.sha256
        )


def _is_derived(job: ShardJob, need: Need) -> bool:
    return is_derived(need, job.teacher.offers)


def _per_sentence(
    job: ShardJob, need: Need, places: Sequence[int], batch: TokenBatch, output: Output
) -> dict[tuple[Need, int, int], np.ndarray]:
    """(need, column, sentence) → its values [rows, V], padding removed."""
    signal, words, found = SIGNALS[need.signal], batch.lengths_B.tolist(), {}
    parts = zip(signal.columns, signal.take(output, need), strict=True)
    for number, (column, part) in enumerate(parts):
        for place, padded, own in zip(places, _array(part), words, strict=True):
            found[need, number, place] = column.strip_padding(padded, own, job.teacher.unit)
    return found


def _check_shapes(
    job: ShardJob, need: Need, column: Column, own: Sequence[np.ndarray | None], lengths_B: np.ndarray
) -> None:
    width = column.width(job.teacher.sizes, need)
    expected = [(rows, width) for rows in column.row_counts(lengths_B, job.teacher.unit).tolist()]
    got = [None if values is None else values.shape for values in own]
    wrong = next((pair for pair in zip(got, expected, strict=True) if pair[0] != pair[1]), None)
    if wrong is not None:
        message = f"{wrong[0]} where {wrong[1]} was expected"
        raise RunError(f"teacher {job.teacher.teacher_id} gave {need.name} of the wrong shape: {message}")


def _array(part: Tensor) -> np.ndarray:
    part = part.detach()
    return (part.float() if part.is_floating_point() else part).cpu().numpy()


def raise_error(error: str) -> None:
    """Raise the error that an actor answered with, if it did."""
    if error:
        plain = json.loads(error)
        raise getattr(errors, plain["kind"])(*plain["fields"])


def _trim_memory() -> None:
    """Give free memory back to the system: batches have many sizes, and between them the C library would keep ever more
    of it.
    """
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _error_as_json(error: Exception, row: PlainObject) -> str:
    # What a Ray Data function raises reaches the driver as text only, without its class and fields. So errors
    # travel as data: our own by name and fields, all others as a RunError.
    if not isinstance(error, RaykdError):
        logging.getLogger(__name__).exception("a teacher failed")
        where = f"on sentences {row['first']} to {row['last']}"
        error = RunError(f"the teacher failed {where}: {type(error).__name__}: {error}")
    return json.dumps({"kind": type(error).__name__, "fields": error.args})
