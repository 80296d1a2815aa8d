"""The manifest of one stored signal: what it is, and every shard with its size and checksum. Written last.

No manifest, no transfer set: a folder without one was left by a killed precompute and is never read
before it is finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from raykd.errors import StoreError
from raykd.signals import Need
from raykd.spec import Frozen
from raykd.storage.layout import MANIFEST
from raykd.storage.store import Stamp, Storage
from raykd.transfer.names import RowRange, signal_id

RERUN_HINT = "run raykd precompute again"


class Origin(Frozen):
    """What a stored signal is: whose, for which text, of what shape. The same for all shards of a folder.

    `weights_sha256` is the checksum of the teacher's weights; `text_id`, `k`, `layer` and `decoding` are empty where
    they do not apply.
    """

    signal: str
    layer: int | None = None
    teacher_id: str
    weights_sha256: str
    text_id: str
    tags: int
    k: int
    decoding: str = ""

    @property
    def need(self) -> Need:
        """The need that the signal was stored for."""
        return Need(self.signal, self.k, self.layer)

    @property
    def signal_id(self) -> str:
        """The identity of the stored signal."""
        return signal_id(self.need, teacher_id=self.teacher_id, text_id=self.text_id, decoding=self.decoding)

    def serves(self, wanted: Origin) -> bool:
        """Whether this is what is wanted. A plan made before the weights are known does not ask for them."""
        weights = self.weights_sha256 if not wanted.weights_sha256 else wanted.weights_sha256
        return self == wanted.model_copy(update={"weights_sha256": weights})


class ShardContent(Frozen):
    """What a shard holds: its rows of the text (`first` included, `last` not), their tokens, and the largest error of
    its encoding.

    `source` is, for a derived shard, the sha256 of the shard that it was computed from.
    """

    first: int
    last: int
    tokens: int
    largest_error: float = 0.0
    source: str = ""

    @property
    def rows(self) -> RowRange:
        """The rows of the text that the shard holds."""
        return RowRange(self.first, self.last)


class ShardEntry(ShardContent):
    """One shard file, with its size and checksum."""

    name: str
    bytes: int
    sha256: str


class Manifest(Frozen):
    """What one signal folder holds.

    `largest_error` is the largest absolute error of rounding to float16 or to 8 bits.
    """

    origin: Origin
    rows: int
    tokens: int
    largest_error: float
    shards: tuple[ShardEntry, ...]

    @staticmethod
    def from_entries(origin: Origin, shards: Iterable[ShardEntry]) -> Manifest:
        """The manifest of a folder that holds these shards and nothing else."""
        entries = tuple(sorted(shards, key=lambda entry: entry.first))
        return Manifest(
            origin=origin,
            rows=sum(len(entry.rows) for entry in entries),
            tokens=sum(entry.tokens for entry in entries),
            largest_error=max((entry.largest_error for entry in entries), default=0.0),
            shards=entries,
        )

    @property
    def bytes(self) -> int:
        """Bytes of all shards."""
        return sum(shard.bytes for shard in self.shards)


def write_manifest(folder: Storage, manifest: Manifest) -> None:
    """Commit a signal folder: all its shards are there."""
    folder.write_json(MANIFEST, manifest.model_dump(mode="json"))


def read_manifest(folder: Storage) -> Manifest:
    """The manifest of a signal folder. Raises StoreError when missing, damaged or of another store format."""
    found = find_manifest(folder)
    if found is None:
        name = f"{folder.address}/{MANIFEST}"
        raise StoreError(name, "there is no manifest, so the signal was never finished", RERUN_HINT)
    return found


def find_manifest(folder: Storage) -> Manifest | None:
    """The manifest of a signal folder, or None when it has none yet.

    Raises StoreError when it is damaged or of another store format.
    """
    return folder.find_json(MANIFEST, lambda plain: Manifest.model_validate_json(json.dumps(plain)))


def lost_shards(files: Mapping[str, Stamp], entries: Iterable[ShardEntry]) -> tuple[ShardEntry, ...]:
    """The entries whose file is not among those of their folder, or not of the size it was written with."""
    return tuple(
        entry for entry in entries if entry.name not in files or files[entry.name].bytes != entry.bytes
    )
