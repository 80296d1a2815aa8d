from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from raykd.errors import RunError, StoreError
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.transfer import (
    Origin,
    RowRange,
    decode_columns,
    encode_columns,
    find_shard,
    open_shard,
    write_shard,
)
from raykd.transfer.shard import ragged_values

EMISSIONS = Need("emissions")
ORIGIN = Origin(signal="emissions", teacher_id="t", weights_sha256="w", text_id="x", tags=3, k=0)
ROWS = RowRange(20, 24)


def write(folder: Storage, **changes):
    draw = np.random.default_rng(0)
    lengths = np.array([1, 2, 2, 5])
    scores = draw.normal(size=(10, 3)).astype(np.float32)
    batch, error = encode_columns(EMISSIONS, Sizes(3), np.array([22, 20, 23, 21]), lengths, [scores])
    stated = {"origin": ORIGIN, "rows": ROWS, "largest_error": error, **changes}
    return scores, write_shard(folder, batch, **stated)


def test_emissions_come_back_rounded_after_their_maximum_was_taken_off(tmp_path):
    scores, entry = write(Storage(str(tmp_path)))
    batch = open_shard(Storage(str(tmp_path)), entry)
    expected = scores - scores.max(1, keepdims=True)
    np.testing.assert_array_equal(ragged_values(batch, "emissions"), expected.astype(np.float16))
    assert batch["sentence"].to_pylist() == [22, 20, 23, 21]
    assert batch["length"].to_pylist() == [1, 2, 2, 5]
    assert entry.largest_error == np.abs(expected - expected.astype(np.float16).astype(np.float32)).max() > 0
    assert (entry.tokens, entry.bytes) == (10, (tmp_path / entry.name).stat().st_size)


def test_the_schema_is_what_any_arrow_reader_opens(tmp_path):
    _, entry = write(Storage(str(tmp_path)))
    table = pa.ipc.open_file(str(tmp_path / entry.name)).read_all()
    assert table.schema.field("emissions").type == pa.list_(pa.list_(pa.float16(), 3))
    assert [len(scores) for scores in table["emissions"].to_pylist()] == [1, 2, 2, 5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_emissions_without_a_finite_maximum_are_refused_with_their_row(bad):
    scores = np.zeros((5, 2), np.float32)
    scores[3] = bad
    with pytest.raises(RunError, match=r"gave emissions without a finite maximum for .* row 7"):
        encode_columns(EMISSIONS, Sizes(2), np.array([5, 7, 6]), np.array([2, 2, 1]), [scores])


def test_writing_the_same_shard_twice_gives_the_same_bytes(tmp_path):
    first, second = (write(Storage(str(tmp_path / name)))[1] for name in ("a", "b"))
    assert first == second


def test_transitions_come_back_with_forbidden_ones(tmp_path):
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    square[2, 0] = -np.inf
    parts = [part.reshape(1, -1) for part in (square, np.arange(3.0), np.arange(3.0) + 5)]
    none = np.zeros(0, int)
    batch, error = encode_columns(Need("transitions"), Sizes(3), none, none, parts)
    entry = write_shard(Storage(str(tmp_path)), batch, origin=ORIGIN, rows=RowRange(0, 1))
    back = decode_columns(Need("transitions"), open_shard(Storage(str(tmp_path)), entry))
    assert error == 0
    for column, expected in zip(back, parts, strict=True):
        assert column.dtype == np.float32
        np.testing.assert_array_equal(column, expected)


def test_a_shard_without_manifest_is_found_by_its_own_header(tmp_path):
    folder = Storage(str(tmp_path))
    _, entry = write(folder, source="s")
    assert find_shard(folder, ROWS, origin=ORIGIN) == entry
    assert find_shard(folder, ROWS, origin=ORIGIN, source="s") == entry
    assert find_shard(folder, ROWS, origin=ORIGIN, source="other") is None
    assert find_shard(folder, ROWS, origin=ORIGIN.model_copy(update={"tags": 4})) is None
    assert find_shard(folder, ROWS, origin=ORIGIN.model_copy(update={"weights_sha256": "v"})) is None
    assert find_shard(folder, ROWS, origin=ORIGIN.model_copy(update={"weights_sha256": ""})) == entry
    assert find_shard(folder, RowRange(0, 4), origin=ORIGIN) is None


def test_every_truncated_or_flipped_shard_without_manifest_counts_as_missing(tmp_path):
    folder = Storage(str(tmp_path))
    _, entry = write(folder)
    path = Path(tmp_path / entry.name)
    whole = path.read_bytes()
    for cut in (0, 1, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert find_shard(folder, ROWS, origin=ORIGIN) is None, cut
    scores = ragged_values(pa.ipc.open_file(pa.BufferReader(whole)).get_batch(0), "emissions").tobytes()
    place = whole.index(scores) + len(scores) // 2
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert find_shard(folder, ROWS, origin=ORIGIN) is None


def test_an_unreadable_shard_is_refused_by_name_with_a_hint(tmp_path):
    folder = Storage(str(tmp_path))
    _, entry = write(folder)
    path = tmp_path / entry.name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        StoreError, match=rf"{entry.name}: the shard is damaged.*remove .*{entry.name} and run"
    ):
        open_shard(folder, entry)


def test_a_mapped_shard_keeps_no_file_open(tmp_path):
    folder = Storage(str(tmp_path))
    _, entry = write(folder)
    before = len(list(Path("/proc/self/fd").iterdir()))
    batches = [open_shard(folder, entry) for _ in range(5)]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    (tmp_path / entry.name).unlink()
    assert all(batch["length"].to_pylist() == [1, 2, 2, 5] for batch in batches)
