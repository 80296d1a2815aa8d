"""Text in encodings other than UTF-8, as found by `init` and named in errors."""

from __future__ import annotations

import pytest

from raykd.corpora import read_corpus
from raykd.corpora.config import READERS
from raykd.corpora.conll import ConllSource
from raykd.corpora.detect import detect
from raykd.corpora.files import BrokenLine, read_lines
from raykd.corpora.text_encoding import likely_encoding
from raykd.errors import CorpusError
from raykd.storage.store import Storage

TEXTS = {
    "fr": "Élodie déjà garçon à côté où été reçu",
    "de": "Jürgen Müller wohnt in Köln und die Straße ist schön größer Übung",
    "pl": "Zażółć gęślą jaźń Łódź Kraków świętość różnić się także",
    "cs": "Příliš žluťoučký kůň úpěl ďábelské ódy řeka žena český",
    "ru": "Владимир Путин живёт в Москве и работает в Кремле каждый день",
    "el": "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας και η μεγαλύτερη πόλη",
    "zh": "北京 是 中华 人民 共和国 的 首都 位于 华北 平原 的 北部",
    "ja": "東京 は 日本 の 首都 で あり 世界 最大 の 都市圏 です",
    "ko": "서울은 대한민국의 수도이자 최대 도시이다",
}


def columns(language: str) -> str:
    return "".join(f"{word}\tO\n" for word in TEXTS[language].split()) * 3


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        ("fr", "latin-1"), ("de", "cp1252"), ("pl", "iso8859-2"), ("pl", "cp1250"), ("cs", "iso8859-2"),
        ("ru", "cp1251"), ("ru", "koi8-r"), ("el", "iso8859-7"), ("zh", "gb18030"), ("ja", "shift_jis"),
        ("ko", "euc-kr"), ("zh", "utf-8"), ("de", "utf-16"), ("zh", "utf-16"), ("de", "utf-16-le"),
        ("de", "utf-16-be"), ("de", "utf-32"), ("fr", "utf-8-sig"),
    ],
)  # fmt: skip
def test_the_encoding_that_is_proposed_reads_the_text(language, encoding):
    text = columns(language)
    data = text.encode(encoding)
    likely = likely_encoding(data)
    assert likely is not None
    assert data.decode(likely).removeprefix("\ufeff") == text


def test_windows_1252_is_told_from_latin_1_by_its_quotes():
    assert likely_encoding("naïve “Ada”…\n".encode("cp1252")) == "cp1252"
    assert likely_encoding("naïve «Ada»\n".encode("cp1252")) == "latin-1"


def test_a_damaged_byte_in_utf_8_is_no_other_encoding_and_noise_is_none():
    assert likely_encoding("Zoé O\n".encode() * 9 + b"Ber\xff O\n") == "utf-8"
    assert likely_encoding(bytes(range(256))) is None
    assert likely_encoding(b"a\0b\n") == "utf-8"


def config(folder, **settings):
    settings = {"split": {"train": 1, "dev": 1, "test": 1}, **settings}
    return ConllSource(source="conll", root=str(folder), languages=("xx",), train="t", **settings)


@pytest.mark.parametrize(
    ("data", "line", "hint"),
    [
        ("naïve\tO\n“Ada”\tO\n".encode("cp1252"), 1, r"set corpus.encoding: cp1252; the line then reads 'naïve\tO'"),
        ("na\tO\n“Ada”\tO\n".encode("cp1252"), 2, r"set corpus.encoding: cp1252; the line then reads '“Ada”\tO'"),
        (columns("ru").encode("cp1251"), 1, r"set corpus.encoding: cp1251; the line then reads 'Владимир\tO'"),
        (columns("zh").encode("gb18030"), 1, r"set corpus.encoding: gb18030; the line then reads '北京\tO'"),
        (columns("de").encode("utf-16"), 1, "the file is utf-16, not utf-8; set corpus.encoding: utf-16"),
        (columns("de").encode("utf-16-le"), 1, "the file is utf-16-le, not utf-8; set corpus.encoding: utf-16-le"),
        ("Zoé\tO\n".encode() * 9 + b"Ber\xff\tO\n", 10, "correct the line: the rest of the file is in this encoding"),
        (b"\x81\xfe\xff\x9d\tO\n", 1, "set corpus.encoding to the encoding of the file, or write the file in UTF-8"),
    ],
)  # fmt: skip
def test_an_error_names_the_line_and_the_encoding_to_set(tmp_path, data, line, hint):
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(CorpusError) as refused:
        read_corpus(config(tmp_path))
    assert f"{tmp_path / 't'}:{line}: " in str(refused.value)
    assert hint in str(refused.value)


def test_utf_16_without_its_mark_is_no_traceback(tmp_path):
    (tmp_path / "t").write_text("Anna\tO\n")
    with pytest.raises(CorpusError, match=r"t:1: the file is not utf-16 \(.*\); set corpus.encoding: utf-8"):
        read_corpus(config(tmp_path, encoding="utf-16"))


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "gb18030", "utf-16", "utf-16-le"])
def test_init_reads_the_text_as_it_was_written(tmp_path, encoding):
    language = {"cp1251": "ru", "gb18030": "zh"}.get(encoding, "de")
    sentences = [f"{word}\tB-PER\nx{number}\tO\n\n" for number, word in enumerate(TEXTS[language].split())]
    for part in ("train", "dev", "test"):
        text = "".join(f"{part}\tO\n{sentence}" for sentence in sentences)
        (tmp_path / f"{part}.conll").write_bytes(text.encode(encoding))
    corpus = read_corpus(detect(str(tmp_path)).config)
    words = {row[1] for row in corpus.parts["train"]["tokens"].to_pylist()}
    assert words == set(TEXTS[language].split())


def test_text_of_no_encoding_is_not_used(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.conll").write_text("Anna\tB-PER\nsleeps\tO\n\n" * 9)
    (tmp_path / "dev.conll").write_bytes(b"\x81\xfe\xff\x9d\tB-PER\nx\tO\n\n")
    assert (
        "the encoding is not recognised: write the file in UTF-8" in detect(str(tmp_path)).unused["dev.conll"]
    )


def test_marks_of_joined_files_are_no_part_of_a_word(tmp_path):
    joined = "".join(f"\ufeff{name}\tB-PER\nslee\ufeffps\tO\n\n" for name in ("Anna", "Marie"))
    (tmp_path / "t").write_text(f"{joined}\ufeff\n\ufeffsees\tO\n\ufeff", encoding="utf-8")
    sentences = [sentence for _, sentence in READERS["conll"](config(tmp_path))]
    assert [sentence.tokens for sentence in sentences] == [["Anna", "sleeps"], ["Marie", "sleeps"], ["sees"]]
    assert list(read_lines(Storage(str(tmp_path)), "t", "utf-8"))[:3] == [
        "Anna\tB-PER",
        "slee\ufeffps\tO",
        "",
    ]


def test_a_file_of_marks_alone_is_empty(tmp_path):
    (tmp_path / "t").write_text("\ufeff\n\ufeff \n", encoding="utf-8")
    with pytest.raises(CorpusError, match="the file is empty"):
        list(read_lines(Storage(str(tmp_path)), "t", "utf-8"))


def test_a_line_that_is_not_text_stays_apart_from_others(tmp_path):
    (tmp_path / "t").write_bytes("Müller\tO\nb\tO\n".encode("latin-1"))
    first, second = read_lines(Storage(str(tmp_path)), "t", "utf-8")
    assert isinstance(first, BrokenLine)
    assert second == "b\tO"
