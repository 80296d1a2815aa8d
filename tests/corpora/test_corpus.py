"""The corpus: conversion, report, identity over content, and the store."""

import json
from dataclasses import replace
from inspect import signature

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from raykd.corpora import (
    SOURCES,
    CorpusConfig,
    chunks,
    conversion,
    corpus_id,
    make_corpus,
    open_corpus,
    pool,
    read_corpus,
    write_corpus,
)
from raykd.corpora.config import READERS
from raykd.corpora.describe import describe_corpus
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import FilesConfig, SourceConfig
from raykd.errors import CorpusError, StoreError
from raykd.storage.layout import PARTS
from raykd.storage.store import Storage
from tests.corpora.parts import read

FILES = {
    # CoNLL-2003 as published is IOB1, CoNLL-2002 is IOB2: one corpus holds both.
    "en": {
        "train": "Ada I-PER\nByron I-PER\nBob B-PER\nin O\nRome I-LOC\n\nyes O\n",
        "dev": "Bob I-PER\n",
        "test": "Oslo I-LOC\n\nRust I-MISC\n",
    },
    "es": {
        "train": "en O\nRoma B-LOC\n\nAda B-PER\nByron I-PER\n\nBob I-PER\n",
        "dev": "Ada B-PER\nLópez I-PER\n",
        "test": "en O\nRoma B-LOC\n\nen O\nParís B-LOC\n",
    },
}


@pytest.fixture
def root(tmp_path):
    for language, parts in FILES.items():
        for part, text in parts.items():
            (tmp_path / f"{language}.{part}").write_text(text, encoding="utf-8")
    return tmp_path


def config(root, **settings):
    plain = {"source": "conll", "root": str(root), "languages": ["en", "es"]}
    plain |= {part: f"{{lang}}.{part}" for part in ("train", "dev", "test")}
    return TypeAdapter(CorpusConfig).validate_json(json.dumps(plain | settings))


def rows(corpus, part):
    table = corpus.parts[part]
    return [
        (row["language"], row["tokens"], None if row["tags"] is None else corpus.tag_set.decode(row["tags"]))
        for row in table.to_pylist()
    ]


def test_a_corpus_of_different_schemes(root):
    corpus = read_corpus(config(root))
    assert rows(corpus, "train") == [
        ("en", ["Ada", "Byron", "Bob", "in", "Rome"], ["B-PER", "E-PER", "S-PER", "O", "S-LOC"]),
        ("en", ["yes"], ["O"]),
        ("es", ["Ada", "Byron"], ["B-PER", "E-PER"]),
    ]
    assert rows(corpus, "test")[1] == ("en", ["Rust"], ["S-MISC"])
    assert corpus.tag_set.labels == ("LOC", "MISC", "PER")
    assert list(corpus.parts) == ["train", "unlabelled", "dev", "test"]
    for table in corpus.parts.values():
        assert table.schema.types == [pa.list_(pa.string()), pa.list_(pa.int16()), pa.string()]


def test_the_report_has_what_was_found(root):
    report = read_corpus(config(root)).report
    assert report.schemes == {"en": "iob1", "es": "iob2"}
    assert report.sentences["train"] == {"en": 2, "es": 1}
    assert report.overlaps == {
        "train": {"es": 2},
        "unlabelled": {},
    }  # "en Roma" (es test) and "Bob" (en dev)
    assert report.unseen == {"MISC": {"test": {"en": 1}}}
    warnings = report.warnings()
    assert "label 'MISC' is in no training sentence, so it cannot be learnt (1 x in test en)" in warnings
    dropped = "2 sentences were dropped from train: they are also in dev or test (es 2; for example 'en Roma', 'Bob'); "
    assert f"{dropped}set corpus.overlaps: keep to keep them" in warnings
    assert report.warnings(tags=False) == [each for each in warnings if not each.startswith("label ")]


def test_repairs_are_counted_by_part_and_language(root):
    report = read_corpus(config(root, scheme={"en": "iob2", "es": "iob2"})).report
    assert report.repairs == {
        "train": {"en": 2},
        "unlabelled": {},
        "dev": {"en": 1},
        "test": {"en": 2},
    }
    warning = next(each for each in report.warnings() if "2 tags of train en" in each)
    assert "were not valid in their scheme (iob2) and were repaired, for example " in warning
    assert f"{root}/en.train:1: 'I-PER' of word 1 read as 'B-PER'" in warning
    assert not [each for each in report.warnings(tags=False) if "repaired" in each]


def test_a_language_without_a_part_is_warned_about():
    parts = {part: [Sentence([part], ["N"], "en")] for part in ("train", "dev", "test")}
    parts["test"].append(Sentence(["x"], ["N"], "es"))
    report = make_corpus(parts, SourceConfig(languages=("en", "es"))).report
    assert report.warnings() == ["es has no sentence in train and dev"]


@pytest.mark.parametrize(
    ("text", "settings", "line", "problem"),
    [
        ("a O\n\nb PER\n", {"scheme": "iob2"}, 3, "tag 'PER' is not of scheme iob2 (O, B-TYPE, I-TYPE)"),
        ("a S-PER\n", {"scheme": "iob1"}, 1, "tag 'S-PER' is not of scheme iob1"),
        ("a B-PER\nb I-PER\n\nc PRE\n", {}, 4, "some tags are spans (B-, I-) and others are not (PRE)"),
        ("a NOUN\n", {}, 1, "some languages have spans and others one tag per word (en flat, es iob2)"),
    ],
)
def test_tags_that_do_not_fit_are_reported_with_their_place(root, text, settings, line, problem):
    for part in ("train", "dev", "test"):
        (root / f"en.{part}").write_text(text.replace(" ", f"-{part} "))
    with pytest.raises(CorpusError) as caught:
        read_corpus(config(root, **settings))
    assert (caught.value.file, caught.value.line) == (str(root / "en.train"), line)
    assert problem in caught.value.problem


def test_a_language_with_nothing_but_o_goes_with_the_others(root):
    for part in ("train", "dev", "test"):
        (root / f"es.{part}").write_text(f"{part} O\n")
    assert read_corpus(config(root)).report.schemes == {"en": "iob1", "es": "iob2"}


def test_nothing_left_to_train_on_is_an_error(root):
    (root / "en.train").write_text(FILES["en"]["dev"])
    with pytest.raises(CorpusError, match=r"no sentence is left for train \(of 1 training sentences read\)"):
        read_corpus(config(root, languages=["en"]))


def test_a_test_of_target_languages_alone_is_none():
    parts = {part: [Sentence([part], ["O"], "en")] for part in ("train", "dev")}
    parts["test"] = [Sentence(["x"], ["O"], "es")]
    with pytest.raises(CorpusError, match="no sentence is left for test"):
        make_corpus(parts, SourceConfig(languages=("en", "es"), zero_shot_languages=("es",)))


def test_the_identity_is_over_content_not_format_or_path(root, tmp_path_factory):
    corpus = read_corpus(config(root))
    other = tmp_path_factory.mktemp("parquet")
    for part in ("train", "dev", "test"):
        sentences = [s for s in read(config(root))[part] if s.language == "es"]
        pq.write_table(
            pa.table({"tokens": [s.tokens for s in sentences], "ner_tags": [s.tags for s in sentences]}),
            other / f"es.{part}.parquet",
        )
    names = {part: f"{{lang}}.{part}.parquet" for part in ("train", "dev", "test")}
    spanish = read_corpus(config(root, languages=["es"]))
    as_parquet = read_corpus(config(other, source="parquet", languages=["es"], **names))
    assert corpus_id(as_parquet) == corpus_id(spanish) != corpus_id(corpus)
    # CoNLL-2003 in IOB1 and the same text in BIOES are one corpus too.
    for part in ("train", "dev", "test"):
        lines = [
            "\n".join(f"{word} {tag}" for word, tag in zip(words, tags, strict=True))
            for language, words, tags in rows(corpus, part)
            if language == "en"
        ]
        (other / f"en.{part}").write_text("\n\n".join(lines), encoding="utf-8")
    assert corpus_id(read_corpus(config(other, languages=["en"]))) == corpus_id(
        read_corpus(config(root, languages=["en"]))
    )


def small(words=("a", "b"), tags=("S-X", "O"), language="en"):
    parts = {part: [Sentence(["z", part], ["S-X", "O"], language)] for part in ("dev", "test")}
    parts["train"] = [Sentence(list(words), None if tags is None else list(tags), language)]
    return make_corpus(parts, SourceConfig(languages=(language,)))


@pytest.mark.parametrize(
    "other",
    [
        small(("ab", "")),
        small(("a", "c")),
        small(tags=("O", "S-X")),
        small(tags=None),
        small(tags=("S-X", "S-Y")),
        small(language="de"),
        small(("a",), ("S-X",)),
    ],
)
def test_every_difference_gives_another_identity(other):
    assert corpus_id(other) != corpus_id(small())


def test_the_identity_does_not_see_how_arrow_holds_the_values():
    corpus = small()
    train = corpus.parts["train"]
    padded = pa.concat_tables([train.slice(0, 0), pa.concat_tables([train, train]).slice(1, 1)])
    assert corpus_id(corpus) == corpus_id(
        type(corpus)(corpus.tag_set, corpus.languages, {**corpus.parts, "train": padded}, corpus.report)
    )


@pytest.mark.parametrize("rows", [1, 3])
def test_blocks_of_any_size_give_the_same_corpus(root, monkeypatch, rows):
    settings = {"unlabelled": "{lang}.train", "scheme": {"en": "iob1", "es": "iob1"}}
    whole = read_corpus(config(root, **settings))
    monkeypatch.setattr(pool, "ROWS", rows)
    monkeypatch.setattr(chunks, "ROWS", rows)
    monkeypatch.setattr(conversion, "MAX_CACHED_SEQUENCES", rows)
    cut = read_corpus(config(root, **settings))
    assert max(table["tokens"].num_chunks for table in cut.parts.values()) > 1
    assert (corpus_id(cut), cut.report) == (corpus_id(whole), whole.report)
    assert describe_corpus(cut) == describe_corpus(whole)
    assert describe_corpus(cut.select_languages(["es"])) == describe_corpus(whole.select_languages(["es"]))


def test_reading_leaves_no_file_behind(root, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    read_corpus(config(root)).select_languages(["es"])
    for text, problem in (("a S-PER\n", "not of scheme iob1"), ("a O\nb\n", "1 column")):
        (root / "es.test").write_text(text)
        with pytest.raises(CorpusError, match=problem):
            read_corpus(config(root, scheme="iob1"))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_written_and_opened_again(root, tmp_path):
    corpus = read_corpus(config(root, unlabelled="{lang}.train", duplicates="keep"))
    store = Storage(str(tmp_path / "store"))
    name = write_corpus(corpus, store)
    opened = open_corpus(store, name)
    assert name == corpus_id(corpus) == corpus_id(opened)
    assert (opened.tag_set, opened.languages, opened.report) == (
        corpus.tag_set,
        corpus.languages,
        corpus.report,
    )
    for part in PARTS:
        assert opened.parts[part].equals(corpus.parts[part])
    assert opened.parts["unlabelled"]["tags"].null_count == opened.parts["unlabelled"].num_rows > 0


def test_a_stored_corpus_is_not_written_again(tmp_path, monkeypatch):
    store = Storage(str(tmp_path))
    name = write_corpus(small(), store)
    monkeypatch.setattr(Storage, "writer", lambda *_: pytest.fail("written again"))
    assert write_corpus(small(), store) == name


def test_a_corpus_interrupted_before_its_manifest_is_none(tmp_path):
    store = Storage(str(tmp_path))
    name = write_corpus(small(), store)
    (tmp_path / "corpora" / name / "corpus.json").unlink()
    with pytest.raises(StoreError, match="no corpus with this id is stored"):
        open_corpus(store, name)
    assert write_corpus(small(), store) == name
    assert corpus_id(open_corpus(store, name)) == name


def test_a_flipped_byte_is_refused_by_name(tmp_path):
    store = Storage(str(tmp_path))
    name = write_corpus(small(), store)
    file = tmp_path / "corpora" / name / "dev.arrow"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError, match=f"corpora/{name}/dev.arrow: is damaged: its checksum is"):
        open_corpus(store, name)


def test_restricted_to_some_languages(root):
    corpus = read_corpus(config(root))
    spanish = corpus.select_languages(["es"])
    assert spanish.languages == ("es",)
    assert spanish.tag_set == corpus.tag_set
    assert rows(spanish, "train") == [row for row in rows(corpus, "train") if row[0] == "es"]
    assert spanish.report.sentences["test"] == {"es": 2}
    assert not any("en" in warning.split() for warning in spanish.report.warnings())


def target(root, **settings):
    return read_corpus(config(root, zero_shot_languages=["es"], **settings))


def test_roles_are_described_stored_and_part_of_the_identity(root, tmp_path):
    corpus = target(root)
    assert (corpus.sources, corpus.targets) == (("en",), ("es",))
    assert corpus.report.sentences["dev"] == {"en": 1, "es": 0}
    assert not any("es has no sentence" in warning for warning in corpus.report.warnings())
    assert describe_corpus(corpus)["roles"] == {"en": "labelled", "es": "zero-shot"}
    store = Storage(str(tmp_path / "store"))
    opened = open_corpus(store, write_corpus(corpus, store))
    assert (opened.sources, opened.targets) == (corpus.sources, corpus.targets)
    assert (opened.select_languages(["es"]).targets, opened.select_languages(["en"]).targets) == (("es",), ())
    roleless = type(corpus)(corpus.tag_set, corpus.languages, corpus.parts, replace(corpus.report, roles={}))
    assert roleless.targets == ()
    assert corpus_id(roleless) != corpus_id(corpus)


def test_an_unlabelled_language_should_have_text_and_a_test():
    parts = {part: [Sentence([part], ["N"], "en")] for part in ("train", "dev")}
    parts["test"] = [Sentence(["x"], ["N"], "en")]
    report = make_corpus(parts, SourceConfig(languages=("en", "es"), unlabelled_languages=("es",))).report
    assert report.warnings() == ["es has no sentence in unlabelled and test"]


def test_described_in_figures(root):
    corpus = read_corpus(config(root))
    figures = json.loads(json.dumps(describe_corpus(corpus)))
    assert figures["corpus_id"] == corpus_id(corpus)
    assert figures["labels"] == ["LOC", "MISC", "PER"]
    english = {
        "part": "train",
        "language": "en",
        "sentences": 2,
        "tokens": 6,
        "mean_length": 3.0,
        "longest": 5,
    }
    assert figures["parts"][0] == english | {"labels": {"LOC": 1, "PER": 2}}
    assert [(row["part"], row["language"]) for row in figures["parts"]] == [
        (part, language) for part in ("train", "dev", "test") for language in ("en", "es")
    ]
    assert figures["warnings"] == corpus.report.warnings()


def test_flat_tags(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"en.{part}").write_text(f"{part} NOUN\nruns VERB\n")
    corpus = read_corpus(config(tmp_path, languages=["en"]))
    assert (corpus.tag_set.form.scheme, corpus.tag_set.tags) == ("flat", ("NOUN", "VERB"))
    assert np.array_equal(corpus.parts["dev"]["tags"][0].as_py(), [0, 1])
    assert describe_corpus(corpus)["parts"][0]["labels"] == {"NOUN": 1, "VERB": 1}


def test_every_source_has_its_reader_and_its_name():
    assert set(SOURCES) == set(READERS)
    # `raykd check` looks at the first sentences of files.
    for name, source in SOURCES.items():
        assert ("limit" in signature(READERS[name]).parameters) == issubclass(source, FilesConfig), name
    for name, kind in SOURCES.items():
        assert name in kind.model_fields["source"].annotation.__args__
    with pytest.raises(
        ValueError, match="'builtin', 'conll', 'conllu', 'tsv', 'parquet', 'jsonl', 'huggingface'"
    ):
        TypeAdapter(CorpusConfig).validate_json('{"source": "excel"}')
