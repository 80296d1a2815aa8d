"""Where a signal stands in the store, and what it is called.

    <store>/transfer/<signal id>/shard-<first>-<last>.arrow …, manifest.json
    <store>/transfer/<kbest id>/k<K>/shard-<first>-<last>.arrow …, manifest.json
    <store>/transfer/<text id>/text.arrow                  the sentences themselves, as teachers read them

A shard's name says which rows of its text it holds (`first` included, `last` not), so that shards cut at
different places never overwrite each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raykd.identity import identity
from raykd.signals import SIGNALS

if TYPE_CHECKING:
    from raykd.storage import Storage

FORMAT = 1
"""Version of the shards and manifests; another version is another signal id and is never read as this one."""

MANIFEST = "manifest.json"
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


def row_ranges(rows: int, shard_sentences: int) -> tuple[RowRange, ...]:
    """Cut `rows` sentences into ranges of `shard_sentences` each, the last one shorter."""
    if shard_sentences < 1:
        raise ValueError(f"shard_sentences must be at least 1, got {shard_sentences}")
    starts = range(0, rows, shard_sentences)
    return tuple(RowRange(first, min(first + shard_sentences, rows)) for first in starts)


def signal_id(signal: str, *, teacher_id: str, text_id: str) -> str:
    """Identity of what one teacher says about one text; of the teacher alone where that is said once."""
    decides = {"format": FORMAT, "teacher": teacher_id}
    if SIGNALS[signal].per != "teacher":
        decides["text"] = text_id
    return identity(signal, decides)


def signal_ids(teacher_id: str, text_id: str) -> dict[str, str]:
    """Signal name → signal id, for every signal that can be stored. Known before the teacher is trained."""
    return {name: signal_id(name, teacher_id=teacher_id, text_id=text_id) for name in SIGNALS}


def signal_folder(store: Storage, signal: str, signal_id: str, *, k: int = 0) -> Storage:
    """The folder of one stored signal; for "kbest" the one that holds `k` paths per sentence."""
    names = (signal_id, f"k{k}") if signal == "kbest" else (signal_id,)
    return store.child("transfer", *names)


def stored_ks(store: Storage, kbest_id: str) -> tuple[int, ...]:
    """Every K for which the K-best signal stands complete in the store, ascending."""
    names = store.child("transfer", kbest_id).names()
    return tuple(sorted(int(match[1]) for name in names if (match := _KBEST_MANIFEST.fullmatch(name))))
