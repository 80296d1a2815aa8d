"""Pairs of texts: from every source, in one file of several parts, and as pieces of every vocabulary."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raykd.corpora.corpus import corpus_id, open_corpus, read_corpus, write_corpus
from raykd.corpora.encoded_text import encode_text
from raykd.corpora.jsonl import JsonlSource
from raykd.corpora.parquet import ParquetSource
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.sentence import SEPARATOR
from raykd.corpora.tsv import TsvSource
from raykd.corpora.vocabulary import WordPieceVocabulary, WordVocabulary
from raykd.errors import CorpusError
from raykd.storage.store import Storage
from tests.corpora.parts import read
from tests.corpora_root import corpora_root
from tests.teachers.checkpoints import make_checkpoint

HEADER = "id\tsplit\tone\tother\tjudgment\n"
ROWS = [
    ("1", "TRAIN", "a man runs", "a man  moves", "yes"),
    ("2", "TRIAL", "a man runs", "nobody runs", "no"),
    ("3", "TEST", "it rains", "a man runs", "maybe"),
    ("4", "TRAIN", "it rains", "nobody runs", "no"),
]
COLUMNS = {"text": "one", "second": "other", "label": "judgment", "part": "split"}
PARTS = {"train": "TRAIN", "dev": "TRIAL", "test": "TEST"}


def source(root, **settings):
    plain = {"source": "tsv", "root": str(root), "languages": ["en"], "train": "t", "dev": "t", "test": "t"}
    settings_of_names = {"header": True, "columns": COLUMNS, "part_values": PARTS}
    return TsvSource.model_validate_json(json.dumps(plain | settings_of_names | settings))


def written(folder, rows=ROWS, name="t"):
    (folder / name).write_text(HEADER + "".join("\t".join(row) + "\n" for row in rows))


def test_one_file_has_all_parts_with_columns_by_name_and_other_names_of_classes(tmp_path):
    written(tmp_path)
    config = source(tmp_path, labels={"yes": "YES", "no": "NO"})
    parts = read(config)
    assert config.pairs
    assert [(s.tokens, s.tags, s.origin[1]) for s in parts["train"] if s.origin] == [
        (["a", "man", "runs", "\t", "a", "man", "moves"], ["YES"], 2),
        (["it", "rains", "\t", "nobody", "runs"], ["NO"], 5),
    ]
    assert [s.tags for s in parts["dev"] + parts["test"]] == [["NO"], ["maybe"]]


def test_the_columns_and_files_of_each_language(tmp_path):
    written(tmp_path)
    (tmp_path / "nl").write_text("zin\tander\tlabel\neen\ttwee\tYES\n")
    columns = {"en": COLUMNS, "nl": {"text": "zin", "second": 1, "label": "label"}}
    settings = {"languages": ["en", "nl"], "zero_shot_languages": ["nl"], "test": {"en": "t", "nl": "nl"}}
    corpus = read_corpus(source(tmp_path, columns=columns, labels={"yes": "YES"}, **settings))
    assert corpus.parts["test"].to_pylist()[1] == {
        "tokens": ["een", "\t", "twee"], "tags": [corpus.tag_set.index("YES")], "language": "nl"
    }  # fmt: skip


def test_pairs_are_equal_where_both_texts_are(tmp_path):
    """Equal words with the border at different places make different pairs."""
    same = [
        ("5", "TRAIN", "it", "rains a man runs", "no"),
        ("6", "TRAIN", "it rains", "a man runs", "no"),
        ("7", "TRAIN", "a man runs", "a man moves", "no"),
    ]
    written(tmp_path, [*ROWS, *same])
    corpus = read_corpus(source(tmp_path))
    assert [" ".join(words) for words in corpus.parts["train"]["tokens"].to_pylist()] == [
        "a man runs \t a man moves", "it rains \t nobody runs", "it \t rains a man runs"
    ]  # fmt: skip
    assert corpus.report.overlaps["train"] == corpus.report.duplicates["train"] == {"en": 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"header": False}, "'one' is a name, and there is no header: set header: true"),
        ({"part_values": {"train": "TRAIN"}}, "part_values has nothing for dev, which is read of en"),
        ({"columns": {"text": 2, "second": 3}}, "part_values has no effect"),
        (
            {"columns": {"en": COLUMNS, "nl": {"text": 0}}, "languages": ["en", "nl"], "train": "{lang}"},
            "nl has no second text, and other languages have pairs",
        ),
        ({"unlabelled": "u", "unlabelled_form": "sentences"}, "plain text has no pairs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, settings, message):
    parts = {"dev": "{lang}.dev", "test": "{lang}.test"} if "languages" in settings else {}
    values = {"part_values": {**PARTS, "unlabelled": "X"}} if "unlabelled" in settings else {}
    with pytest.raises(ValueError, match=message):
        source(tmp_path, **parts, **values, **settings)


@pytest.mark.parametrize(
    ("settings", "line", "problem"),
    [
        ({"columns": {**COLUMNS, "second": "otter"}}, 1, "there is no column 'otter' in the header"),
        ({"part_values": {**PARTS, "dev": "DEV"}}, None, "no row has 'DEV' in the column of the part, but"),
    ],
)
def test_faults_of_files_are_reported(tmp_path, settings, line, problem):
    written(tmp_path)
    with pytest.raises(CorpusError) as caught:
        read(source(tmp_path, **settings))
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "t"), line)
    assert problem in caught.value.problem


def test_a_pair_with_an_empty_text_is_a_fault(tmp_path):
    written(tmp_path, [*ROWS, ("8", "TRAIN", "a", " ", "no")])
    with pytest.raises(CorpusError, match="one of the texts or its class is empty") as caught:
        read(source(tmp_path))
    assert caught.value.line == 6


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_tables_have_two_columns_of_texts(tmp_path, kind):
    rows = [{"premise": "it rains", "hypothesis": "it  is wet", "label": number} for number in (0, 1)]
    settings = {"root": str(tmp_path), "languages": ("en",), "scheme": "flat", "tag_names": ("no", "yes")}
    settings |= {"split": {"train": 8, "dev": 1, "test": 1}, "train": "t"}
    settings |= {"columns": {"text": "premise", "second": "hypothesis"}}
    if kind == "jsonl":
        (tmp_path / "t").write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = JsonlSource(source="jsonl", **settings)
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t")
        config = ParquetSource(source="parquet", **settings)
    assert config.pairs
    assert [(s.tokens, s.tags) for s in read(config)["train"]] == [
        (["it", "rains", "\t", "it", "is", "wet"], [name]) for name in ("no", "yes")
    ]
    with pytest.raises(ValueError, match=r"name the first ones in columns\.text"):
        type(config)(source=kind, **(settings | {"columns": {"second": "hypothesis"}}))


def test_what_is_outside_of_the_mean_is_stored_and_part_of_the_identity(tmp_path):
    written(tmp_path)
    plain = {"languages": ["en", "nl", "ja"], "zero_shot_languages": ["nl", "ja"], "train": {"en": "t"}}
    plain |= {"dev": {"en": "t"}, "test": "{lang}"}
    for language in plain["languages"]:
        written(tmp_path, name=language)
    corpus = read_corpus(source(tmp_path, **plain, outside_mean=["ja"]))
    store = Storage(str(tmp_path / "store"))
    assert open_corpus(store, write_corpus(corpus, store)).outside_mean == ("ja",)
    assert corpus.select_languages(["en", "nl"]).outside_mean == ()
    assert corpus_id(corpus) != corpus_id(read_corpus(source(tmp_path, **plain)))
    for outside, message in (
        (["en"], "outside_mean names en, which training labels"),
        (["nl", "ja"], "none is left for their mean"),
    ):
        with pytest.raises(ValueError, match=message):
            source(tmp_path, **plain, outside_mean=outside)


def test_the_pieces_of_both_texts_with_a_separator_between_them(tmp_path):
    sentences = [["an", "bo", SEPARATOR, "abc"], ["an"]]
    words = [word for sentence in sentences for word in sentence] * 3
    for vocabulary in (WordVocabulary.build(words), WordPieceVocabulary.build(words, size=100)):
        batch = encode_text(sentences, vocabulary).gather(np.array([0]))
        assert batch.lengths_B.tolist() == [4]
        separator = batch.pieces_BP[0, batch.first_BT[0, 2] : batch.first_BT[0, 3]].tolist()
        assert len(separator) == 1
        assert separator[0] not in (0, 1)
        assert separator == vocabulary.pieces([SEPARATOR]).values.tolist()
    checkpoint = make_checkpoint(tmp_path)
    for prune in (False, True):
        vocabulary = HFVocabulary.load(checkpoint).for_words(words, prune=prune)
        reloaded = HFVocabulary.from_json(vocabulary.to_json())
        batch = encode_text(sentences, reloaded).gather(np.array([0]))
        tokenizer = reloaded._tokenizer
        names = [tokenizer.id_to_token(id) for id in batch.pieces_BP[0].tolist()]
        assert names == ["[CLS]", "an", "bo", "[SEP]", "a", "##b", "##c", "[SEP]"]


def test_word_pieces_always_have_the_separator():
    words = [chr(0x4E00 + row) * 2 for row in range(80) for _ in range(9)]
    vocabulary = WordPieceVocabulary.build([*words, SEPARATOR], size=100)
    assert vocabulary.pieces([SEPARATOR]).values.tolist() != [vocabulary.special.unknown]


def sick(**settings):
    """SICK, its Dutch and its Japanese translation, in the files and columns that their authors chose."""
    english = {"text": "sentence_A", "second": "sentence_B", "label": "entailment_judgment"}
    dutch = {**english, "label": "entailment_label", "part": "SemEval_set"}
    japanese = {"text": "sentence_A_Ja", "second": "sentence_B_Ja", "label": "entailment_label_Ja"}
    plain = {
        "languages": ["en", "nl", "ja"], "columns": {"en": english, "nl": dutch, "ja": japanese},
        "train": {"en": "SICK_train.txt", "nl": "SICK_NL.txt", "ja": "jsick.train.tsv"},
        "dev": {"en": "SICK_trial.txt", "nl": "SICK_NL.txt"},
        "test": {"en": "SICK_test_annotated.txt", "nl": "SICK_NL.txt", "ja": "jsick.test.tsv"},
        "labels": {name.lower(): name for name in ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")},
    }  # fmt: skip
    return source(corpora_root("sick"), **plain | settings)


def test_sick_is_read_as_published():
    corpus = read_corpus(sick(zero_shot_languages=["ja"], overlaps="keep", duplicates="keep"))
    assert corpus.labels == ("CONTRADICTION", "ENTAILMENT", "NEUTRAL")
    counts = {part: Counter(table["language"].to_pylist()) for part, table in corpus.parts.items()}
    assert counts["train"] == {"en": 4500, "nl": 4439}
    assert counts["dev"] == {"en": 500, "nl": 495}
    assert counts["test"] == {"en": 4927, "nl": 4906, "ja": 4927}
    test = corpus.parts["test"].filter(pa.array(np.array(corpus.parts["test"]["language"]) == "ja"))
    labels = Counter(corpus.tag_set.tags[tags[0]] for tags in test["tags"].to_pylist())
    assert labels == {"NEUTRAL": 3042, "ENTAILMENT": 1088, "CONTRADICTION": 797}
    assert {words.count(SEPARATOR) for words in corpus.parts["test"]["tokens"].to_pylist()} == {1}
