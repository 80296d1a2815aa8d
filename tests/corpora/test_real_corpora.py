"""Published corpora, as far as they are at hand."""

import json
from collections import Counter

import pytest
from pydantic import TypeAdapter

from raykd.corpora import CorpusConfig, read_corpus
from tests.corpora.parts import read
from tests.corpora_root import corpora_root

UNER = {"columns": {"token": 1, "tag": 2}} | {
    part: f"uner/{{lang}}_*-ud-{part}.iob2" for part in ("train", "dev", "test")
}
ASPECT = {"columns": {"tag": 1}} | {part: f"aspect/{{lang}}-{part}.txt" for part in ("train", "dev", "test")}
UD = {part: f"ud/{{lang}}_*-ud-{part}.conllu" for part in ("train", "dev", "test")}
WIKIANN = {"columns": {"token": 1, "tag": 2}, "train": "wikiann/{lang}/train.conllu"}

SENTENCES = {
    "uner": {
        "da": (4383, 564, 565), "pt": (7018, 1172, 1167), "sk": (8483, 1060, 1061), "sv": (4303, 504, 1219),
        "zh": (3997, 500, 500),
    },
    "aspect": {
        "en": (1600, 400, 676), "es": (1656, 414, 881), "nl": (1378, 344, 575), "ru": (2924, 731, 1209),
        "tr": (986, 246, 144),
    },
    "ud": {
        "en": (12544, 2001, 2077), "vi": (1400, 1123, 800), "fr": (2231, 412, 456), "el": (1662, 403, 456),
        "ta": (400, 80, 120),
    },
}  # fmt: skip


def config(source, languages, **settings):
    plain = {"source": source, "root": str(corpora_root()), "languages": list(languages)}
    return TypeAdapter(CorpusConfig).validate_json(json.dumps(plain | settings))


@pytest.mark.parametrize(
    ("folder", "source", "settings"),
    [("uner", "conll", UNER), ("aspect", "conll", ASPECT), ("ud", "conllu", UD)],
)
def test_every_sentence_is_read(folder, source, settings):
    corpus_config = config(source, SENTENCES[folder], **settings)
    parts = read(corpus_config)
    for part, place in (("train", 0), ("dev", 1), ("test", 2)):
        counts = Counter(sentence.language for sentence in parts[part])
        assert counts == {language: expected[place] for language, expected in SENTENCES[folder].items()}
        assert all(len(sentence.tokens) == len(sentence.tags) > 0 for sentence in parts[part])


def test_universal_ner():
    corpus = read_corpus(config("conll", ["sv", "sk"], **UNER))
    assert corpus.report.schemes == {"sv": "iob2", "sk": "iob2"}
    assert {"PER", "LOC", "ORG"} <= set(corpus.tag_set.labels)
    assert corpus.parts["test"].num_rows == 1219 + 1061


def test_aspect_terms_are_spans_with_their_polarity():
    corpus = read_corpus(config("conll", ["en", "es", "nl", "ru", "tr"], **ASPECT))
    assert set(corpus.report.schemes.values()) == {"io"}
    assert corpus.tag_set.form.scheme == "bioes"
    assert corpus.tag_set.labels == ("T-NEG", "T-NEU", "T-POS")
    assert not any(corpus.report.repairs.values())
    assert corpus.report.sentences["test"] == {"en": 676, "es": 881, "nl": 575, "ru": 1209, "tr": 144}


def test_languages_of_two_collections_make_one_corpus():
    parts = {
        part: {"default": f"wikiann/{{lang}}/{name}.conllu"}
        | dict.fromkeys(("da", "zh"), f"uner/{{lang}}_*-ud-{part}.iob2")
        for part, name in (("train", "train"), ("dev", "val"), ("test", "test"))
    }
    corpus_config = config(
        "conll", ["en", "nl", "da", "zh"], columns={"token": 1, "tag": 2}, cap=300, test_cap=200, dev_cap=100,
        unlabelled_languages=["nl"], zero_shot_languages=["zh"], unlabelled_cap=500, **parts,
    )  # fmt: skip
    corpus = read_corpus(corpus_config)
    assert (corpus.sources, corpus.targets) == (("en", "da"), ("nl", "zh"))
    assert corpus.report.sentences == {
        "train": {"en": 300, "nl": 0, "da": 300, "zh": 0},
        "unlabelled": {"en": 0, "nl": 500, "da": 0, "zh": 0},
        "dev": {"en": 100, "nl": 0, "da": 100, "zh": 0},
        "test": {"en": 200, "nl": 200, "da": 200, "zh": 200},
    }
    assert corpus.tag_set.labels == ("LOC", "ORG", "PER")


def test_universal_dependencies_have_parts_of_speech():
    corpus = read_corpus(config("conllu", ["ta", "el"], **UD))
    assert corpus.tag_set.form.scheme == "flat"
    assert {"NOUN", "VERB", "PUNCT"} < set(corpus.tag_set.tags)
    assert len(corpus.tag_set) <= 17


def test_wikiann_as_the_2021_paper_samples_it():
    corpus_config = config(
        "conll", ["en", "de"], cap={"en": 12000, "default": 5000}, split={}, unlabelled="rest", **WIKIANN
    )
    corpus = read_corpus(corpus_config)
    counts = corpus.report.sentences
    assert counts["dev"] == counts["test"] == {"en": 2400, "de": 1000}
    assert 7150 < counts["train"]["en"] <= 7200
    assert 2950 < counts["train"]["de"] <= 3000
    assert corpus.tag_set.labels == ("LOC", "ORG", "PER")
    held_out = {
        tuple(words) for part in ("dev", "test") for words in corpus.parts[part]["tokens"].to_pylist()
    }
    for part in ("train", "unlabelled"):
        assert held_out.isdisjoint(map(tuple, corpus.parts[part]["tokens"].to_pylist()))
