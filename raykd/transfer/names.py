"""Folders, file names and identities of stored signals.

    <store>/transfer/<signal id>/shard-<first>-<last>.arrow …, shards.index, manifest.json
    <store>/transfer/<kbest id>/k<K>/shard-<first>-<last>.arrow …, shards.index, manifest.json
    <store>/transfer/<text id>/text.arrow, hashes.bin      the sentences themselves, as teachers read them

A shard's name holds the rows of its text (`first` included, `last` not), so that shards cut at different places never
overwrite each other.
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
"""Version of shards and manifests. It is part of every signal id, so other versions are never read as this one."""

_KBEST_MANIFEST = re.compile(r"k(\d+)/manifest\.json")


@dataclass(frozen=True, order=True)
class RowRange:
    """Rows `first` (included) to `last` (not included) of a text: the content of one shard."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """File name of the shard."""
        return f"shard-{self.first:08d}-{self.last:08d}.arrow"

    def __len__(self) -> int:
        return self.last - self.first


def row_ranges(
    bytes_N: Sequence[np.ndarray], rows: int, *, shard_sentences: int, shard_bytes: int
) -> tuple[RowRange, ...]:
    """Cut the rows of a text into ranges, one for each shard.

    A range that takes more than `shard_bytes` in one signal is halved, and so on. So small signals keep whole ranges,
    and a large one is cut at the same places each time.

    Args:
        bytes_N: for each signal, the bytes of every sentence.
        rows: number of sentences.
        shard_sentences: sentences of a range; the last one may be shorter.
        shard_bytes: largest size of a shard.

    Raises:
        ValueError: `shard_sentences` is below 1.
    """
    if shard_sentences < 1:
        raise ValueError(f"shard_sentences must be at least 1, got {shard_sentences}")
    ends = [np.concatenate([[0], np.cumsum(sizes_N)]) for sizes_N in bytes_N]
    starts = range(0, rows, shard_sentences)
    whole = (RowRange(first, min(first + shard_sentences, rows)) for first in starts)
    return tuple(part for rows_range in whole for part in _halve(rows_range, ends, shard_bytes))


def _halve(rows: RowRange, ends: Sequence[np.ndarray], shard_bytes: int) -> list[RowRange]:
    largest = max((int(sizes[rows.last] - sizes[rows.first]) for sizes in ends), default=0)
    if largest <= shard_bytes or len(rows) == 1:
        return [rows]
    middle = (rows.first + rows.last) // 2
    halves = (RowRange(rows.first, middle), RowRange(middle, rows.last))
    return [part for half in halves for part in _halve(half, ends, shard_bytes)]


def signal_id(need: Need, *, teacher_id: str, text_id: str, decoding: str = "") -> str:
    """Return the identity of one teacher's signal for one text.

    A signal that is stored once per teacher has the same identity for all texts. The number of best paths is no part of
    it: the larger number serves every smaller one.

    Args:
        need: the signal.
        teacher_id: identity of the teacher.
        text_id: identity of the text.
        decoding: identity of the decoding, which best paths depend on.
    """
    content: dict[str, Any] = {"format": FORMAT, "teacher": teacher_id}
    if not SIGNALS[need.signal].once_per_teacher:
        content["text"] = text_id
    if need.layer is not None:
        content["layer"] = need.layer
    if decoding and SIGNALS[need.signal].decoded:
        content["decoding"] = decoding
    return identity(need.signal, content)


def signal_folder(store: Storage, signal_id: str, *, k: int = 0) -> Storage:
    """Return the folder of one stored signal.

    Args:
        store: the store.
        signal_id: identity of the signal.
        k: number of best paths per sentence; 0 for other signals.
    """
    return store.child("transfer", signal_id, *([f"k{k}"] if k else []))


def stored_ks(store: Storage, kbest_id: str) -> tuple[int, ...]:
    """Return all K with complete K best paths in the store, ascending.

    Args:
        store: the store.
        kbest_id: identity of the signal.
    """
    names = store.child("transfer", kbest_id).names()
    return tuple(sorted(int(match[1]) for name in names if (match := _KBEST_MANIFEST.fullmatch(name))))
