"""Intents and slots in the files of ATIS, xSID and MultiATIS++."""

import json

import pytest

from raykd.corpora.corpus import corpus_id, open_corpus, read_corpus, write_corpus
from raykd.corpora.describe import describe_corpus, example_sentences
from raykd.corpora.utterance_files import PARSERS, UtteranceSource, as_spoken
from raykd.errors import CorpusError
from raykd.storage.store import Storage
from tests.corpora.parts import read
from tests.corpora_root import corpora_root

HEADER = "id\tutterance\tslot_labels\tintent\n"
FILES = {
    "atis": "BOS fares to New York , please EOS\tO O O B-city I-city O O fare\n\nBOS go EOS\t O O flight#fare \n",
    "xsid": (
        "# text: fares to New York , please\n"
        "1\tfares\tfare\tO\n2\tto\tfare\tO\n3\tNew\tfare\tB-city\n4\tYork\tfare\tI-city\n5\t,\tfare\tO\n"
        "6\tplease\tfare\tO\n\n# id: 2\n1\tgo\tflight#fare\tO\n"
    ),
    "multiatis": HEADER
    + "1\tfares to New York , please\tO O B-city I-city O O\tfare\n2\tgo\tO\tflight#fare\n",
}
WORDS = [["<utterance>", "fares", "to", "New", "York", ",", "please"], ["<utterance>", "go"]]
TAGS = [["intent:fare", "O", "O", "B-city", "I-city", "O", "O"], ["intent:flight#fare", "O"]]
LINES = {"atis": [1, 3], "xsid": [2, 10], "multiatis": [2, 3]}


def source(root, kind, **settings):
    plain = {"source": kind, "root": str(root), "languages": ["en"], "train": "t", "dev": "t", "test": "t"}
    return UtteranceSource.model_validate_json(json.dumps(plain | settings))


def test_every_format_has_an_example():
    assert set(FILES) == set(PARSERS)


@pytest.mark.parametrize("kind", FILES)
def test_intent_words_and_slots(tmp_path, kind):
    (tmp_path / "t").write_text(FILES[kind])
    sentences = read(source(tmp_path, kind))["train"]
    assert [sentence.tokens for sentence in sentences] == WORDS
    assert [sentence.tags for sentence in sentences] == TAGS
    assert [sentence.origin for sentence in sentences] == [
        (str(tmp_path / "t"), line) for line in LINES[kind]
    ]


@pytest.mark.parametrize("kind", FILES)
def test_without_labels_there_are_words_alone(tmp_path, kind):
    (tmp_path / "t").write_text(FILES[kind])
    (tmp_path / "plain").write_text("Fares to New York, please.\n")
    parts = read(source(tmp_path, kind, unlabelled="t"))
    assert [(sentence.tokens, sentence.tags) for sentence in parts["unlabelled"]] == [
        (words, None) for words in WORDS
    ]
    plain = read(source(tmp_path, kind, unlabelled="plain", unlabelled_form="sentences"))["unlabelled"]
    assert [sentence.tokens for sentence in plain] == [
        ["<utterance>", "Fares", "to", "New", "York", ",", "please", "."]
    ]


@pytest.mark.parametrize("kind", FILES)
def test_the_spoken_form(tmp_path, kind):
    (tmp_path / "t").write_text(FILES[kind])
    first, second = read(source(tmp_path, kind, spoken=True))["train"]
    assert first.tokens == ["<utterance>", "fares", "to", "new", "york", "please"]
    assert first.tags == ["intent:fare", "O", "O", "B-city", "I-city", "O"]
    assert second.tokens == ["<utterance>", "go"]


def test_spans_stay_whole_where_punctuation_is_left_out():
    words = ["(", "St.", "-", "Louis", ")", "$5", "o'clock", "?"]
    slots = ["B-a", "I-a", "I-a", "I-a", "O", "B-b", "I-b", "B-c"]
    assert as_spoken(words, slots) == (
        ["st", "louis", "$5", "o'clock"], ["B-a", "I-a", "B-b", "I-b"]
    )  # fmt: skip
    # Each word is left out, and the last one begins the span.
    assert as_spoken(["(", "(", "A"], ["B-a", "I-a", "I-a"]) == (["a"], ["B-a"])
    assert as_spoken(["(", "A"], ["B-a", "B-b"]) == (["a"], ["B-b"])
    assert as_spoken(["A", "B", "("], []) == (["a", "b"], [])


FAULTS = [
    ("atis", "BOS go EOS\tO O\n", 1, "1 word and 0 slots"),
    ("atis", "BOS go now EOS\tO O fare\n", 1, "2 words and 1 slot"),
    ("atis", "BOS go EOS\tO O fare\nBOS go EOS\n", 2, "no slots behind a tab"),
    ("atis", "go\tO O fare\n", 1, "not between BOS and EOS"),
    ("atis", "BOS EOS\tO fare\n", 1, "the utterance has no words"),
    ("atis", "BOS g\0 EOS\tO O fare\n", 1, "a zero byte"),
    ("xsid", "1\tgo\tfare\n", 1, "3 columns where 4 are expected"),
    ("xsid", "1\tgo\tfare\tO\n2\tnow\tflight\tO\n", 1, "have the intents fare, flight"),
    ("xsid", "1\tgo\t\tO\n", 1, "the intent is empty"),
    ("multiatis", "id\tutterance\tintent\n1\tgo\tfare\n", 1, "names no column slot_labels"),
    ("multiatis", HEADER + "1\tgo now\tO\tfare\n", 2, "2 words and 1 slot"),
    ("multiatis", HEADER + "1\tgo\tO\n", 2, "3 columns between tabs where the first line names 4"),
    ("multiatis", HEADER + "1\tgo\tO\t\n", 2, "the intent is empty"),
]


@pytest.mark.parametrize(("kind", "text", "line", "problem"), FAULTS)
def test_faults_are_reported_with_file_and_line(tmp_path, kind, text, line, problem):
    (tmp_path / "t").write_text(text)
    with pytest.raises(CorpusError) as caught:
        read(source(tmp_path, kind))
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "t"), line)
    assert problem in caught.value.problem


def test_nothing_but_punctuation_is_no_spoken_utterance(tmp_path):
    (tmp_path / "t").write_text("BOS ? EOS\tO O fare\n")
    with pytest.raises(CorpusError, match="no word is left without punctuation"):
        read(source(tmp_path, "atis", spoken=True))


def test_faulty_rows_are_left_out_and_counted(tmp_path):
    rows = ["1\tgo now\tO\tfare", "2\tgo on\tO X\tfare", "3\tgo\tO\tfare", "4\tto Rome\tO B-city\tfare"]
    for part in ("train", "dev", "test"):
        lines = "\n".join(row.replace("go", f"go {part}").replace("\tO", "\tO O") for row in rows)
        (tmp_path / part).write_text(HEADER + lines.replace("to", f"{part} to") + "\n")
    parts = {part: part for part in ("train", "dev", "test")}
    corpus = read_corpus(source(tmp_path, "multiatis", on_error="skip", most_skipped=1, **parts))
    assert corpus.parts["train"].num_rows == 2
    assert corpus.report.skipped["train"] == {"en": 2}
    assert any("3 words and 2 slots" in warning for warning in corpus.report.warnings())


def test_a_corpus_of_utterances(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / part).write_text(
            f"BOS {part} to New York EOS\tO O O B-city I-city fare\nBOS {part} EOS\tO O go\n"
        )
    corpus = read_corpus(source(tmp_path, "atis", **{part: part for part in ("train", "dev", "test")}))
    assert corpus.tag_set.form.scheme == "utterance"
    assert corpus.labels == ("city", "intent:fare", "intent:go")
    tags = corpus.parts["train"]["tags"].to_pylist()
    assert [corpus.tag_set.decode(row) for row in tags] == [
        ["intent:fare", "O", "O", "B-city", "E-city"], ["intent:go", "O"]
    ]  # fmt: skip
    assert describe_corpus(corpus)["parts"][0]["labels"] == {"city": 1, "intent:fare": 1, "intent:go": 1}
    assert example_sentences(corpus) == {"en": "fare: train to [New York]city"}
    storage = Storage(str(tmp_path / "store"))
    stored = open_corpus(storage, write_corpus(corpus, storage))
    assert corpus_id(stored) == corpus_id(corpus)
    assert stored.tag_set == corpus.tag_set


def test_tags_that_continue_nothing_are_repaired_and_counted(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / part).write_text(f"BOS {part} Rome EOS\tO O I-city fare\n")
    corpus = read_corpus(source(tmp_path, "atis", **{part: part for part in ("train", "dev", "test")}))
    assert corpus.tag_set.decode(corpus.parts["train"]["tags"].to_pylist()[0]) == [
        "intent:fare",
        "O",
        "S-city",
    ]
    assert corpus.report.repairs["train"] == {"en": 1}
    assert "'I-city' of word 2" in corpus.report.examples["repairs"]["train"]["en"][0]


def test_atis():
    names = {
        part: f"atis{two}.{part}.w-intent.iob" for part, two in (("train", "-2"), ("dev", "-2"), ("test", ""))
    }
    parts = read(source(corpora_root("atis"), "atis", **names))
    assert {part: len(sentences) for part, sentences in parts.items()} == {
        "train": 4478,
        "dev": 500,
        "test": 893,
    }
    assert (
        len({tag for sentence in parts["train"] for tag in sentence.tags if tag.startswith("intent:")}) == 21
    )


def test_xsid():
    languages = ["ar", "da", "de", "en", "id", "it", "ja", "nl", "tr", "zh"]
    split = {"train": 4, "dev": 1, "test": 0}
    settings = {
        "languages": languages,
        "train": "{lang}.valid.conll",
        "test": "{lang}.test.conll",
        "dev": None,
    }
    settings |= {"split": split, "on_error": "skip", "most_skipped": 1}
    parts = read(source(corpora_root("xsid"), "xsid", **settings))
    # Of Chinese seven utterances have a word of no characters; of Japanese half are there.
    assert len(parts["test"]) == 9 * 500 + 250 - 6
    assert len(parts["train"]) == 9 * 300 + 150 - 1
