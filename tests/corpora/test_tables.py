"""Parquet files and Hugging Face data sets: tags as text or numbers, names of numbers, languages, faults."""

import json
import re
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raykd.corpora.huggingface import HuggingFaceSource
from raykd.corpora.parquet import ParquetSource
from raykd.errors import CorpusError
from tests.corpora.parts import read

NAMES = ["O", "B-PER", "I-PER"]
WORDS = [["Ada", "Byron", "wrote"], ["Yes"]]
NUMBERS = [[1, 2, 0], [0]]
TAGS = [["B-PER", "I-PER", "O"], ["O"]]
PARTS = ("train", "dev", "test")


@pytest.fixture(autouse=True)
def _no_cache_outside_the_test(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("hf"))


def parquet(root, **settings):
    plain = {"source": "parquet", "root": str(root), "languages": ["en"], **dict.fromkeys(PARTS, "t.parquet")}
    return ParquetSource.model_validate_json(json.dumps(plain | settings))


def huggingface(path, **settings):
    plain = {"source": "huggingface", "languages": ["en"], "path": str(path)}
    return HuggingFaceSource.model_validate_json(json.dumps(plain | settings))


def words_and_tags(sentences):
    return [s.tokens for s in sentences], [s.tags for s in sentences]


@pytest.mark.parametrize(
    "words", [pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.string_view())]
)
@pytest.mark.parametrize(
    ("tags", "kind", "settings"),
    [
        (TAGS, pa.list_(pa.string()), {}),
        (NUMBERS, pa.list_(pa.int64()), {"tag_names": NAMES}),
        (NUMBERS, pa.large_list(pa.uint8()), {"tag_names": NAMES}),
    ],
)
def test_parquet_tags_as_text_or_numbers(tmp_path, words, tags, kind, settings):
    table = pa.table({"tokens": pa.array(WORDS, words), "ner_tags": pa.array(tags, kind)})
    pq.write_table(table, tmp_path / "t.parquet")
    parts = read(parquet(tmp_path, **settings))
    assert words_and_tags(parts["train"]) == (WORDS, TAGS)


TEXTS, CLASSES = (
    {"text": ["it is  good", "bad", "no"], "label": ["pos", "neg", "neg"]},
    [["pos"], ["neg"], ["neg"]],
)
AS_TEXT = {"columns": {"text": "text"}, "scheme": "flat"}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["pos", "neg", "neg"], None),
        (datasets.ClassLabel(names=["neg", "pos"]), None),
        ([1, 0, 0], ["neg", "pos"]),
        ([7, 3, 3], None),
    ],
)
@pytest.mark.parametrize("source", ["parquet", "huggingface"])
def test_texts_with_a_class_each(tmp_path, source, labels, names):
    has_names = isinstance(labels, datasets.ClassLabel)
    table = datasets.Dataset.from_dict({**TEXTS, "label": [1, 0, 0] if has_names else labels})
    if has_names:
        table = table.cast_column("label", labels)
    if source == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
        config = parquet(tmp_path, **AS_TEXT, tag_names=names)
    else:
        splits = {"train": table, "validation": table, "test": table}
        datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
        config = huggingface(tmp_path / "saved", **AS_TEXT, tag_names=names)
    sentences = read(config)["train"]
    assert config.unit == "sentence"
    expected = CLASSES if has_names or labels[0] != 7 else [["7"], ["3"], ["3"]]
    assert words_and_tags(sentences) == ([["it", "is", "good"], ["bad"], ["no"]], expected)
    assert {sentence.unit for sentence in sentences} == {"sentence"}


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({"text": [1, 2, 3]}, {}, "column 'text' has int64, not texts"),
        ({"text": ["a", None, "b"]}, {}, "row 1 (the first is 0) has a null"),
        ({"label": ["pos", "neg", None]}, {}, "row 2 (the first is 0) has a null"),
        (
            {"label": [0, 2, 1]},
            {"tag_names": ["neg", "pos"]},
            "row 1 (the first is 0) has a tag number outside 0 … 1",
        ),
        (
            {"label": [0, -1, 1]},
            {"tag_names": ["neg", "pos"]},
            "row 1 (the first is 0) has a tag number outside 0 … 1: -1; it stands where a label",
        ),
        ({"label": [["a"], ["a", "b"], ["b"]]}, {}, "row 1 (the first is 0) has 2 classes: ['a', 'b']"),
        ({"label": [["a"], ["b"], []]}, {}, "row 2 (the first is 0) has 0 classes: []"),
        ({"label": [1.5, float("nan"), 2.0]}, {}, "row 1 (the first is 0) has NaN for its class"),
    ],
)
def test_faults_of_texts(tmp_path, columns, settings, message):
    pq.write_table(pa.table({**TEXTS, **columns}), tmp_path / "t.parquet")
    with pytest.raises(CorpusError, match=re.escape(message)):
        read(parquet(tmp_path, **AS_TEXT, **settings))


@pytest.mark.parametrize("classes", [[["neg"], ["pos"], ["neg"]], [[0], [1], [0]]])
def test_a_list_of_one_class_is_that_class(tmp_path, classes):
    pq.write_table(pa.table({**TEXTS, "label": classes}), tmp_path / "t.parquet")
    sentences = read(parquet(tmp_path, **AS_TEXT, tag_names=["neg", "pos"]))["train"]
    assert [sentence.tags for sentence in sentences] == [["neg"], ["pos"], ["neg"]]


@pytest.mark.parametrize("source", ["parquet", "huggingface"])
def test_a_split_without_labels_is_refused_in_one_sentence(tmp_path, source):
    names = datasets.Sequence(datasets.ClassLabel(names=NAMES))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": names})
    rows = {"tokens": WORDS, "ner_tags": [[-1, -1, -1], [-1]]}
    table = datasets.Dataset.from_dict(rows, features=features)
    if source == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
        config, place = parquet(tmp_path), "t.parquet: "
    else:
        with_names = datasets.Dataset.from_dict(rows | {"ner_tags": NUMBERS}, features=features)
        splits = {"train": with_names, "validation": with_names, "test": table}
        datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
        config, place = huggingface(tmp_path / "saved"), "[test]: "
    with pytest.raises(CorpusError) as refused:
        read(config)
    assert f"{place}row 0 (the first is 0) has negative numbers alone in column 'ner_tags'" in str(
        refused.value
    )
    assert refused.value.more_errors == ()


def test_a_class_is_no_span(tmp_path):
    with pytest.raises(ValueError, match="set scheme: flat"):
        parquet(tmp_path, columns={"text": "text"})


def test_parquet_with_a_language_column(tmp_path):
    table = pa.table(
        {
            "w": [["a"], ["b"], ["c"], []],
            "t": [["O"]] * 3 + [[]],
            "l": pa.array(["de", "en", "fr", "de"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    columns = {"token": "w", "tag": "t", "language": "l"}
    parts = read(parquet(tmp_path, languages=["en", "de"], columns=columns, unlabelled="t.parquet"))
    assert [(s.language, s.tokens, s.tags) for s in parts["dev"]] == [
        ("de", ["a"], ["O"]),
        ("en", ["b"], ["O"]),
    ]
    assert [s.tags for s in parts["unlabelled"]] == [None, None]


def test_parquet_written_by_datasets_names_its_tags(tmp_path):
    dataset().to_parquet(tmp_path / "t.parquet")
    assert words_and_tags(read(parquet(tmp_path))["test"]) == (WORDS, TAGS)


@pytest.mark.parametrize(
    ("columns", "settings", "problem", "hint"),
    [
        ({"words": WORDS}, {}, "there is no column 'tokens'", "set corpus.columns.token (words)"),
        ({"tokens": ["a b"], "ner_tags": [["O"]]}, {}, "has string, not lists of words", "columns.token"),
        ({"tokens": WORDS, "ner_tags": ["O", "O"]}, {}, "has string, not lists of tags", "columns.tag"),
        (
            {"tokens": WORDS, "ner_tags": NUMBERS},
            {},
            "the names of these tags are unknown",
            "set corpus.tag_names",
        ),
        (
            {"tokens": WORDS, "ner_tags": NUMBERS},
            {"tag_names": ["O", "B-PER"]},
            "row 0 (the first is 0) has a tag number outside 0 … 1",
            "tag_names",
        ),
        (
            {"tokens": WORDS, "ner_tags": [["O"], ["O"]]},
            {},
            "row 0 (the first is 0) has 3 words and 1 tag",
            "one tag per word",
        ),
        (
            {"tokens": WORDS, "ner_tags": [["O"] * 3, None]},
            {},
            "row 1 (the first is 0) has 1 word and 0 tags",
            "one tag per word",
        ),
        (
            {"tokens": [["a", None]], "ner_tags": [["O", "O"]]},
            {},
            "row 0 (the first is 0) has a null",
            "every word",
        ),
        (
            {"tokens": [*WORDS, []], "ner_tags": [*TAGS, ["O"]]},
            {},
            "row 2 (the first is 0) has 0 words and 1 tag",
            "one tag per word",
        ),
        (
            dict.fromkeys(("tokens", "ner_tags"), pa.array([[]], pa.list_(pa.string()))),
            {},
            "no sentence of en",
            "fill it",
        ),
    ],
)
def test_parquet_faults(tmp_path, columns, settings, problem, hint):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(CorpusError) as caught:
        read(parquet(tmp_path, **settings))
    assert caught.value.file == str(tmp_path / "t.parquet")
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_file_that_is_not_parquet_is_reported(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(CorpusError, match=r"t\.parquet: it is damaged, or not a Parquet file"):
        read(parquet(tmp_path))


def test_languages_must_differ(tmp_path):
    with pytest.raises(
        ValueError, match=r"both be read from .*: write \{lang\} into train, or set columns.language"
    ):
        parquet(tmp_path, languages=["en", "de"])
    with pytest.raises(
        ValueError, match=r"write \{lang\} into train, or set path, subset or columns.language"
    ):
        huggingface("x", languages=["en", "de"])
    huggingface("x-{lang}", languages=["en", "de"])
    huggingface("x", subset="{lang}", languages=["en", "de"])


def dataset(words=WORDS, numbers=NUMBERS):
    label = datasets.ClassLabel(names=NAMES)
    features = datasets.Features(
        {"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(label)}
    )
    return datasets.Dataset.from_dict({"tokens": words, "ner_tags": numbers}, features=features)


def test_a_saved_data_set_with_class_labels(tmp_path):
    splits = {"train": dataset(), "validation": dataset([["x"]], [[0]]), "test": dataset([["y"]], [[1]])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    parts = read(huggingface(tmp_path / "saved"))
    assert words_and_tags(parts["train"]) == (WORDS, TAGS)
    assert words_and_tags(parts["dev"]) == ([["x"]], [["O"]])
    assert words_and_tags(parts["test"]) == ([["y"]], [["B-PER"]])


def test_a_saved_single_split_is_drawn_from(tmp_path):
    # An indices mapping (shuffle, select) must be followed.
    dataset().select([1, 0]).save_to_disk(tmp_path / "en")
    config = huggingface("{lang}", root=str(tmp_path), split={"train": 3, "dev": 1, "test": 1})
    parts = read(config)
    assert set(parts) == {"train"}
    assert words_and_tags(parts["train"]) == (WORDS[::-1], TAGS[::-1])


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_folder_of_files(tmp_path, form):
    for split in ("train", "validation", "test"):
        getattr(dataset(), f"to_{form}")(tmp_path / f"{split}.{form}")
    names = {} if form == "parquet" else {"tag_names": NAMES}
    parts = read(huggingface(tmp_path, **names))
    assert {part: words_and_tags(sentences) for part, sentences in parts.items()} == dict.fromkeys(
        PARTS, (WORDS, TAGS)
    )


def test_splits_per_language(tmp_path):
    splits = {f"{part}.{lang}": dataset([[lang]], [[0]]) for part in PARTS for lang in ("da", "sv")}
    datasets.DatasetDict(splits).save_to_disk(tmp_path)
    names = {part: f"{part}.{{lang}}" for part in PARTS}
    parts = read(huggingface(tmp_path, languages=["sv", "da"], **names))
    assert [(s.language, s.tokens) for s in parts["train"]] == [("sv", ["sv"]), ("da", ["da"])]


def test_faults_of_a_data_set(tmp_path):
    datasets.DatasetDict({"train": dataset()}).save_to_disk(tmp_path / "saved")
    with pytest.raises(
        CorpusError, match=r"no split 'validation'; set corpus.dev to one of its splits \(train\)"
    ):
        read(huggingface(tmp_path / "saved"))
    with pytest.raises(CorpusError, match=r"no such folder; set corpus.root and corpus.path"):
        read(huggingface("nowhere", root=str(tmp_path)))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "train.json").write_text("{not json")
    with pytest.raises(CorpusError, match="the data set cannot be loaded"):
        read(huggingface("broken", root=str(tmp_path)))


def test_a_data_set_of_the_hub_is_asked_for_by_name_subset_and_revision(monkeypatch):
    calls = []

    def load_dataset(path, name=None, *, revision=None):
        calls.append((path, name, revision))
        return datasets.DatasetDict(dict.fromkeys(("train", "validation", "test"), dataset()))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    settings = {"subset": "{lang}", "revision": "abc", "languages": ["nl", "de"]}
    parts = read(huggingface("an-owner/a-data-set-of-the-hub", **settings))
    assert calls == [("an-owner/a-data-set-of-the-hub", lang, "abc") for lang in ("nl", "de")]
    assert [s.language for s in parts["train"]] == ["nl", "nl", "de", "de"]


def test_a_missing_package_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"not installed; run pip install datasets"):
        read(huggingface("anything"))


@pytest.mark.parametrize(
    "features",
    [
        [],
        {"ner_tags": 3},
        {"ner_tags": {"feature": {"names": 3}}},
        {"ner_tags": {"feature": {"names": [1, 2]}}},
    ],
)
def test_parquet_with_damaged_names_of_its_tags(tmp_path, features):
    about = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    table = pa.table({"tokens": WORDS, "ner_tags": NUMBERS}).replace_schema_metadata(about)
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(CorpusError, match=r"names of .*tags.*tag_names"):
        read(parquet(tmp_path))


def test_parquet_whose_text_is_no_utf_8(tmp_path):
    words = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    tokens = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), words)
    pq.write_table(pa.table({"tokens": tokens, "ner_tags": [["O"]]}), tmp_path / "t.parquet")
    with pytest.raises(CorpusError, match="is damaged, or not a Parquet file"):
        read(parquet(tmp_path))


@pytest.mark.parametrize("source", ["parquet", "huggingface"])
def test_blocks_of_rows_give_the_same_sentences_and_rows(tmp_path, monkeypatch, source):
    def written(tags):
        table = pa.table({"tokens": [*WORDS, [], *WORDS], "ner_tags": tags})
        if source == "parquet":
            pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
            return parquet(tmp_path)
        datasets.DatasetDict({part: datasets.Dataset(table) for part in PARTS}).save_to_disk(
            tmp_path / "saved"
        )
        return huggingface(tmp_path / "saved", dev="dev", test="test")

    config = written([*TAGS, [], *TAGS])
    whole = read(config)
    assert words_and_tags(whole["dev"]) == (WORDS * 2, TAGS * 2)
    monkeypatch.setattr(f"raykd.corpora.{source}.ROWS", 2)
    assert read(config) == whole
    with pytest.raises(CorpusError, match=r"row 4 \(the first is 0\) has 1 word and 2 tags"):
        read(written([*TAGS, [], TAGS[0], ["O", "O"]]))
