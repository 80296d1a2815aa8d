"""Word vectors from text files: looked up by word, refused where a line is not what it should be."""

import gzip

import pytest
import torch

from raykd.corpora.encoded_text import encode_text
from raykd.errors import StoreError
from raykd.layers.word_vectors import WordVectorsConfig

LINES = ("Anna 1 2 3", "haus 4 5 6", '" 7 8 9', "São 0.5 -1e-3 2")


def write_vectors(folder, text, name="some.vec"):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return WordVectorsConfig(vectors=str(path))


def look_up(config, words):
    batch = encode_text([words], config.vocabulary()).gather([0])
    return config.build().compute(batch)[0].float()


@pytest.mark.parametrize("name", ["some.vec", "some.vec.gz"])
@pytest.mark.parametrize("header", ["4 3\n", ""])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_a_word_has_its_vector_its_lower_cases_or_zeros(tmp_path, name, header, end):
    config = write_vectors(tmp_path, header + "".join(line + end for line in LINES), name)
    vectors_TD = look_up(config, ["Haus", "São", "nobody", '"', "Anna", "anna"])
    expected = [[4, 5, 6], [0.5, -0.001, 2], [0, 0, 0], [7, 8, 9], [1, 2, 3], [0, 0, 0]]
    torch.testing.assert_close(vectors_TD, torch.tensor(expected), rtol=1e-3, atol=1e-6)
    assert config.build().output_size == 3
    assert [tuple(p.shape) for p in config.build().parameters()] == [(6, 3)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Anna 1 2\nhaus 3\n", r"is not a table of words with 2 components .*Expected 3 columns, got 2"),
        ("Anna 1 2\nhaus 3 x\n", r"is not a table of words with 2 components .*invalid value 'x'"),
        ("5 2\nAnna 1 2\n", "has 1 words, but its first line says 5"),
        ("Anna\n", "its first line is not a word with its components"),
        ("", "its first line is not a word with its components"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_its_name(tmp_path, text, problem):
    config = write_vectors(tmp_path, text)
    with pytest.raises(StoreError, match=rf"some\.vec.*{problem}"):
        look_up(config, ["Anna"])


def test_a_packed_file_that_is_cut_is_refused_with_its_name(tmp_path):
    config = write_vectors(tmp_path, "".join(f"word{number} 1 2\n" for number in range(5000)), "some.vec.gz")
    path = tmp_path / "some.vec.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StoreError, match=r"some\.vec\.gz.*write on each line a word"):
        look_up(config, ["Anna"])


def test_a_file_that_is_missing_or_changed_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"gone\.vec"):
        WordVectorsConfig(vectors=str(tmp_path / "gone.vec")).pinned()
    config = write_vectors(tmp_path, "Anna 1 2\n").pinned()
    write_vectors(tmp_path, "Anna 1 3\n")
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        config.build()


def test_a_language_has_its_own_file_and_several_need_one_each(tmp_path):
    write_vectors(tmp_path, "Anna 1 2\n", "de.vec")
    config = WordVectorsConfig(vectors=str(tmp_path / "{lang}.vec"))
    assert config.pinned("de").vectors == str(tmp_path / "de.vec")
    with pytest.raises(StoreError, match="set scope: language, or give one file for all"):
        config.pinned(None)
