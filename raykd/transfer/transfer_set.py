"""A transfer set: the signals of several teachers joined over one training table, gathered into batches.

Each teacher covers some rows of the table, in the order of its text; every row has at most one teacher.

Shapes: G rows of the training table, B batch, T time, Y tags, K best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from raykd.errors import SignalError
from raykd.needs import to_read
from raykd.signals import SIGNALS, Column, Need, TeacherBatch
from raykd.storage import Storage
from raykd.transfer.names import signal_folder
from raykd.transfer.ragged import Ragged, join
from raykd.transfer.shard import is_list
from raykd.transfer.signal_store import SignalStore, open_kbest


@dataclass(frozen=True)
class Covered:
    """Which rows of the training table a teacher covers, and by which rows of the text that its signals are for; by
    its first rows where these are not given."""

    source: Source
    rows: np.ndarray
    text_rows: np.ndarray | None = None


@runtime_checkable
class Source(Protocol):
    """The signals of one teacher for one text: `Need.name` → signal id."""

    @property
    def folders(self) -> Mapping[str, str]: ...


class TransferSet:
    """What the teachers of one run give for its training table. Build it with `open`."""

    def __init__(
        self,
        teacher_G: np.ndarray,
        covered: Sequence[Covered],
        stores: Sequence[Mapping[Need, SignalStore]],
    ):
        self._teacher_G = teacher_G
        rows, picked = [each.rows for each in covered], [each.text_rows for each in covered]
        self._columns: dict[Need, tuple[Ragged, ...]] = {}
        self._once: dict[Need, tuple[torch.Tensor, ...]] = {}
        for need in dict.fromkeys(need for opened in stores for need in opened):
            own = [opened[need] for opened in stores if need in opened]
            if SIGNALS[need.signal].once:
                parts = zip(*(store.once() for store in own), strict=True)
                self._once[need] = tuple(torch.from_numpy(np.concatenate(part)) for part in parts)
            else:
                self._columns[need] = tuple(
                    join([_column(store, column, need) for store in own], rows, picked, len(teacher_G))
                    for column in SIGNALS[need.signal].columns
                )

    @staticmethod
    def open(storage: Storage, covered: Iterable[Covered], needs: Iterable[Need]) -> TransferSet:
        """Map the signals that `needs` reads; what this process has not read before is compared with its checksum.

        Raises StoreError when a signal is missing or damaged, SignalError when two teachers cover one
        row, do not have the same tags, or a table has more rows than its text.
        """
        joined = tuple(covered)
        wanted = tuple(needs)
        teacher_G = _teacher_of_rows([each.rows for each in joined])
        stores = [_open_source(storage, each.source, wanted) for each in joined]
        _check(joined, stores)
        return TransferSet(teacher_G, joined, stores)

    def hidden_size(self, layer: int) -> int:
        """Components of the stored hidden states of `layer`."""
        return next(
            columns[0].blocks[0].shape[1] for need, columns in self._columns.items() if need.layer == layer
        )

    def gather(self, sentence_rows: np.ndarray, device: torch.device | str = "cpu") -> TeacherBatch:
        """What the teachers give for these rows of the training table, padded, on `device`.

        Raises SignalError when no teacher covers one of the rows.
        """
        rows_B = np.asarray(sentence_rows, np.int64)
        teacher_B = self._teacher_G[rows_B]
        if (teacher_B < 0).any():
            row = int(rows_B[np.argmax(teacher_B < 0)])
            raise SignalError(f"row {row} of the training table is covered by no teacher of the transfer set")
        values = {
            need: self._gathered(need, columns, rows_B, device) for need, columns in self._columns.items()
        }
        index_B = torch.from_numpy(teacher_B.astype(np.int64))
        for need, parts in self._once.items():
            rows = tuple(part[index_B].to(device) for part in parts)
            values[need] = SIGNALS[need.signal].read(rows, index_B, need)
        return TeacherBatch.of(values)

    def _gathered(
        self, need: Need, columns: tuple[Ragged, ...], rows_B: np.ndarray, device: torch.device | str
    ) -> Any:
        signal = SIGNALS[need.signal]
        parts = [torch.from_numpy(column.gather(rows_B)).to(device) for column in columns]
        own = zip(parts, signal.columns, strict=True)
        padded = tuple(part if is_list(column) else part[:, 0] for part, column in own)
        lengths_B = torch.from_numpy(columns[0].length_G[rows_B].astype(np.int64)).to(device)
        return signal.read(padded, lengths_B, need)


def _column(store: SignalStore, column: Column, need: Need) -> Ragged:
    # Teachers may have stored different numbers of best paths: each serves every smaller one.
    return store.column(column).narrowed(need.k) if need.k else store.column(column)


def _teacher_of_rows(covered: Sequence[np.ndarray]) -> np.ndarray:
    rows = 1 + max((int(np.max(covers, initial=-1)) for covers in covered), default=-1)
    teacher_G = np.full(rows, -1, np.int32)
    for teacher, covers in enumerate(covered):
        if len(np.unique(covers)) != len(covers) or (teacher_G[covers] >= 0).any():
            raise SignalError("two teachers of the transfer set cover one row of the training table")
        teacher_G[covers] = teacher
    return teacher_G


def _open_source(storage: Storage, source: Source, needs: Sequence[Need]) -> dict[Need, SignalStore]:
    stores: dict[Need, SignalStore] = {}
    # K-best last: it must have been computed from the emissions that are read with it.
    for need in sorted(
        to_read(needs, {name.partition(".")[0] for name in source.folders}), key=lambda each: each.k
    ):
        if need.k:
            opened = {own.signal: store.manifest for own, store in stores.items()}
            first = next((opened[name] for name in SIGNALS[need.signal].sources if name in opened), None)
            stores[need] = open_kbest(storage, source.folders[need.name], need.k, source=first)
        else:
            stores[need] = SignalStore.open(signal_folder(storage, source.folders[need.name]))
    return stores


def _check(joined: Sequence[Covered], stores: Sequence[Mapping[Need, SignalStore]]) -> None:
    tags = {store.manifest.origin.tags for opened in stores for store in opened.values()}
    if len(tags) > 1:
        raise SignalError(
            f"the teachers of one transfer set must have the same tags, got {sorted(tags)} tags"
        )
    for each, opened in zip(joined, stores, strict=True):
        wanted = len(each.rows) if each.text_rows is None else int(each.text_rows.max(initial=-1)) + 1
        for need, store in opened.items():
            if not SIGNALS[need.signal].once and wanted > store.manifest.rows:
                raise SignalError(
                    f"{store.folder.address} covers {store.manifest.rows} sentences, fewer than {wanted}"
                )
