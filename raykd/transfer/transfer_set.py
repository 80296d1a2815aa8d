"""A transfer set: the signals of several teachers for one training table, gathered into batches.

Each teacher covers some rows of the table, in the order of its text; every row has at most one teacher.

Shapes: G rows of the training table, B batch, T time, Y tags, K best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from raykd.errors import SignalError
from raykd.needs import signals_to_read
from raykd.signals import SIGNALS, Need, TeacherBatch
from raykd.storage.store import Storage
from raykd.structures.device import to_device
from raykd.transfer.names import signal_folder
from raykd.transfer.prefetch import Prefetcher
from raykd.transfer.ragged import gather
from raykd.transfer.signal_store import SignalStore, open_kbest
from raykd.transfer.windows import ShardKey, Units, windows_of

REMOTE_THREADS = 4
"""Threads that prefetch from an object store, where most time is waiting; from local files one thread is enough."""


@dataclass(frozen=True)
class TeacherRows:
    """Rows of the training table covered by one teacher, and the matching rows of the text of its signals.

    Attributes:
        source: the signals.
        rows: rows of the training table.
        text_rows: rows of the text; None: the first ones, in order.
    """

    source: Source
    rows: np.ndarray
    text_rows: np.ndarray | None = None

    @property
    def source_rows(self) -> np.ndarray:
        """Rows of the text, in the order of `rows`."""
        return np.arange(len(self.rows)) if self.text_rows is None else self.text_rows


@runtime_checkable
class Source(Protocol):
    """The signals of one teacher for one text."""

    @property
    def stored_ids(self) -> Mapping[str, str]:
        """Ids of the stored signals by `Need.name`."""
        ...


class TransferSet:
    """The teachers' signals for the training table of one run. Build it with `open`, end it with `close`.

    Opening it opens no shards but those of signals stored once per teacher. A shard is compared with its checksum when
    it is first used. In memory each row has only its teacher and its row of that teacher's text.
    """

    def __init__(
        self,
        teacher_G: np.ndarray,
        covered: Sequence[TeacherRows],
        stores: Sequence[Mapping[Need, SignalStore]],
    ):
        self._teacher_G, self._text_row_G = teacher_G, _text_rows(covered, len(teacher_G))
        self._stores, self._needs = stores, tuple(dict.fromkeys(need for opened in stores for need in opened))
        self._columns_of_teachers = {
            need: _stack_teachers([opened[need] for opened in stores if need in opened])
            for need in self._needs
            if SIGNALS[need.signal].once_per_teacher
        }
        remote = any(not store.folder.is_local for opened in stores for store in opened.values())
        self._shards: Prefetcher[ShardKey, tuple[np.ndarray, ...]] = Prefetcher(
            self._load, threads=REMOTE_THREADS if remote else 1
        )
        self._units = Units(stores)

    @staticmethod
    def open(storage: Storage, covered: Iterable[TeacherRows], needs: Iterable[Need]) -> TransferSet:
        """Open the signals of all teachers for some needs, directly or derived.

        Args:
            storage: the store.
            covered: rows and signals of each teacher.
            needs: needs of the objective.

        Raises:
            StoreError: a signal is missing or damaged.
            SignalError: teachers have different tags, cover the same rows, or store fewer sentences than they cover.
        """
        joined, needed = tuple(covered), tuple(needs)
        teacher_G = _teacher_of_rows([part.rows for part in joined])
        stores = [_open_source(storage, part.source, needed) for part in joined]
        _check(joined, stores)
        return TransferSet(teacher_G, joined, stores)

    def hidden_size(self, layer: int) -> int:
        """Return the number of components of the stored hidden states of a layer."""
        need, teacher = next(
            (need, teacher)
            for teacher, opened in enumerate(self._stores)
            for need in opened
            if need.layer == layer
        )
        return self._shards.get((teacher, need, 0))[0].shape[1]

    def bytes_of(self, rows: np.ndarray) -> int:
        """Return the bytes of all signals for some rows of the training table, with the rest of their shards."""
        return int(self._units.bytes_U[np.unique(self._units.unit_of_rows(*self._locate_rows(rows)))].sum())

    def plan(self, rows: np.ndarray, *, seed: int, epoch: int, shuffle: bool = True) -> list[np.ndarray]:
        """Return the windows of an epoch: for each its places in `rows`, ascending.

        All rows are one window if their signals take less than `WINDOW_BYTES`. The windows depend on the stored
        signals, seed and epoch only.

        Args:
            rows: rows of the training table.
            seed: seed of the order.
            epoch: number of the epoch.
            shuffle: order windows at random.

        Raises:
            SignalError: no teacher covers one of the rows.
        """
        unit_N = self._units.unit_of_rows(*self._locate_rows(rows))
        return windows_of(self._units, unit_N, seed=seed, epoch=epoch, shuffle=shuffle)

    def prefetch(self, windows: Sequence[np.ndarray]) -> None:
        """Load the shards of the next windows in the background, and drop all others.

        Args:
            windows: rows of each window, in the order in which windows are read.
        """
        units = (np.unique(self._units.unit_of_rows(*self._locate_rows(rows))).tolist() for rows in windows)
        keys = (key for window_units in units for unit in window_units for key in self._units.shards(unit))
        self._shards.prefetch(dict.fromkeys(keys))

    def gather(self, sentence_rows: np.ndarray, device: torch.device | str = "cpu") -> TeacherBatch:
        """Return the teachers' signals for a batch, padded.

        Args:
            sentence_rows: rows of the training table.
            device: device of the tensors.

        Raises:
            SignalError: no teacher covers one of the rows.
            StoreError: a shard is missing or damaged.
        """
        teacher_B, text_rows_B = self._locate_rows(np.asarray(sentence_rows, np.int64))
        values = {
            need: self._read_signal(need, teacher_B, text_rows_B, device)
            for need in self._needs
            if need not in self._columns_of_teachers
        }
        index_B = torch.from_numpy(teacher_B.astype(np.int64))
        for need, parts in self._columns_of_teachers.items():
            rows = tuple(to_device(part[index_B], device) for part in parts)
            values[need] = SIGNALS[need.signal].read(index_B, *rows)
        return TeacherBatch.from_signals(values)

    def close(self) -> None:
        """End the background threads and unmap all shards."""
        self._shards.close()

    def _locate_rows(self, rows_B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return teachers and text rows for rows of the training table."""
        teacher_B = self._teacher_G[rows_B]
        if (teacher_B < 0).any():
            row = int(rows_B[np.argmax(teacher_B < 0)])
            raise SignalError(f"row {row} of the training table is covered by no teacher of the transfer set")
        return teacher_B, self._text_row_G[rows_B]

    def _load(self, key: ShardKey) -> tuple[np.ndarray, ...]:
        teacher, need, number = key
        columns = self._stores[teacher][need].load(number)
        # Teachers may have stored different numbers of best paths: each serves every smaller one.
        return tuple(column[:, : need.k] for column in columns) if need.k else columns

    def _read_signal(
        self, need: Need, teacher_B: np.ndarray, text_rows_B: np.ndarray, device: torch.device | str
    ) -> Any:
        signal = SIGNALS[need.signal]
        places_4B = np.empty((4, len(teacher_B)), np.int64)
        for teacher in np.unique(teacher_B).tolist():
            of_teacher_B = teacher_B == teacher
            places_4B[:, of_teacher_B] = self._stores[teacher][need].locate(text_rows_B[of_teacher_B])
        shard_B, place_B, start_B, length_B = places_4B
        # One number for the teacher and its shard.
        block_B = teacher_B.astype(np.int64) << 32 | shard_B
        parts = []
        for number, column in enumerate(signal.columns):
            block_of = partial(self._block, need, number)
            if column.is_list:
                parts.append(gather(block_of, block_B, start_B, length_B))
            else:
                parts.append(gather(block_of, block_B, place_B, np.ones_like(place_B))[:, 0])
        padded = tuple(to_device(torch.from_numpy(part), device) for part in parts)
        lengths_B = torch.from_numpy(length_B if signal.columns[0].is_list else np.ones_like(length_B))
        return signal.read(to_device(lengths_B, device), *padded)

    def _block(self, need: Need, column: int, block: int) -> np.ndarray:
        return self._shards.get((block >> 32, need, block & 0xFFFFFFFF))[column]


def _stack_teachers(stores: Sequence[SignalStore]) -> tuple[torch.Tensor, ...]:
    """Return the columns of a signal stored once per teacher, one row for each teacher."""
    parts = zip(*(store.load(0) for store in stores), strict=True)
    return tuple(torch.from_numpy(np.concatenate(part)) for part in parts)


def _text_rows(covered: Sequence[TeacherRows], rows: int) -> np.ndarray:
    text_row_G = np.zeros(rows, np.int32)
    for part in covered:
        text_row_G[part.rows] = part.source_rows
    return text_row_G


def _teacher_of_rows(covered: Sequence[np.ndarray]) -> np.ndarray:
    rows = 1 + max((int(np.max(covers, initial=-1)) for covers in covered), default=-1)
    teacher_G = np.full(rows, -1, np.int16)
    for teacher, covers in enumerate(covered):
        if len(np.unique(covers)) != len(covers) or (teacher_G[covers] >= 0).any():
            raise SignalError("two teachers of the transfer set cover one row of the training table")
        teacher_G[covers] = teacher
    return teacher_G


def _open_source(storage: Storage, source: Source, needs: Sequence[Need]) -> dict[Need, SignalStore]:
    stores: dict[Need, SignalStore] = {}
    # K-best last: it must have been computed from the emissions that are read with it.
    for need in sorted(
        signals_to_read(needs, {name.partition(".")[0] for name in source.stored_ids}),
        key=lambda need: need.k,
    ):
        if need.k:
            opened = {opened_need.signal: store.manifest for opened_need, store in stores.items()}
            first = next((opened[name] for name in SIGNALS[need.signal].sources if name in opened), None)
            stores[need] = open_kbest(storage, source.stored_ids[need.name], need.k, source=first)
        else:
            stores[need] = SignalStore.open(signal_folder(storage, source.stored_ids[need.name]))
    return stores


def _check(joined: Sequence[TeacherRows], stores: Sequence[Mapping[Need, SignalStore]]) -> None:
    tags = {store.manifest.origin.tags for opened in stores for store in opened.values()}
    if len(tags) > 1:
        raise SignalError(
            f"the teachers of one transfer set must have the same tags, got {sorted(tags)} tags"
        )
    for part, opened in zip(joined, stores, strict=True):
        sentences = int(part.source_rows.max(initial=-1)) + 1
        for need, store in opened.items():
            if not SIGNALS[need.signal].once_per_teacher and sentences > store.manifest.rows:
                raise SignalError(
                    f"{store.folder.address} covers {store.manifest.rows} sentences, fewer than {sentences}"
                )
