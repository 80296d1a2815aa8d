"""One stored signal, opened for reading.

Manifest and index are checked when it is opened, each shard when it is first used.

Shapes: N sentences of the text, B of a batch, S shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raykd.errors import StoreError
from raykd.signals import SIGNALS
from raykd.storage.store import Storage
from raykd.transfer.index import Index, read_index
from raykd.transfer.manifest import RERUN_HINT, Manifest, read_manifest
from raykd.transfer.names import signal_folder, stored_ks
from raykd.transfer.shard import damaged_shard, decode_columns, open_shard


@dataclass(frozen=True)
class SignalStore:
    """One committed signal folder; a signal that is stored once per teacher has no index."""

    folder: Storage
    manifest: Manifest
    index: Index | None

    @staticmethod
    def open(folder: Storage) -> SignalStore:
        """Open a signal folder, but none of its shards.

        Raises:
            StoreError: it has no manifest or no index.
        """
        manifest = read_manifest(folder)
        once = SIGNALS[manifest.origin.signal].once_per_teacher
        return SignalStore(folder, manifest, None if once else read_index(folder, manifest))

    @cached_property
    def first_S(self) -> np.ndarray:
        """First rows of the shards, ascending."""
        return np.array([entry.first for entry in self.manifest.shards], np.int64)

    def shards_of(self, rows_B: np.ndarray) -> np.ndarray:
        """Return the shard numbers of rows of the text [B]."""
        return np.searchsorted(self.first_S, rows_B, side="right") - 1

    def locate(self, rows_B: np.ndarray) -> np.ndarray:
        """Return the places of rows of the text.

        Args:
            rows_B: rows of the text.

        Returns:
            Shard, place among its sentences, first list row, and number of list rows: int64 [4, B].
        """
        index = self._indexed()
        columns = (index.place_N, index.start_N, index.length_N)
        return np.stack([self.shards_of(rows_B), *(column[rows_B] for column in columns)], dtype=np.int64)

    def load(self, number: int) -> tuple[np.ndarray, ...]:
        """Return the columns of one shard as stored, mapped: [R, V] or [N, V] each.

        Args:
            number: number of the shard.

        Raises:
            StoreError: the shard, which the error names, is missing, damaged, or not the one that the index describes.
        """
        entry = self.manifest.shards[number]
        batch = open_shard(self.folder, entry)
        need = self.manifest.origin.need
        values = decode_columns(need, batch)
        if not SIGNALS[need.signal].once_per_teacher:
            sentence_N, length_N = batch["sentence"].to_numpy(), batch["length"].to_numpy()
            expected_rows = [
                int(length_N.sum()) if column.is_list else len(sentence_N)
                for column in SIGNALS[need.signal].columns
            ]
            agrees = self._indexed().agrees(entry.rows, sentence_N, length_N)
            if not agrees or [len(part) for part in values] != expected_rows:
                problem = "its rows or lengths differ from the index"
                raise damaged_shard(self.folder, entry.name, problem)
        return values

    def _indexed(self) -> Index:
        if self.index is None:
            raise ValueError(f"{self.manifest.origin.signal} is stored once per teacher and has no rows")
        return self.index


def open_kbest(store: Storage, kbest_id: str, k: int, *, source: Manifest | None = None) -> SignalStore:
    """Open the K best paths with the smallest stored K of at least `k`.

    Args:
        store: the store.
        kbest_id: identity of the signal.
        k: smallest K.
        source: manifest of the emissions; paths computed from other emissions are refused. None: not compared.

    Raises:
        StoreError: there is no such K, or its paths were computed from other emissions.
    """
    stale: StoreError | None = None
    for stored in (stored_k for stored_k in stored_ks(store, kbest_id) if stored_k >= k):
        folder = signal_folder(store, kbest_id, k=stored)
        stale = None if source is None else _stale(folder, read_manifest(folder), source)
        if stale is None:
            return SignalStore.open(folder)
    if stale is not None:
        raise stale
    address = signal_folder(store, kbest_id, k=k).address
    stored_list = ", ".join(map(str, stored_ks(store, kbest_id))) or "none"
    raise StoreError(
        address, f"there is no finished K-best with K ≥ {k} (finished: {stored_list})", RERUN_HINT
    )


def _stale(folder: Storage, manifest: Manifest, source: Manifest) -> StoreError | None:
    sources = {entry.first: entry.sha256 for entry in source.shards}
    for entry in manifest.shards:
        if entry.source != sources.get(entry.first):
            return StoreError(
                f"{folder.address}/{entry.name}",
                f"it was computed from {source.origin.signal} that have been replaced since",
                RERUN_HINT,
            )
    return None
