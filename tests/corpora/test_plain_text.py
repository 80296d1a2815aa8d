"""Plain text for the unlabelled part: by sentence, and by document."""

import json
import sys
from itertools import chain

import pytest
from pydantic import TypeAdapter

from raykd.corpora import CorpusConfig, plain_text
from raykd.errors import CorpusError
from raykd.serving.labeller import words_in
from tests.corpora.parts import read

TEXT = "Dr. Smith (68) met O'Neill in\nWashington, D.C. He left.\n\n \nA title\n\nIs it over? Yes!\n"


def text(root, written, source="conll", **settings):
    (root / "t").write_text("a\tO\n")
    (root / "u").write_bytes(written if isinstance(written, bytes) else written.encode())
    plain = {"source": source, "root": str(root), "languages": ["en"], "unlabelled": "u"} | dict.fromkeys(
        ("train", "dev", "test"), "t"
    )
    config = TypeAdapter(CorpusConfig).validate_json(json.dumps(plain | settings))
    return read(config)["unlabelled"]


def test_a_sentence_in_each_line(tmp_path):
    sentences = text(tmp_path, "He didn't go.\n\n-DOCSTART- # 5\n", unlabelled_form="sentences")
    assert [(s.tokens, s.tags, s.origin[1]) for s in sentences] == [
        (["He", "didn't", "go", "."], None, 1),
        (["-", "DOCSTART", "-", "#", "5"], None, 3),
    ]


def test_documents_are_split_into_sentences_with_the_words_of_a_served_student(tmp_path):
    sentences = text(tmp_path, TEXT, unlabelled_form="documents")
    written = ["Dr. Smith (68) met O'Neill in Washington, D.C. He left.", "A title", "Is it over?", "Yes!"]
    words = [words_in(sentence) for sentence in written]
    assert [*chain.from_iterable(s.tokens for s in sentences)] == [*chain.from_iterable(words)]
    assert [s.tokens for s in sentences][-3:] == words[-3:]
    assert [s.origin[1] for s in sentences][-3:] == [5, 7, 7]


@pytest.mark.parametrize("block", [20, 30, 60])
def test_long_paragraphs_are_split_in_blocks_into_the_same_sentences(tmp_path, block, monkeypatch):
    written = "One is here. Two goes\non. Three\nis last.\nFour.\n\nFive."
    whole = [s.tokens for s in text(tmp_path, written, unlabelled_form="documents")]
    assert len(whole) == 5
    monkeypatch.setattr(plain_text, "BLOCK", block)
    assert [s.tokens for s in text(tmp_path, written, unlabelled_form="documents")] == whole
    # Without any end no more than about two blocks are one sentence, and nothing is lost.
    endless = text(tmp_path, "word " * 100, unlabelled_form="documents")
    assert sum(len(s.tokens) for s in endless) == 100
    assert max(len(s.tokens) for s in endless) <= 2 * block / 5


def test_a_quote_that_is_not_closed_takes_no_more_than_a_block(tmp_path):
    sentences = text(tmp_path, '"Never closed. ' + "A sentence is here. " * 2000, unlabelled_form="documents")
    assert len(sentences) > 1800


def test_each_language_has_its_form(tmp_path):
    (tmp_path / "en").write_text("One. Two.\n")
    (tmp_path / "da").write_text("Hej\nmed\n\ndig\n")
    sentences = text(
        tmp_path, "", languages=["en", "da"], unlabelled="{lang}", unlabelled_form={"en": "documents"},
        **{part: {"en": "t", "da": "t2"} for part in ("train", "dev", "test")},
    ) if (tmp_path / "t2").write_text("b\tO\n") else []  # fmt: skip
    assert [s.tokens for s in sentences] == [["One", "."], ["Two", "."], ["Hej", "med"], ["dig"]]


def test_lines_that_are_not_text_are_faults(tmp_path):
    for form in ("sentences", "documents"):
        with pytest.raises(CorpusError, match="byte 0xfc is not utf-8") as caught:
            text(tmp_path, b"One.\nM\xfcller.\n", unlabelled_form=form)
        assert caught.value.line == 2
        sentences = text(
            tmp_path, b"One.\nM\xfcller.\n", unlabelled_form=form, on_error="skip", most_skipped=1
        )
        assert [s.tokens for s in sentences] == [["One", "."]]


def test_texts_with_a_class_keep_their_words(tmp_path):
    sentences = text(tmp_path, "It's good. Bad!\n", source="tsv", unlabelled_form="documents")
    assert [(s.tokens, s.unit) for s in sentences] == [
        (["It's", "good."], "sentence"),
        (["Bad!"], "sentence"),
    ]


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(CorpusError, match=r"sentencex.*pip install sentencex"):
        text(tmp_path, TEXT, unlabelled_form="documents")
    assert text(tmp_path, TEXT, unlabelled_form="sentences")


def test_a_form_without_files_is_refused(tmp_path):
    for unlabelled in (None, "rest"):
        with pytest.raises(ValueError, match="unlabelled_form says how files are written"):
            text(tmp_path, TEXT, unlabelled=unlabelled, unlabelled_form="sentences", cap=1)
    with pytest.raises(ValueError, match="unlabelled_form names de"):
        text(tmp_path, TEXT, unlabelled_form={"de": "sentences"})


@pytest.mark.parametrize(
    ("limit", "words_read"),
    [(None, 5), (20, 5), (19, 4), (17, 3), (8, 2), (7, 1), (1, 1)],
    ids=lambda value: str(value),
)
def test_of_a_long_sentence_the_words_are_read_that_fit(tmp_path, limit, words_read):
    words = ["One", "long", "line", "ends", "."]
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(" ".join(words) + "\n")
    plain = {"source": "text", "root": str(tmp_path), "languages": ["en"], "max_characters": limit}
    plain |= {"train": "a", "dev": "b", "test": "c", "overlaps": "keep"}
    config = TypeAdapter(CorpusConfig).validate_json(json.dumps(plain))
    assert [sentence.tokens for sentence in read(config)["train"]] == [words[:words_read]]
