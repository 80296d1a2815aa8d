"""What of a signal stands in the store already, and what must still be computed.

A complete folder speaks through its manifest. A folder without one was left by a killed precompute: its
shards are looked into one by one. Temporary files of a killed writer are nobody's shard and are never
looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from raykd.storage import Storage
from raykd.transfer.manifest import Manifest, Origin, ShardEntry, find_manifest, lost_shards, write_manifest
from raykd.transfer.names import RowRange, signal_folder, signal_id, stored_ks
from raykd.transfer.shard import find_shard

_ABANDONED_SECONDS = 600


@dataclass(frozen=True)
class Coverage:
    """One signal folder: shards that stand, rows whose shard is pending, whether a manifest commits it."""

    folder: Storage
    origin: Origin
    standing: tuple[ShardEntry, ...]
    pending: tuple[RowRange, ...]
    committed: bool

    @property
    def complete(self) -> bool:
        """Nothing is left to compute or to write."""
        return self.committed and not self.pending

    def commit(self, computed: Sequence[ShardEntry] = ()) -> None:
        """Write the manifest over the standing and the newly computed shards, unless it says so already."""
        if self.complete:
            return
        done = {entry.first: entry for entry in (*self.standing, *computed)}
        wanting = [rows.name for rows in self.pending if rows.first not in done]
        if wanting:
            raise ValueError(f"{self.folder.uri} cannot be committed: {', '.join(wanting)} not computed")
        write_manifest(self.folder, Manifest.of(self.origin, done.values()))


def clean_temporaries(folder: Storage) -> None:
    """Remove what writers killed while they wrote have left; object stores keep nothing of a broken put.

    A shard takes seconds to write: a temporary untouched for ten minutes has no writer any more, a younger
    one may belong to another sweep.
    """
    if not folder.is_local:
        return
    for path in Path(folder.uri).glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


def cover(
    folder: Storage, origin: Origin, ranges: Sequence[RowRange], *, sources: Mapping[int, str] | None = None
) -> Coverage:
    """Look into one signal folder for the shards of `ranges`.

    `sources` gives, for K-best, the sha256 of the emission (or marginal) shard at each first row; a shard
    computed from others, or whose own are pending themselves, is pending.
    """
    manifest = find_manifest(folder)
    if manifest is not None and manifest.origin.serves(origin) and _same_cut(manifest, ranges):
        lost = {entry.first for entry in lost_shards(folder, manifest.shards)}
        found = {entry.first: entry for entry in manifest.shards if entry.first not in lost}
    else:
        manifest = None
        wanted = [(rows, None if sources is None else sources.get(rows.first, "pending")) for rows in ranges]
        looked = (find_shard(folder, rows, origin=origin, source=source) for rows, source in wanted)
        found = {entry.first: entry for entry in looked if entry is not None}
    if sources is not None:
        found = {first: entry for first, entry in found.items() if entry.source == sources.get(first)}
    pending = tuple(rows for rows in ranges if rows.first not in found)
    return Coverage(folder, origin, tuple(found.values()), pending, committed=manifest is not None)


def cover_tokens(store: Storage, origin: Origin, ranges: Sequence[RowRange]) -> Coverage:
    """Coverage of a teacher's emissions or token marginals; a committed signal keeps the cut that its manifest has."""
    folder = origin_folder(store, origin)
    manifest = find_manifest(folder)
    return cover(folder, origin, ranges if manifest is None else [entry.rows for entry in manifest.shards])


def cover_kbest(store: Storage, tokens: Coverage, k: int) -> Coverage:
    """Coverage of the K best paths: the smallest complete K that serves `k`, else the folder of `k`."""
    ranges = sorted([entry.rows for entry in tokens.standing] + list(tokens.pending))
    sources = {entry.first: entry.sha256 for entry in tokens.standing}
    kbest_id = signal_id("kbest", teacher_id=tokens.origin.teacher_id, text_id=tokens.origin.text_id)
    for stored in (each for each in stored_ks(store, kbest_id) if each >= k):
        larger = tokens.origin.model_copy(update={"signal": "kbest", "k": stored})
        coverage = cover(origin_folder(store, larger), larger, ranges, sources=sources)
        if coverage.complete:
            return coverage
    own = tokens.origin.model_copy(update={"signal": "kbest", "k": k})
    return cover(origin_folder(store, own), own, ranges, sources=sources)


def cover_transitions(store: Storage, origin: Origin) -> Coverage:
    """Coverage of a teacher's transitions: one shard of one row."""
    return cover(origin_folder(store, origin), origin, [RowRange(0, 1)])


def origin_folder(store: Storage, origin: Origin) -> Storage:
    """The folder of the signal that `origin` describes."""
    own = signal_id(origin.signal, teacher_id=origin.teacher_id, text_id=origin.text_id)
    return signal_folder(store, origin.signal, own, k=origin.k)


def _same_cut(manifest: Manifest, ranges: Sequence[RowRange]) -> bool:
    return [entry.rows for entry in manifest.shards] == list(ranges)
