"""Where a signal is stored, and under which name.

    <store>/transfer/<signal id>/shard-<first>-<last>.arrow …, shards.index, manifest.json
    <store>/transfer/<kbest id>/k<K>/shard-<first>-<last>.arrow …, shards.index, manifest.json
    <store>/transfer/<text id>/text.arrow, hashes.bin      the sentences themselves, as teachers read them

A shard's name holds which rows of its text are in it (`first` included, `last` not), so that shards cut at
different places never overwrite each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from raykd.identity import identity
from raykd.signals import SIGNALS, Need

if TYPE_CHECKING:
    from raykd.storage.store import Storage

FORMAT = 2
"""Version of the shards and manifests; another version is another signal id and is never read as this one."""

_KBEST_MANIFEST = re.compile(r"k(\d+)/manifest\.json")


@dataclass(frozen=True, order=True)
class RowRange:
    """Rows `first` (included) to `last` (not included) of a text: what one shard holds."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """File name of the shard that holds these rows."""
        return f"shard-{self.first:08d}-{self.last:08d}.arrow"

    def __len__(self) -> int:
        return self.last - self.first


def row_ranges(
    bytes_N: Sequence[np.ndarray], rows: int, *, shard_sentences: int, shard_bytes: int
) -> tuple[RowRange, ...]:
    """Cut `rows` sentences into ranges of `shard_sentences` each, the last one shorter.

    A range of which one signal takes more than `shard_bytes` is halved, and so on: `bytes_N` has, for each signal, the
    bytes of every sentence. So small signals keep whole ranges, and a large one is cut at the same places each time.
    """
    if shard_sentences < 1:
        raise ValueError(f"shard_sentences must be at least 1, got {shard_sentences}")
    ends = [np.concatenate([[0], np.cumsum(own)]) for own in bytes_N]
    starts = range(0, rows, shard_sentences)
    whole = (RowRange(first, min(first + shard_sentences, rows)) for first in starts)
    return tuple(part for each in whole for part in _halved(each, ends, shard_bytes))


def _halved(rows: RowRange, ends: Sequence[np.ndarray], most: int) -> list[RowRange]:
    largest = max((int(own[rows.last] - own[rows.first]) for own in ends), default=0)
    if largest <= most or len(rows) == 1:
        return [rows]
    middle = (rows.first + rows.last) // 2
    halves = (RowRange(rows.first, middle), RowRange(middle, rows.last))
    return [part for half in halves for part in _halved(half, ends, most)]


def signal_id(need: Need, *, teacher_id: str, text_id: str, decoding: str = "") -> str:
    """Identity of what one teacher gives for one text; of the teacher alone where that is stored once.

    `decoding` is part of it where the signal depends on it: best paths.

    How many best paths are stored is no part of it: the larger number serves every smaller one.
    """
    decides: dict[str, Any] = {"format": FORMAT, "teacher": teacher_id}
    if not SIGNALS[need.signal].once_per_teacher:
        decides["text"] = text_id
    if need.layer is not None:
        decides["layer"] = need.layer
    if decoding and SIGNALS[need.signal].decoded:
        decides["decoding"] = decoding
    return identity(need.signal, decides)


def signal_folder(store: Storage, signal_id: str, *, k: int = 0) -> Storage:
    """The folder of one stored signal; with `k` the one that holds K = `k` best paths per sentence."""
    return store.child("transfer", signal_id, *([f"k{k}"] if k else []))


def stored_ks(store: Storage, kbest_id: str) -> tuple[int, ...]:
    """Every K for which the K-best signal is complete in the store, ascending."""
    names = store.child("transfer", kbest_id).names()
    return tuple(sorted(int(match[1]) for name in names if (match := _KBEST_MANIFEST.fullmatch(name))))
