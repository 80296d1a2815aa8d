"""One stored signal, read: its manifest checked, its shards mapped into memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from raykd.errors import StoreError
from raykd.signals import Column
from raykd.storage import Storage
from raykd.transfer.manifest import AGAIN, Manifest, damaged, read_manifest, verify_shards
from raykd.transfer.names import signal_folder, stored_ks
from raykd.transfer.ragged import Ragged
from raykd.transfer.shard import decode_columns, is_list, open_shard, rows_of, tokens_of


@dataclass(frozen=True)
class SignalStore:
    """One committed signal folder, its shards mapped: batch i is the content of the manifest's shard i."""

    folder: Storage
    manifest: Manifest
    batches: tuple[pa.RecordBatch, ...]

    @staticmethod
    def open(folder: Storage) -> SignalStore:
        """Map a signal folder; a shard that this process reads first is compared with its checksum.

        Raises StoreError, naming the shard, when there is no manifest, a shard is missing or damaged.
        """
        manifest = read_manifest(folder)
        verify_shards(folder, manifest.shards)
        batches = tuple(open_shard(folder, entry.name) for entry in manifest.shards)
        for entry, batch in zip(manifest.shards, batches, strict=True):
            if batch.num_rows != len(entry.rows):
                raise damaged(
                    folder, entry.name, f"{batch.num_rows} rows where {len(entry.rows)} were written"
                )
        return SignalStore(folder, manifest, batches)

    def column(self, column: Column) -> Ragged:
        """A column over the rows of the text; what is stored per sentence counts as one row of it."""
        blocks = tuple(
            (tokens_of if is_list(column) else rows_of)(batch, column.name) for batch in self.batches
        )
        block_N, start_N, length_N = (
            np.zeros(self.manifest.rows, kind) for kind in (np.int32, np.int64, np.int32)
        )
        for number, batch in enumerate(self.batches):
            rows = batch["sentence"].to_numpy()
            length = batch["length"].to_numpy() if is_list(column) else np.ones(len(rows), np.int32)
            self._check(number, rows, length, blocks[number])
            block_N[rows], length_N[rows] = number, length
            start_N[rows] = np.cumsum(length) - length
        return Ragged(blocks, block_N, start_N, length_N)

    def once(self) -> tuple[np.ndarray, ...]:
        """The columns [1, V] of a signal that is stored once per teacher."""
        return decode_columns(self.manifest.origin.need, self.batches[0])

    def _check(self, number: int, rows: np.ndarray, lengths: np.ndarray, block: np.ndarray) -> None:
        entry = self.manifest.shards[number]
        expected = np.arange(entry.first, entry.last)
        if not np.array_equal(np.sort(rows), expected) or lengths.sum() != len(block):
            raise damaged(self.folder, entry.name, "its rows or lengths are not those it was written with")


def open_kbest(store: Storage, kbest_id: str, k: int, *, source: Manifest | None = None) -> SignalStore:
    """The smallest stored K ≥ `k`. Paths that were computed from other emissions than `source` are refused."""
    stale: StoreError | None = None
    for stored in (each for each in stored_ks(store, kbest_id) if each >= k):
        folder = signal_folder(store, kbest_id, k=stored)
        stale = None if source is None else _stale(folder, read_manifest(folder), source)
        if stale is None:
            return SignalStore.open(folder)
    if stale is not None:
        raise stale
    where = signal_folder(store, kbest_id, k=k).address
    stored_list = ", ".join(map(str, stored_ks(store, kbest_id))) or "none"
    raise StoreError(where, f"no finished K-best with K ≥ {k} (finished: {stored_list})", AGAIN)


def _stale(folder: Storage, manifest: Manifest, source: Manifest) -> StoreError | None:
    sources = {entry.first: entry.sha256 for entry in source.shards}
    for entry in manifest.shards:
        if entry.source != sources.get(entry.first):
            return StoreError(
                f"{folder.address}/{entry.name}",
                f"it was computed from {source.origin.signal} that were replaced since",
                AGAIN,
            )
    return None
