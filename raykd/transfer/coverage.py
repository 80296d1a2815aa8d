"""The stored part of a signal, and the part that must still be computed.

A complete folder has a manifest. A folder without one was left by a killed precompute: its shards are checked one by
one. Temporary files of a killed writer are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raykd.signals import SIGNALS
from raykd.storage.layout import INDEX, MANIFEST
from raykd.storage.store import Storage
from raykd.transfer.index import Index, write_index
from raykd.transfer.manifest import Manifest, Origin, ShardEntry, find_manifest, lost_shards, write_manifest
from raykd.transfer.names import RowRange, signal_folder, stored_ks
from raykd.transfer.shard import find_shard


@dataclass(frozen=True)
class Coverage:
    """The state of one signal folder.

    Attributes:
        folder: the folder.
        origin: the signal: its teacher, text and shape.
        stored: shards that exist.
        pending: rows whose shards are missing.
        committed: True if the folder has a manifest of this signal.
        indexed: True if the folder has the index, or the signal needs none.
    """

    folder: Storage
    origin: Origin
    stored: tuple[ShardEntry, ...]
    pending: tuple[RowRange, ...]
    committed: bool
    indexed: bool

    @property
    def complete(self) -> bool:
        """True if nothing is left to compute or to write."""
        return self.computed and self.indexed

    @property
    def computed(self) -> bool:
        """True if nothing is left to compute."""
        return self.committed and not self.pending

    def commit(self, computed: Sequence[ShardEntry], words_N: np.ndarray, rows_N: np.ndarray) -> None:
        """Write index and manifest, where they are missing.

        Args:
            computed: the shards computed since.
            words_N: words of each sentence of the text.
            rows_N: rows of each sentence in the signal's first column.

        Raises:
            ValueError: a pending shard is not among those computed.
        """
        if self.complete:
            return
        entries = {entry.first: entry for entry in (*self.stored, *computed)}
        missing = [rows.name for rows in self.pending if rows.first not in entries]
        if missing:
            raise ValueError(f"{self.folder.address} cannot be committed: {', '.join(missing)} not computed")
        manifest = Manifest.from_entries(self.origin, entries.values())
        if not self.indexed:
            write_index(
                self.folder, Index.from_ranges([entry.rows for entry in manifest.shards], words_N, rows_N)
            )
        if not self.computed:
            write_manifest(self.folder, manifest)


def clean_temporaries(folder: Storage) -> None:
    """Remove temporary files of killed writers.

    Args:
        folder: a signal folder.
    """
    for name in folder.abandoned_files():
        folder.remove(name)


def find_coverage(
    store: Storage, origin: Origin, ranges: Sequence[RowRange], *, source: Coverage | None = None
) -> Coverage:
    """Return the state of one signal in the store; a committed signal keeps the row ranges of its manifest.

    Of K best paths the smallest complete K of at least `origin.k` is taken.

    Args:
        store: the store.
        origin: the signal.
        ranges: rows of each shard, where the signal is not committed.
        source: coverage of the signal that this one is derived from. Its row ranges are followed, and a shard is
            pending if it was computed from other shards, or if its source is pending.
    """
    if SIGNALS[origin.signal].once_per_teacher:
        return _cover(store, origin, [RowRange(0, 1)])
    sources = None if source is None else {entry.first: entry.sha256 for entry in source.stored}
    if source is not None:
        ranges = sorted([entry.rows for entry in source.stored] + list(source.pending))
    stored = stored_ks(store, origin.signal_id) if origin.k else ()
    for k in (stored_k for stored_k in stored if stored_k >= origin.k):
        larger = _cover(store, origin.model_copy(update={"k": k}), ranges, sources=sources)
        if larger.computed:
            return larger
    return _cover(store, origin, ranges, sources=sources)


def origin_folder(store: Storage, origin: Origin) -> Storage:
    """Return the folder of a signal.

    Args:
        store: the store.
        origin: the signal.
    """
    return signal_folder(store, origin.signal_id, k=origin.k)


def _cover(
    store: Storage, origin: Origin, ranges: Sequence[RowRange], *, sources: Mapping[int, str] | None = None
) -> Coverage:
    folder = origin_folder(store, origin)
    files = folder.files()  # one request instead of one for each file
    manifest = find_manifest(folder) if MANIFEST in files else None
    if manifest is not None and sources is None and not SIGNALS[origin.signal].once_per_teacher:
        ranges = [entry.rows for entry in manifest.shards]
    is_current = manifest is not None and [entry.rows for entry in manifest.shards] == list(ranges)
    if manifest is not None and is_current and manifest.origin.serves(origin):
        lost = {entry.first for entry in lost_shards(files, manifest.shards)}
        entries = {entry.first: entry for entry in manifest.shards if entry.first not in lost}
    else:
        manifest = None
        requested = [
            (rows, None if sources is None else sources.get(rows.first, "pending")) for rows in ranges
        ]
        existing = ((rows, source) for rows, source in requested if rows.name in files)
        checked = (find_shard(folder, rows, origin=origin, source=source) for rows, source in existing)
        entries = {entry.first: entry for entry in checked if entry is not None}
    if sources is not None:
        entries = {first: entry for first, entry in entries.items() if entry.source == sources.get(first)}
    pending = tuple(rows for rows in ranges if rows.first not in entries)
    committed = manifest is not None
    indexed = SIGNALS[origin.signal].once_per_teacher or (committed and INDEX in files)
    return Coverage(folder, origin, tuple(entries.values()), pending, committed, indexed)
