"""The windows of an epoch: where the signals of a transfer set are larger than memory should hold, an epoch goes
through a few shards at a time, in random order.

A unit is the rows of one shard of a teacher's largest signal; the shards of its other signals go with it. Units are
what is ordered at random and grouped.

Shapes: U units of all teachers, N rows that an epoch is planned for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raykd.corpora.batching import plan_windows
from raykd.signals import SIGNALS, Need
from raykd.transfer.signal_store import SignalStore

WINDOW_BYTES = 2**30
"""The most that the signals of one window take; the next window is fetched meanwhile, so twice as much is resident. It
decides the order of sentences, so it is no setting: a run would not be the same on a smaller machine."""

ShardKey = tuple[int, Need, int]
"""A teacher, its signal and the number of a shard."""


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
        """The unit of each row, by its teacher and its row of that teacher's text [N]."""
        unit_N = np.zeros(len(teacher_N), np.int32)
        for teacher, store in enumerate(self._largest):
            if store is not None:
                own_N = teacher_N == teacher
                unit_N[own_N] = self._base[teacher] + store.shards_of(text_rows_N[own_N])
        return unit_N

    def shards(self, unit: int) -> list[ShardKey]:
        """The shards that hold something of a unit."""
        teacher = int(np.searchsorted(self._base, unit, side="right")) - 1
        largest = self._largest[teacher]
        if largest is None:
            return []
        rows = largest.manifest.shards[unit - int(self._base[teacher])].rows
        found = []
        for need, store in self._stores[teacher].items():
            first, last = store.shards_of(np.array([rows.first, rows.last - 1])).tolist()
            found += [(teacher, need, number) for number in range(first, last + 1)]
        return found

    def _bytes(self, teacher: int) -> list[int]:
        """Bytes of each unit of a teacher: its shard, and as much of the other signals as its sentences have of all."""
        largest = self._largest[teacher]
        if largest is None:
            return []
        others = sum(
            store.manifest.bytes / max(store.manifest.rows, 1)
            for store in self._stores[teacher].values()
            if store is not largest
        )
        return [entry.bytes + int(others * len(entry.rows)) for entry in largest.manifest.shards]


def windows_of(units: Units, unit_N: np.ndarray, *, seed: int, epoch: int, shuffle: bool) -> list[np.ndarray]:
    """The windows of one epoch: of each the places in `unit_N`, ascending; all places, where there is one window."""
    present = np.flatnonzero(np.bincount(unit_N, minlength=len(units.bytes_U)))
    sizes = units.bytes_U[present] if len(units.bytes_U) else np.zeros(len(present), np.int64)
    groups = plan_windows(sizes, max_bytes=WINDOW_BYTES, seed=seed, epoch=epoch, shuffle=shuffle)
    window_U = np.zeros(1 + int(present.max(initial=-1)), np.int32)
    for window, group in enumerate(groups):
        window_U[present[group]] = window
    window_N = window_U[unit_N]
    order = np.argsort(window_N, kind="stable")
    return np.split(order, np.searchsorted(window_N[order], np.arange(1, len(groups))))
