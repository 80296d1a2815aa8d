"""Text classification as TSV."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.config import READERS
from raykd.corpora.corpus import corpus_id, make_corpus, open_corpus, read_corpus, write_corpus
from raykd.corpora.describe import describe_corpus
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig
from raykd.corpora.tsv import TsvSource
from raykd.errors import CorpusError
from raykd.storage.store import Storage
from tests.corpora.parts import read
from tests.corpora_root import corpora_root


def source(root, **settings):
    plain = {"source": "tsv", "root": str(root), "languages": ["en"], "train": "t", "dev": "t", "test": "t"}
    return TsvSource.model_validate_json(json.dumps(plain | settings))


def test_words_and_class(tmp_path):
    (tmp_path / "t").write_text("label\ttext\n1\ta fine  film\n\n0\tdull\n")
    (tmp_path / "u").write_text("label\ttext\n\tnobody knows\n")
    parts = read(source(tmp_path, header=True, columns={"text": 1, "label": 0}, unlabelled="u"))
    assert [(s.tokens, s.tags, s.unit, s.origin) for s in parts["train"]] == [
        (["a", "fine", "film"], ["1"], "sentence", (str(tmp_path / "t"), 2)),
        (["dull"], ["0"], "sentence", (str(tmp_path / "t"), 4)),
    ]
    assert [(s.tokens, s.tags) for s in parts["unlabelled"]] == [(["nobody", "knows"], None)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("good\t1\nbad\n", 2, "1 column between tabs where at least 2 are expected"),
        ("good\t1\n \t0\n", 2, "the text or its class is empty"),
        ("good\t\n", 1, "the text or its class is empty"),
        ("good\t1\na tab\tinside\t0\n", 2, "3 columns between tabs where the first line has 2"),
        ("a tab\tinside\t0\ngood\t1\n", 2, "2 columns between tabs where the first line has 3"),
        ("good\t1\rbad\t0\r", 1, "a carriage return is inside the line"),
        ("good\t1\nb\0d\t0\n", 2, "a zero byte is inside the line"),
    ],
)
def test_faults_are_reported_with_file_and_line(tmp_path, text, line, problem):
    (tmp_path / "t").write_text(text)
    with pytest.raises(CorpusError) as caught:
        read(source(tmp_path))
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "t"), line)
    assert problem in caught.value.problem


def written(tmp_path, **parts):
    """Write a corpus folder with `count` texts per class and part, in turns: one class is three times as common."""
    for part, count in parts.items():
        lines = [f"{part} {i}\t{'pos' if i % 4 else 'neg'}\n" for i in range(4 * count)]
        (tmp_path / part).write_text("".join(lines))
    return {part: part for part in parts}


def classes(corpus, part):
    return Counter(
        None if tags is None else corpus.tag_set.tags[tags[0]]
        for tags in corpus.parts[part]["tags"].to_pylist()
    )


def texts(corpus, part):
    return {" ".join(words) for words in corpus.parts[part]["tokens"].to_pylist()}


def test_one_number_per_sentence(tmp_path):
    (tmp_path / "u").write_text("train 1\nnobody knows\nnobody knows\n")
    corpus = read_corpus(source(tmp_path, **written(tmp_path, train=5, dev=2, test=2), unlabelled="u"))
    assert (corpus.unit, corpus.tag_set.form.scheme) == ("sentence", "flat")
    assert corpus.labels == corpus.tag_set.tags == ("neg", "pos")
    for part in ("train", "dev", "test"):
        assert set(map(len, corpus.parts[part]["tags"].to_pylist())) == {1}
    assert corpus.parts["train"].column_names == ["tokens", "tags", "language"]
    assert classes(corpus, "train") == {"pos": 15, "neg": 5}
    # Unlabelled text needs no class; repeated and training sentences are dropped from it.
    assert corpus.parts["unlabelled"].to_pylist() == [
        {"tokens": ["nobody", "knows"], "tags": None, "language": "en"}
    ]
    assert corpus.report.duplicates == {"train": {}, "unlabelled": {"en": 2}}


def test_classes_are_described_counted_and_warned_about(tmp_path):
    names = written(tmp_path, train=5, dev=2, test=2)
    (tmp_path / "test").write_text("odd\tother\n")
    corpus = read_corpus(source(tmp_path, **names))
    figures = describe_corpus(corpus)
    assert (figures["unit"], figures["labels"]) == ("sentence", ["neg", "other", "pos"])
    assert figures["parts"][0]["labels"] == {"neg": 5, "pos": 15}
    assert (
        "label 'other' is in no training sentence, so it cannot be learnt (1 x in test en)"
        in figures["warnings"]
    )


def test_the_unit_is_stored_restricted_and_part_of_the_identity(tmp_path):
    corpus = read_corpus(source(tmp_path, **written(tmp_path, train=5, dev=2, test=2)))
    store = Storage(str(tmp_path / "store"))
    name = write_corpus(corpus, store)
    opened = open_corpus(store, name)
    assert (opened.unit, opened.select_languages(["en"]).unit, corpus_id(opened)) == (
        "sentence",
        "sentence",
        name,
    )
    assert corpus_id(replace(corpus, unit="word")) != name


def test_files_that_tag_words_and_files_that_tag_sentences_make_no_corpus():
    parts = {part: [Sentence([part], ["pos"], "en", ("a.tsv", 1), "sentence")] for part in ("train", "dev")}
    parts["test"] = [Sentence(["x", "y"], ["A", "B"], "en", ("b.conll", 7))]
    with pytest.raises(
        CorpusError, match="use one kind of tags in a corpus: remove the other files"
    ) as caught:
        make_corpus(parts, SourceConfig(languages=("en",)))
    assert (caught.value.file, caught.value.line) == ("b.conll", 7)


@pytest.mark.parametrize("split", [None, {"train": 3, "dev": 1, "test": 1}])
def test_a_cap_per_class_holds_in_train_alone_beside_cap(tmp_path, split):
    names = written(tmp_path, train=50, dev=30, test=30)
    drawn = {"dev": None, "test": None, "split": split} if split else {}
    whole = read_corpus(source(tmp_path, **(names | drawn)))
    capped = read_corpus(source(tmp_path, **(names | drawn), cap_per_class=20, unlabelled="rest"))
    assert classes(capped, "train") == {"pos": 20, "neg": 20}
    for part in ("dev", "test"):
        assert capped.parts[part].equals(whole.parts[part])
    assert texts(capped, "train") | texts(capped, "unlabelled") == texts(whole, "train")
    assert not texts(capped, "train") & texts(capped, "unlabelled")
    assert classes(capped, "unlabelled") == {None: whole.parts["train"].num_rows - 40}
    both = read_corpus(source(tmp_path, **(names | drawn), cap_per_class=20, cap=100, unlabelled="rest"))
    limited = read_corpus(source(tmp_path, **(names | drawn), cap=100))
    expected = {name: min(20, count) for name, count in classes(limited, "train").items()}
    assert classes(both, "train") == expected
    assert texts(both, "train") < texts(limited, "train")


def test_a_smaller_cap_per_class_takes_a_subset(tmp_path):
    names = written(tmp_path, train=50, dev=1, test=1)
    texts_by_cap = {
        (cap, class_cap): texts(
            read_corpus(source(tmp_path, **names, cap=cap, cap_per_class=class_cap)), "train"
        )
        for cap in (60, 120)
        for class_cap in (5, 20)
    }
    assert texts_by_cap[60, 5] == texts_by_cap[120, 5]  # both caps follow one order
    assert texts_by_cap[120, 5] < texts_by_cap[120, 20]
    assert texts_by_cap[60, 5] < texts_by_cap[60, 20] <= texts_by_cap[120, 20]
    other_seed = read_corpus(source(tmp_path, **names, cap_per_class=5, seed=1))
    assert texts(other_seed, "train") != texts_by_cap[120, 5]


def test_a_cap_per_class_of_each_language(tmp_path):
    for language in ("en", "de"):
        for part in ("train", "dev", "test"):
            lines = [f"{language} {part} {i}\t{i % 2}\n" for i in range(20)]
            (tmp_path / f"{language}.{part}").write_text("".join(lines))
    names = {part: f"{{lang}}.{part}" for part in ("train", "dev", "test")}
    cap = {"en": 3, "default": 5}
    corpus = read_corpus(source(tmp_path, languages=["en", "de"], **names, cap_per_class=cap))
    assert corpus.report.sentences["train"] == {"en": 6, "de": 10}
    with pytest.raises(ValueError, match="cap_per_class names fr, not among languages"):
        source(tmp_path, cap_per_class={"fr": 3})


def test_a_cap_per_class_needs_classes_of_sentences(tmp_path):
    with pytest.raises(
        ValueError, match=r"cap_per_class counts sentences by class, .*one tag per word: set cap"
    ):
        BuiltinSource(source="builtin", cap_per_class=5)
    with pytest.raises(ValueError, match="rest takes what the caps leave: set cap or cap_per_class"):
        source(tmp_path, unlabelled="rest")


def sst2(**settings):
    names = {part: f"{part}.tsv" for part in ("train", "dev", "test")}
    return read_corpus(source(corpora_root("sst2"), **names, **settings))


def test_sst2_is_read_as_published():
    corpus = sst2()
    assert (corpus.unit, corpus.labels) == ("sentence", ("0", "1"))
    assert corpus.parts["dev"].num_rows == 872
    assert corpus.parts["test"].num_rows == 1821
    train = corpus.parts["train"]
    dropped = sum(
        sum(counts["train"].values()) for counts in (corpus.report.overlaps, corpus.report.duplicates)
    )
    assert train.num_rows + dropped == 6920
    assert train["tokens"][0].as_py()[:4] == ["a", "stirring", ",", "funny"]
    assert train["tags"][0].as_py() == [1]
    assert classes(corpus, "test") == {"0": 912, "1": 909}


def test_500_labels_a_class_of_sst2_and_the_rest_as_text():
    corpus, whole = sst2(cap_per_class=500, unlabelled="rest"), sst2()
    assert classes(corpus, "train") == {"0": 500, "1": 500}
    assert corpus.parts["unlabelled"].num_rows == whole.parts["train"].num_rows - 1000
    assert corpus.parts["test"].equals(whole.parts["test"])


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"'])
def test_the_line_in_which_excel_names_the_separator_is_no_row(tmp_path, first):
    (tmp_path / "t").write_text(f"{first}\r\ntext;label\r\na good one;GOOD\r\n")
    (sentence, *_) = read(source(tmp_path, separator="semicolon", header=True))["train"]
    assert (sentence.tokens, sentence.tags, sentence.origin[1]) == (["a", "good", "one"], ["GOOD"], 3)


def test_names_of_columns_are_no_text(tmp_path):
    (tmp_path / "t").write_text("text\tlabel\na good one\tGOOD\n")
    with pytest.raises(
        CorpusError, match=r"t:1: the line has the names of columns: text, label; set corpus.header: true"
    ):
        read(source(tmp_path))


CSV = '"A ""good"", long\ntext",GOOD,1\n\nBad one,BAD,2\n"broken,BAD,3\n'


def test_cells_of_csv_stand_in_quotation_marks(tmp_path):
    (tmp_path / "t").write_text(CSV)
    config = source(tmp_path, separator="comma", on_error="skip")
    good, bad, broken = (sentence for part, sentence in READERS["tsv"](config) if part == "train")
    assert (good.tokens, good.tags, good.origin[1]) == (["A", '"good",', "long", "text"], ["GOOD"], 1)
    assert (bad.tokens, bad.tags, bad.origin[1]) == (["Bad", "one"], ["BAD"], 4)
    (fault,) = broken.faults
    assert (fault.line, fault.problem) == (5, "the line is not CSV (unexpected end of data)")
    (tmp_path / "t").write_text("a;b;c\na, b;c\n")
    with pytest.raises(CorpusError, match="2 columns between semicolons where the first line has 3"):
        read(source(tmp_path, separator="semicolon"))
