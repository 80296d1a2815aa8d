"""The actor of the precompute pipeline: holds teachers, and turns one row (a range of sentences) into shards.

It does not depend on Ray: it is built from plain data, called with a plain row, and answers with one.
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
    """A teacher or an encoder in memory."""

    def outputs(
        self, sentences: Sequence[Sequence[str]], token_budget: int, *, layers: Sequence[int] = ()
    ) -> Iterator[tuple[list[int], TokenBatch, Output]]:
        """Yield outputs for all sentences, each once, in batches.

        Args:
            sentences: lists of words.
            token_budget: pieces of a batch, padding included.
            layers: layers whose hidden states are needed.

        Yields:
            The positions of the batch's sentences, the batch, and the output.
        """
        ...


Loader = Callable[[Storage, str, torch.device], SentenceReader]
LABELLED = 0.7
"""Approximate share of a range spent on labelling, if other signals are derived from its results."""


@dataclass(frozen=True)
class TeacherHandle:
    """The address of a teacher for an actor: `loader(Storage(store), teacher_id, device)`.

    Attributes:
        store: URI of the store.
        teacher_id: Identity of the teacher.
        loader: "module:function", or the function itself; a function defined in `__main__` is sent along.
        sizes: Sizes that decide the shapes of the signals.
        weights_sha256: Empty in a plan made before the teacher is trained.
        offers: Names of the teacher's signals.
        unit: The unit that gets one label ("word", …).
        signals_id: Identity of the signals other than best paths (`teacher_signals_id`); empty: the teacher's.
        decoding: Name of the labellings among which best paths are sought.
        legal: The legal transitions of these labellings.
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
        """Load the teacher on a device."""
        report_progress(None, "loading the model")
        loader = self.loader
        if isinstance(loader, str):
            module, _, function = loader.partition(":")
            loader = getattr(importlib.import_module(module), function)
        return loader(Storage(self.store), self.teacher_id, device)


@dataclass(frozen=True)
class ShardJob:
    """The shards of one teacher for one text, as an actor knows them: ids only, because the sentences are stored."""

    teacher: TeacherHandle
    text_id: str
    origins: Mapping[Need, Origin] = field(default_factory=dict)
    """Signals that the task stores, sources before derived signals."""


class ShardWriter:
    """Computes the shards of one range of sentences per call, and keeps loaded teachers in memory.

    At most two teachers are in memory: rows come teacher by teacher, so only the change from one to the next needs two.
    """

    def __init__(
        self,
        store: str,
        shard_jobs: Sequence[ShardJob],
        token_budget: int | None,
        threads: int = 1,
        gpus: float = 0.0,
    ):
        """Prepare a writer; no teacher is loaded yet.

        Args:
            store: URI of the store.
            shard_jobs: by the index of their task.
            token_budget: as in a `PrecomputePlan`.
            threads: of PyTorch.
            gpus: number of GPUs of the actor, or the part of one.
        """
        torch.set_num_threads(threads)
        self._store, self._shard_jobs = Storage(store), shard_jobs
        self._token_budget, self._gpus = token_budget, gpus
        self._teacher: Callable[[TeacherHandle], SentenceReader] = lru_cache(maxsize=2)(
            lambda handle: handle.load(assigned_device(gpus))
        )
        self._text: Callable[[str], Text] = lru_cache(maxsize=4)(lambda name: open_text(self._store, name))

    def __call__(self, row: PlainObject) -> PlainObject:
        """Write the missing shards of a row.

        Args:
            row: `task` (index of the shard job), `first` and `last` (rows of the text), `work`: JSON with `pending`
                (names of the signals to write) and `standing` (name → entry of stored shards that are needed as
                sources).

        Returns:
            `task`, `first`, the number of `sentences`, and `entries` (JSON: name → entry of each written shard) or the
            `error`.
        """
        range_of_row = {"task": row["task"], "first": row["first"], "sentences": row["last"] - row["first"]}
        answer = range_of_row | {"entries": "{}", "error": ""}
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
        output_needs = [
            need for need in pending if not (SIGNALS[need.signal].once_per_teacher or _is_derived(job, need))
        ]
        derived = [need for need in pending if _is_derived(job, need)]
        if output_needs:
            with part_of_work(0.0, LABELLED if derived else 1.0, "labelling"):
                output_entries = self._write_taken(job, rows, output_needs)
            for need, entry in output_entries.items():
                entries[need.name] = entry
                yield need.name, entry
        first = LABELLED if output_needs else 0.0
        for number, need in enumerate(derived):
            report_progress(first + (1 - first) * number / len(derived), f"computing {need.name}")
            yield need.name, self._write_derived(job, need, rows, entries)

    def _write_once(self, job: ShardJob, need: Need) -> ShardEntry:
        """Write a signal stored once per teacher, taken from the output for any sentence."""
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
        """Write signals taken from the teacher's outputs for the sentences of `rows`."""
        folders = {need: origin_folder(self._store, job.origins[need]) for need in needs}
        # Another sweep may have written some of them in the meantime.
        stored = {need: find_shard(folders[need], rows, origin=job.origins[need]) for need in needs}
        entries = {need: entry for need, entry in stored.items() if entry is not None}
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
        """The values of the sentences, for each need and column, in the order of `rows_N`."""
        values: dict[Need, list[list[np.ndarray]]] = {
            need: [[] for _ in SIGNALS[need.signal].columns] for need in needs
        }
        layers = tuple(sorted({need.layer for need in needs if need.layer is not None}))
        teacher = self._teacher(job.teacher)  # loaded before the free memory of its device is read
        share = self._gpus or 1.0
        budget = self._token_budget or piece_budget(assigned_device(self._gpus), share=share)
        for run in with_progress(length_buckets(lengths_N, budget)):
            sentences = text.sentences(rows_N[run])
            collected: dict[tuple[Need, int, int], np.ndarray] = {}
            for places, batch, output in teacher.outputs(sentences, budget, layers=layers):
                for need in needs:
                    collected |= _per_sentence(job, need, places, batch, output)
            for need in needs:
                for number, column in enumerate(SIGNALS[need.signal].columns):
                    column_values = [collected.get((need, number, place)) for place in range(len(sentences))]
                    _check_shapes(job, need, column, column_values, lengths_N[run])
                    values[need][number] += column_values  # type: ignore[arg-type]
        return values

    def _write_derived(
        self, job: ShardJob, need: Need, rows: RowRange, entries: Mapping[str, ShardEntry]
    ) -> ShardEntry:
        """Write a signal computed from stored signals, always from the rounded values."""
        signal, stored, first = SIGNALS[need.signal], {}, None
        for source in (origin for origin in job.origins if origin.signal in signal.sources):
            entry = entries.get(source.name) or self._write_once(job, source)
            batch = open_shard(origin_folder(self._store, job.origins[source]), entry)
            stored[source.signal] = decode_columns(source, batch)
            if not SIGNALS[source.signal].once_per_teacher:
                first = (entry, batch)
        if first is None or signal.derive is None:
            raise RunError(f"{need.name} derives from stored signals, and the teacher has none of them")
        entry, batch = first
        lengths_N = batch["length"].to_numpy()
        budget = self._token_budget or CPU_PIECES  # signals are derived on the CPU
        values = signal.derive(stored, lengths_N, need, budget, job.teacher.legal)
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
    """(need, column, sentence) → values [rows, V] of the sentence, without padding."""
    signal, words, values = SIGNALS[need.signal], batch.lengths_B.tolist(), {}
    parts = zip(signal.columns, signal.take(output, need), strict=True)
    for number, (column, part) in enumerate(parts):
        for place, padded, length in zip(places, _array(part), words, strict=True):
            values[need, number, place] = column.strip_padding(padded, length, job.teacher.unit)
    return values


def _check_shapes(
    job: ShardJob, need: Need, column: Column, sentences: Sequence[np.ndarray | None], lengths_B: np.ndarray
) -> None:
    width = column.width(job.teacher.sizes, need)
    expected = [(rows, width) for rows in column.row_counts(lengths_B, job.teacher.unit).tolist()]
    actual = [None if values is None else values.shape for values in sentences]
    wrong = next((pair for pair in zip(actual, expected, strict=True) if pair[0] != pair[1]), None)
    if wrong is not None:
        message = f"{wrong[0]} where {wrong[1]} was expected"
        raise RunError(f"teacher {job.teacher.teacher_id} gave {need.name} of the wrong shape: {message}")


def _array(part: Tensor) -> np.ndarray:
    part = part.detach()
    return (part.float() if part.is_floating_point() else part).cpu().numpy()


def raise_error(error: str) -> None:
    """Raise the error in an actor's answer, if there is one."""
    if error:
        plain = json.loads(error)
        raise getattr(errors, plain["kind"])(*plain["fields"])


def _trim_memory() -> None:
    """Return free memory to the system: with batches of many sizes the C library would keep more and more of it."""
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _error_as_json(error: Exception, row: PlainObject) -> str:
    # An exception from a Ray Data function reaches the driver as text only, without its class and fields. So errors
    # travel as data: raykd's own by name and fields, all others as a RunError.
    if not isinstance(error, RaykdError):
        logging.getLogger(__name__).exception("a teacher failed")
        place = f"on sentences {row['first']} to {row['last']}"
        error = RunError(f"the teacher failed {place}: {type(error).__name__}: {error}")
    return json.dumps({"kind": type(error).__name__, "fields": error.args})
