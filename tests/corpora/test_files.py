"""Lines of text files, read in blocks of any size."""

import bz2
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykd.corpora import files
from raykd.corpora.files import BrokenLine, find_files, read_lines
from raykd.errors import CorpusError
from raykd.storage.store import Storage


def lines_of(folder, data, block, encoding="utf-8", name="t"):
    (folder / name).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", block)
        return list(read_lines(Storage(str(folder)), name, encoding))


@given(
    st.text("aé\n\r日 ", max_size=30),
    st.integers(1, 9),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
    st.booleans(),
)
def test_blocks_of_any_size_give_the_same_lines(tmp_path_factory, text, block, encoding, packed):
    folder = tmp_path_factory.getbasetemp()
    data = text.encode(encoding, "replace")
    text = data.decode(encoding)
    expected = text.replace("\r\n", "\n").split("\n")
    expected = expected[:-1] if not expected[-1] else expected
    name, data = ("t.gz", gzip.compress(data)) if packed else ("t", data)
    if not text.strip():
        with pytest.raises(CorpusError, match="the file is empty"):
            lines_of(folder, data, block, encoding, name)
    elif any("\r" in line for line in expected):
        lines_read = lines_of(folder, data, block, encoding, name)
        assert ["\r" in line for line in expected] == [isinstance(line, BrokenLine) for line in lines_read]
        assert [line for line in lines_read if "\r" not in line] == [
            line for line in expected if "\r" not in line
        ]
    else:
        assert lines_of(folder, data, block, encoding, name) == expected


@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 100])
def test_a_byte_that_is_no_text_is_reported_with_its_line_from_any_block(tmp_path, block):
    for data, line in (
        (b"\xef\xbb\xbfa\n\xc3\xa9\n\xc3\nb\n", 3),
        (b"a\nb\n\nc\xfc", 4),
        (b"a\nb\xe6\x97", 2),
    ):
        lines_read = lines_of(tmp_path, data, block)
        broken = [number for number, text in enumerate(lines_read, start=1) if isinstance(text, BrokenLine)]
        assert broken == [line]
        assert "is not utf-8" in lines_read[line - 1].problem
    # Where lines are not to be told from what is lost, the file cannot be read.
    with pytest.raises(CorpusError, match="byte 0x00 is not utf-16") as caught:
        lines_of(tmp_path, "a\n".encode("utf-16-le") + b"\x00\xdc\x0a\x00", block, "utf-16-le")
    assert caught.value.line == 2


def test_several_packed_members_and_one_that_is_cut(tmp_path):
    data = gzip.compress(b"a\n" * 100) + gzip.compress(b"b\n" * 100)
    assert lines_of(tmp_path, data, 64, name="t.gz") == ["a"] * 100 + ["b"] * 100
    with pytest.raises(CorpusError, match="cannot be read"):
        lines_of(tmp_path, data[:-3], 64, name="t.gz")


@pytest.mark.parametrize("name", ["train[1].conll", "a?b.conll", "a*.conll", "#1 50%.conll"])
def test_a_name_with_signs_of_patterns_is_that_file(tmp_path, name):
    for present in (name, "train1.conll", "axb.conll", "ax.conll"):
        (tmp_path / present).write_text("a O\n")
    assert find_files(Storage(str(tmp_path)), name) == [name]
    (tmp_path / name).unlink()
    if "#" not in name:
        assert name not in find_files(Storage(str(tmp_path)), name), "now it is a pattern"


def test_what_is_packed_is_told_by_its_bytes(tmp_path):
    for name, data in (("t.gz", b"a\n"), ("T.GZ", gzip.compress(b"a\n")), ("t", gzip.compress(b"a\n"))):
        assert lines_of(tmp_path, data, 64, name=name) == ["a"]
    for form, packed in (
        ("bzip2", bz2.compress(b"a\n")),
        ("xz", lzma.compress(b"a\n")),
        ("zip", b"PK\x03\x04rest"),
    ):
        with pytest.raises(
            CorpusError, match=f"the file is packed with {form}; unpack it, or pack it with gzip"
        ):
            lines_of(tmp_path, packed, 64)
