"""The transfer set: the signals of teachers for sentences, stored once and mapped by every run.

names      folders and file names of stored signals     text        the sentences that a teacher reads
shard      one Arrow file                               manifest    content of a finished signal, with checksums
index      place of each sentence in the shards         arrow_file  mapping an Arrow file, verifying its checksum
coverage   stored and missing shards of a signal
signal_store, ragged, transfer_set                      opening, joining and gathering into batches
windows    shards that are trained on together          prefetch    loading of the next shards in the background
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
