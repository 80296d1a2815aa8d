"""One shard: an Arrow IPC file with one record batch, uncompressed, so that reading is mapping.

Columns: `sentence` int64 (row of the text), `length` int32, and
    emissions, token_marginals   a column of that name, list<fixed_size_list<float16>[Y]>, one inner list per token
    kbest       `paths`       list<fixed_size_list<uint8|int16>[K]>, one inner list per token
                `scores`      fixed_size_list<float32>[K]
    transitions `transitions` fixed_size_list<float32>[Y * Y] (from, to); `start`, `end`
    fixed_size_list<float32>[Y]
Rows are sorted by length. The schema's metadata says what the shard is and hashes its columns, so that a
shard left by a killed precompute can be trusted, or not, before a manifest speaks for it.

Shapes: N sentences of the shard, P tokens of the shard, T tokens of one sentence, Y tags, K best.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from raykd.errors import RunError
from raykd.spec import Frozen
from raykd.storage import Storage
from raykd.transfer.manifest import Origin, ShardEntry, damaged
from raykd.transfer.names import FORMAT, RowRange

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_METADATA = b"raykd"
_FLOAT16_MAX = float(np.finfo(np.float16).max)


class Header(Frozen):
    """What a shard says about itself, in the metadata of its Arrow schema. `content` hashes the columns."""

    format: int
    origin: Origin
    first: int
    last: int
    tokens: int
    largest_error: float
    source: str
    content: str


@dataclass(frozen=True)
class Transitions:
    """What a chain teacher says once: `transitions_YY[from, to]`, scores of the first and the last tag."""

    transitions_YY: Float[np.ndarray, "tag tag"]
    start_Y: Float[np.ndarray, " tag"]
    end_Y: Float[np.ndarray, " tag"]


def token_batch(
    signal: str, sentences_N: Int[np.ndarray, " sentence"], scores: Sequence[Float[np.ndarray, "_ tag"]]
) -> tuple[pa.RecordBatch, float]:
    """The columns of a shard of emissions or log token marginals, and the largest absolute error of its float16.

    Each token's maximum is subtracted before rounding: a chain's distribution does not change by it, and marginals
    are renormalised where they are read. Scores below float16's range become its lowest finite number, -inf
    stays. Raises RunError when a token has no finite maximum: no distribution can be read from it.
    """
    lengths_N = np.array([len(own) for own in scores], np.int32)
    scores_PY = np.concatenate(scores).astype(np.float32)
    maxima_P = scores_PY.max(axis=1, keepdims=True)
    if not np.isfinite(maxima_P).all():
        token = int(np.flatnonzero(~np.isfinite(maxima_P[:, 0]))[0])
        row = int(sentences_N[np.searchsorted(np.cumsum(lengths_N), token, side="right")])
        raise RunError(f"the teacher gave {signal} without a finite maximum for the sentence in row {row}")
    scores_PY -= maxima_P
    finite_PY = np.isfinite(scores_PY)
    rounded_PY = np.where(finite_PY, scores_PY.clip(-_FLOAT16_MAX), scores_PY).astype(np.float16)
    errors = np.abs(rounded_PY[finite_PY].astype(np.float32) - scores_PY[finite_PY])
    columns = {"sentence": pa.array(sentences_N), "length": pa.array(lengths_N)}
    columns[signal] = ragged(lengths_N, rounded_PY)
    return pa.record_batch(columns), float(errors.max(initial=0.0))


def transition_batch(said: Transitions) -> pa.RecordBatch:
    """The columns of the transition signal: one row."""
    parts = {"transitions": said.transitions_YY, "start": said.start_Y, "end": said.end_Y}
    return pa.record_batch(
        {name: fixed(np.asarray(part, np.float32).reshape(1, -1)) for name, part in parts.items()}
    )


def transitions_of(batch: pa.RecordBatch) -> Transitions:
    """The transitions that `transition_batch` laid out."""
    flat, start_Y, end_Y = (rows_of(batch, name)[0] for name in ("transitions", "start", "end"))
    return Transitions(flat.reshape(len(start_Y), len(start_Y)), start_Y, end_Y)


def write_shard(
    folder: Storage,
    batch: pa.RecordBatch,
    *,
    origin: Origin,
    rows: RowRange,
    largest_error: float = 0.0,
    source: str = "",
) -> ShardEntry:
    """Commit one shard atomically and say what was written. Raises StoreError when it cannot be written."""
    tokens = int(np.sum(batch["length"].to_numpy())) if "length" in batch.schema.names else 0
    stated = {"origin": origin, "first": rows.first, "last": rows.last, "tokens": tokens}
    header = Header(
        format=FORMAT, **stated, largest_error=largest_error, source=source, content=_content(batch)
    )
    data = _ipc(batch.replace_schema_metadata({_METADATA: header.model_dump_json().encode()}))
    folder.write(rows.name, data)
    return _entry(header, rows.name, len(data), hashlib.sha256(data).hexdigest())


def open_shard(folder: Storage, name: str) -> pa.RecordBatch:
    """Map one shard into memory. Raises StoreError naming it when its footer cannot be read."""
    path = folder.local_path(name)
    try:
        # The mapping outlives the file handle: it is released with the last array that looks into it,
        # so thousands of shards need no file descriptors.
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            if reader.num_record_batches != 1:
                raise pa.ArrowInvalid(f"{reader.num_record_batches} record batches where one is written")
            return reader.get_batch(0)
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged(folder, name, f"its footer cannot be read ({error})") from error


def find_shard(
    folder: Storage, rows: RowRange, *, origin: Origin, source: str | None = None
) -> ShardEntry | None:
    """The entry of a shard that stands in the folder without a manifest, or None when it must be computed.

    A shard that cannot be read, is of other rows, another origin or another source, or does not hash to
    what it says it holds counts as missing: nobody has promised it yet.
    """
    if not folder.exists(rows.name):
        return None
    data = folder.read(rows.name)
    try:
        batch = pa.ipc.open_file(pa.BufferReader(data)).get_batch(0)
        header = Header.model_validate_json((batch.schema.metadata or {})[_METADATA])
        intact = header.content == _content(batch)
    except (pa.ArrowException, OSError, IndexError, KeyError, ValueError, ValidationError):
        return None
    ours = header.format == FORMAT and header.origin.serves(origin) and source in (None, header.source)
    if not (intact and ours and (header.first, header.last) == (rows.first, rows.last)):
        return None
    return _entry(header, rows.name, len(data), hashlib.sha256(data).hexdigest())


def ragged(lengths_N: np.ndarray, values_PW: np.ndarray) -> pa.ListArray:
    """Rows of unequal length with W values per token: list<fixed_size_list[W]>."""
    offsets = np.concatenate([[0], np.cumsum(lengths_N)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), fixed(values_PW))


def fixed(values_NW: np.ndarray) -> pa.FixedSizeListArray:
    """Rows of W values: fixed_size_list[W]."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values_NW.reshape(-1)), values_NW.shape[1])


def tokens_of(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """The values [P, W] of a ragged column, looked at in place."""
    values = batch[name].values
    return values.values.to_numpy().reshape(-1, values.type.list_size)


def rows_of(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """The values [N, W] of a fixed-width column, looked at in place."""
    return batch[name].values.to_numpy().reshape(-1, batch[name].type.list_size)


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _content(batch: pa.RecordBatch) -> str:
    hashed = hashlib.sha256()
    for column in batch.columns:
        for buffer in column.buffers():
            # Buffers are padded on disk but not in memory: the digest of each keeps them apart without
            # its padding.
            hashed.update(hashlib.sha256(buffer if buffer is not None else b"").digest())
    return hashed.hexdigest()


def _entry(header: Header, name: str, size: int, sha256: str) -> ShardEntry:
    return ShardEntry(
        name=name,
        first=header.first,
        last=header.last,
        tokens=header.tokens,
        bytes=size,
        sha256=sha256,
        largest_error=header.largest_error,
        source=header.source,
    )
