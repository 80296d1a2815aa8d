"""The manifest of one stored signal: its origin, and every shard with size and checksum. Written last.

A folder without a manifest was left by a killed precompute, and is never read before it is finished.
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
    """The teacher, text and shape of a stored signal; the same for all shards of a folder.

    Attributes:
        signal: name of the signal.
        layer: layer of hidden states; None for other signals.
        teacher_id: identity of the teacher.
        weights_sha256: checksum of the teacher's weights; empty in a plan made before they are known.
        text_id: identity of the text; empty for a signal stored once per teacher.
        tags: number of tags.
        k: number of best paths; 0 for other signals.
        decoding: identity of the decoding; empty where the signal does not depend on it.
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
        """The need for the signal."""
        return Need(self.signal, self.k, self.layer)

    @property
    def signal_id(self) -> str:
        """The identity of the stored signal."""
        return signal_id(self.need, teacher_id=self.teacher_id, text_id=self.text_id, decoding=self.decoding)

    def serves(self, requested: Origin) -> bool:
        """Return True for the requested signal; the checksum of weights may be missing in the request."""
        weights = self.weights_sha256 if not requested.weights_sha256 else requested.weights_sha256
        return self == requested.model_copy(update={"weights_sha256": weights})


class ShardContent(Frozen):
    """The rows of one shard.

    Attributes:
        first: first row of the text.
        last: row after the last one.
        tokens: tokens of all sentences.
        largest_error: largest absolute error of the encoding.
        source: sha256 of the shard that this one was derived from; empty where there is none.
    """

    first: int
    last: int
    tokens: int
    largest_error: float = 0.0
    source: str = ""

    @property
    def rows(self) -> RowRange:
        """Rows of the text in the shard."""
        return RowRange(self.first, self.last)


class ShardEntry(ShardContent):
    """One shard file, with its size and checksum."""

    name: str
    bytes: int
    sha256: str


class Manifest(Frozen):
    """The content of one signal folder.

    Attributes:
        origin: the signal.
        rows: number of sentences.
        tokens: number of their tokens.
        largest_error: largest absolute error of rounding to float16 or to 8 bits.
        shards: the shard files.
    """

    origin: Origin
    rows: int
    tokens: int
    largest_error: float
    shards: tuple[ShardEntry, ...]

    @staticmethod
    def from_entries(origin: Origin, shards: Iterable[ShardEntry]) -> Manifest:
        """Return the manifest of a folder with these shards only."""
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
    """Write the manifest, which commits the folder: all its shards must exist."""
    folder.write_json(MANIFEST, manifest.model_dump(mode="json"))


def read_manifest(folder: Storage) -> Manifest:
    """Return the manifest of a signal folder.

    Args:
        folder: the folder.

    Raises:
        StoreError: it is missing, damaged or of another store format.
    """
    manifest = find_manifest(folder)
    if manifest is None:
        name = f"{folder.address}/{MANIFEST}"
        raise StoreError(name, "the manifest is missing, so the signal was never finished", RERUN_HINT)
    return manifest


def find_manifest(folder: Storage) -> Manifest | None:
    """Return the manifest of a signal folder, or None if it is not finished.

    Raises:
        StoreError: it is damaged or of another store format.
    """
    return folder.find_json(MANIFEST, lambda plain: Manifest.model_validate_json(json.dumps(plain)))


def lost_shards(files: Mapping[str, Stamp], entries: Iterable[ShardEntry]) -> tuple[ShardEntry, ...]:
    """Return the entries without a file, or with a file of another size.

    Args:
        files: files of the folder.
        entries: the entries of its manifest.
    """
    return tuple(
        entry for entry in entries if entry.name not in files or files[entry.name].bytes != entry.bytes
    )
