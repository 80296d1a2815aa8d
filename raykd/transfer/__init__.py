"""The transfer set: what teachers give for sentences, stored once and mapped by every run.

names      where a signal is stored, under which name   text      the sentences that a teacher reads
shard      one Arrow file                               manifest  what a finished signal holds, with checksums
index      where each sentence is in the shards         mapped    mapping an Arrow file, comparing its checksum
coverage   what is stored, what is pending
signal_store, ragged, transfer_set                      opening, joining and gathering into batches
windows    which shards are trained on together         prefetch  the next ones, fetched meanwhile
"""

from raykd.transfer.coverage import Coverage, clean_temporaries, find_coverage, origin_folder
from raykd.transfer.index import read_index, shard_order
from raykd.transfer.manifest import Manifest, Origin, ShardEntry, read_manifest
from raykd.transfer.names import RowRange, row_ranges, signal_id
from raykd.transfer.shard import decode_columns, encode_columns, find_shard, open_shard, write_shard
from raykd.transfer.signal_store import SignalStore
from raykd.transfer.text import Text, open_text, read_hashes, write_text
from raykd.transfer.transfer_set import TeacherRows, TransferSet

__all__ = [
    "Coverage",
    "Manifest",
    "Origin",
    "RowRange",
    "ShardEntry",
    "SignalStore",
    "TeacherRows",
    "Text",
    "TransferSet",
    "clean_temporaries",
    "decode_columns",
    "encode_columns",
    "find_coverage",
    "find_shard",
    "open_shard",
    "open_text",
    "origin_folder",
    "read_hashes",
    "read_index",
    "read_manifest",
    "row_ranges",
    "shard_order",
    "signal_id",
    "write_shard",
    "write_text",
]
