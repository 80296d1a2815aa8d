"""What of a signal is stored already, and what must still be computed.

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
    """One signal folder: shards that are there, rows whose shard is pending, whether a manifest commits it."""

    folder: Storage
    origin: Origin
    stored: tuple[ShardEntry, ...]
    pending: tuple[RowRange, ...]
    committed: bool
    indexed: bool
    """Whether the index is there too, where the signal has one."""

    @property
    def complete(self) -> bool:
        """Nothing is left to compute or to write."""
        return self.computed and self.indexed

    @property
    def computed(self) -> bool:
        """Nothing is left to compute."""
        return self.committed and not self.pending

    def commit(self, computed: Sequence[ShardEntry], words_N: np.ndarray, rows_N: np.ndarray) -> None:
        """Write the index and the manifest of the shards that were there and of those `computed`, where they are not
        there already.

        words_N, rows_N: of each sentence of the text its words and its rows in the signal's first column.
        """
        if self.complete:
            return
        done = {entry.first: entry for entry in (*self.stored, *computed)}
        lacking = [rows.name for rows in self.pending if rows.first not in done]
        if lacking:
            raise ValueError(f"{self.folder.address} cannot be committed: {', '.join(lacking)} not computed")
        manifest = Manifest.from_entries(self.origin, done.values())
        if not self.indexed:
            write_index(
                self.folder, Index.from_ranges([entry.rows for entry in manifest.shards], words_N, rows_N)
            )
        if not self.computed:
            write_manifest(self.folder, manifest)


def clean_temporaries(folder: Storage) -> None:
    """Remove what killed writers left behind."""
    for name in folder.abandoned_files():
        folder.remove(name)


def find_coverage(
    store: Storage, origin: Origin, ranges: Sequence[RowRange], *, source: Coverage | None = None
) -> Coverage:
    """What of one signal is stored. A committed signal keeps the ranges that its manifest has.

    `source`: the coverage of the signal that it is derived from, whose ranges and shards it follows: a shard that was
    computed from others, or whose own source is pending, is pending. Of K best paths the smallest complete K that
    serves is taken.
    """
    if SIGNALS[origin.signal].once_per_teacher:
        return _cover(store, origin, [RowRange(0, 1)])
    sources = None if source is None else {entry.first: entry.sha256 for entry in source.stored}
    if source is not None:
        ranges = sorted([entry.rows for entry in source.stored] + list(source.pending))
    stored = stored_ks(store, origin.signal_id) if origin.k else ()
    for k in (each for each in stored if each >= origin.k):
        larger = _cover(store, origin.model_copy(update={"k": k}), ranges, sources=sources)
        if larger.computed:
            return larger
    return _cover(store, origin, ranges, sources=sources)


def origin_folder(store: Storage, origin: Origin) -> Storage:
    """The folder of the signal that `origin` describes."""
    return signal_folder(store, origin.signal_id, k=origin.k)


def _cover(
    store: Storage, origin: Origin, ranges: Sequence[RowRange], *, sources: Mapping[int, str] | None = None
) -> Coverage:
    folder = origin_folder(store, origin)
    files = folder.files()  # one request where each file would be one
    manifest = find_manifest(folder) if MANIFEST in files else None
    if manifest is not None and sources is None and not SIGNALS[origin.signal].once_per_teacher:
        ranges = [entry.rows for entry in manifest.shards]
    same = manifest is not None and [entry.rows for entry in manifest.shards] == list(ranges)
    if manifest is not None and same and manifest.origin.serves(origin):
        lost = {entry.first for entry in lost_shards(files, manifest.shards)}
        found = {entry.first: entry for entry in manifest.shards if entry.first not in lost}
    else:
        manifest = None
        wanted = [(rows, None if sources is None else sources.get(rows.first, "pending")) for rows in ranges]
        there = ((rows, source) for rows, source in wanted if rows.name in files)
        looked = (find_shard(folder, rows, origin=origin, source=source) for rows, source in there)
        found = {entry.first: entry for entry in looked if entry is not None}
    if sources is not None:
        found = {first: entry for first, entry in found.items() if entry.source == sources.get(first)}
    pending = tuple(rows for rows in ranges if rows.first not in found)
    committed = manifest is not None
    indexed = SIGNALS[origin.signal].once_per_teacher or (committed and INDEX in files)
    return Coverage(folder, origin, tuple(found.values()), pending, committed, indexed)
