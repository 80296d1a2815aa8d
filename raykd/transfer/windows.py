"""The windows of an epoch: groups of shards that are in memory together, in random order.

Windows serve transfer sets that are larger than memory should hold. A unit is the rows of one shard of a teacher's
largest signal, with the shards of its other signals. Units are shuffled and grouped into windows.

Shapes: U units of all teachers, N rows that an epoch is planned for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raykd.corpora.batching import plan_windows
from raykd.signals import SIGNALS, Need
from raykd.transfer.signal_store import SignalStore

WINDOW_BYTES = 2**30
"""Largest size of the signals of one window. The next window is fetched meanwhile, so twice as much is resident. It
decides the order of sentences, so it is no setting: a run would differ on a smaller machine."""

ShardKey = tuple[int, Need, int]
"""A teacher, one of its signals, and the number of a shard."""


class Units:
    """The units of a transfer set, numbered over all its teachers."""

    def __init__(self, stores: Sequence[Mapping[Need, SignalStore]]):
        self._stores = [
            {need: store for need, store in opened.items() if not SIGNALS[need.signal].once_per_teacher}
            for opened in stores
        ]
        self._largest = [
            max(opened.values(), key=lambda store: store.manifest.bytes, default=None)
            for opened in self._stores
        ]
        counts = [0 if store is None else len(store.manifest.shards) for store in self._largest]
        self._base = np.concatenate([[0], np.cumsum(counts)])
        self.bytes_U = np.array(
            [size for teacher in range(len(stores)) for size in self._bytes(teacher)], dtype=np.int64
        )

    def unit_of_rows(self, teacher_N: np.ndarray, text_rows_N: np.ndarray) -> np.ndarray:
        """Return the units of rows [N].

        Args:
            teacher_N: the teacher of each row.
            text_rows_N: its row of that teacher's text.
        """
        unit_N = np.zeros(len(teacher_N), np.int32)
        for teacher, store in enumerate(self._largest):
            if store is not None:
                of_teacher_N = teacher_N == teacher
                unit_N[of_teacher_N] = self._base[teacher] + store.shards_of(text_rows_N[of_teacher_N])
        return unit_N

    def shards(self, unit: int) -> list[ShardKey]:
        """Return the shards with rows of a unit."""
        teacher = int(np.searchsorted(self._base, unit, side="right")) - 1
        largest = self._largest[teacher]
        if largest is None:
            return []
        rows = largest.manifest.shards[unit - int(self._base[teacher])].rows
        keys = []
        for need, store in self._stores[teacher].items():
            first, last = store.shards_of(np.array([rows.first, rows.last - 1])).tolist()
            keys += [(teacher, need, number) for number in range(first, last + 1)]
        return keys

    def _bytes(self, teacher: int) -> list[int]:
        """Return the bytes of a teacher's units: the shard, and a share of the other signals."""
        largest = self._largest[teacher]
        if largest is None:
            return []
        other_bytes_per_row = sum(
            store.manifest.bytes / max(store.manifest.rows, 1)
            for store in self._stores[teacher].values()
            if store is not largest
        )
        return [entry.bytes + int(other_bytes_per_row * len(entry.rows)) for entry in largest.manifest.shards]


def windows_of(units: Units, unit_N: np.ndarray, *, seed: int, epoch: int, shuffle: bool) -> list[np.ndarray]:
    """Return the windows of one epoch: for each its places in `unit_N`, ascending.

    Args:
        units: the units of the transfer set.
        unit_N: the unit of each row.
        seed: seed of the order.
        epoch: number of the epoch.
        shuffle: order windows at random.
    """
    present = np.flatnonzero(np.bincount(unit_N, minlength=len(units.bytes_U)))
    sizes = units.bytes_U[present] if len(units.bytes_U) else np.zeros(len(present), np.int64)
    groups = plan_windows(sizes, max_bytes=WINDOW_BYTES, seed=seed, epoch=epoch, shuffle=shuffle)
    window_U = np.zeros(1 + int(present.max(initial=-1)), np.int32)
    for window, group in enumerate(groups):
        window_U[present[group]] = window
    window_N = window_U[unit_N]
    order = np.argsort(window_N, kind="stable")
    return np.split(order, np.searchsorted(window_N[order], np.arange(1, len(groups))))
