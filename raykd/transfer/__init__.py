"""The transfer set: what teachers say about sentences, stored once and mapped by every run.

names      where a signal stands, what it is called   text      the sentences that a teacher reads
shard      one Arrow file                             manifest  what a finished signal holds, with checksums
kbest      K best paths from stored emissions         coverage  what stands, what is pending
signal_store, ragged, transfer_set                    mapping, joining and gathering into batches
"""

from raykd.transfer.coverage import (
    Coverage,
    clean_temporaries,
    cover_kbest,
    cover_tokens,
    cover_transitions,
    origin_folder,
)
from raykd.transfer.kbest import buckets, kbest_batch, told_batch
from raykd.transfer.manifest import Manifest, Origin, ShardEntry, read_manifest, verify_shards
from raykd.transfer.names import RowRange, row_ranges, signal_id, signal_ids
from raykd.transfer.shard import (
    Transitions,
    find_shard,
    open_shard,
    token_batch,
    transition_batch,
    transitions_of,
    write_shard,
)
from raykd.transfer.signal_store import SignalStore
from raykd.transfer.text import Text, open_text, write_text
from raykd.transfer.transfer_set import TransferSet

__all__ = [
    "Coverage",
    "Manifest",
    "Origin",
    "RowRange",
    "ShardEntry",
    "SignalStore",
    "Text",
    "TransferSet",
    "Transitions",
    "buckets",
    "clean_temporaries",
    "cover_kbest",
    "cover_tokens",
    "cover_transitions",
    "find_shard",
    "kbest_batch",
    "open_shard",
    "open_text",
    "origin_folder",
    "read_manifest",
    "row_ranges",
    "signal_id",
    "signal_ids",
    "token_batch",
    "told_batch",
    "transition_batch",
    "transitions_of",
    "verify_shards",
    "write_shard",
    "write_text",
]
