"""Tables in chunks: joined and cut without a change of their rows, found by row, digested whatever their chunks."""

import hashlib
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora import chunks
from raykd.corpora.chunks import (
    Chunks,
    map_table,
    merge_batches,
    read_batches,
    to_mapped_table,
    write_batches,
)
from raykd.corpora.table_digest import table_digest

SCHEMA = pa.schema({"tokens": pa.list_(pa.string()), "tags": pa.list_(pa.int16()), "language": pa.string()})
ROWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["a", "é", ""]), max_size=3),
        st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3)),
        st.sampled_from(["da", "sv"]),
    ),
    max_size=30,
)


def table_of(rows, cuts=()):
    columns = [[row[place] for row in rows] for place in range(3)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    whole = pa.table(arrays, schema=SCHEMA)
    bounds = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    pieces = [whole.slice(a, b - a) for a, b in pairwise(bounds)]
    return pa.concat_tables([whole.slice(0, 0), *pieces])


def plain_digest(table):
    """The digest of whole columns: it does not depend on how they are cut into chunks."""
    digest = hashlib.sha256(f"{table.num_rows}".encode())
    for name in sorted(table.column_names):
        digest.update(f";{name}:".encode())
        for level in flat_bytes(table[name].combine_chunks()):
            digest.update(level)
    return digest.hexdigest()


def flat_bytes(column):
    def plain(numbers):
        return numbers.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes()

    yield np.packbits(column.is_valid().to_numpy(zero_copy_only=False)).tobytes()
    if pa.types.is_list(column.type):
        yield plain(column.value_lengths())
        yield from flat_bytes(column.flatten())
    elif pa.types.is_string(column.type):
        yield plain(pc.call_function("binary_length", [column]))
        yield "".join(text or "" for text in column.to_pylist()).encode()
    else:
        yield plain(column)


@given(ROWS, st.lists(st.integers(0, 30), max_size=4))
def test_the_digest_does_not_depend_on_chunks_and_stays_what_it_was(rows, cuts):
    assert table_digest(table_of(rows, cuts)) == plain_digest(table_of(rows))


@given(ROWS, st.lists(st.integers(0, 30), max_size=4), st.data())
def test_rows_are_taken_from_their_chunks(rows, cuts, data):
    chosen_rows = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    column = Chunks(table_of(rows, cuts)["tokens"])
    assert column.take(np.array(chosen_rows, np.int64)).to_pylist() == [rows[row][0] for row in chosen_rows]


@given(ROWS, st.lists(st.integers(0, 30), max_size=4))
def test_batches_are_joined_and_cut_and_nothing_is_lost(rows, cuts):
    table = table_of(rows, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", 4)
        patch.setattr(chunks, "WORDS", 6)
        batches = list(merge_batches(table.to_batches()))
    assert all(0 < batch.num_rows <= 4 for batch in batches)
    assert pa.Table.from_batches(batches, SCHEMA).equals(table)


def test_a_file_is_read_in_batches_or_mapped(tmp_path):
    table = table_of([(["a", "b"], [1, 2], "da"), (["c"], None, "sv")])
    write_batches(str(tmp_path / "x.arrow"), SCHEMA, table.to_batches())
    assert map_table(tmp_path / "x.arrow").equals(table)
    (batch,) = read_batches(tmp_path / "x.arrow", ["language", "tags"])
    assert batch.to_pydict() == {"tags": [[1, 2], None], "language": ["da", "sv"]}


def test_a_table_on_disk_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = table_of([(["a"], [1], "da")] * 5)
    assert to_mapped_table(SCHEMA, table.to_batches()).equals(table)
    with pytest.raises(ZeroDivisionError):
        to_mapped_table(SCHEMA, (1 / 0 for _ in range(1)))
    assert list(tmp_path.iterdir()) == []
