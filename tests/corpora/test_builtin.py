"""The built-in corpus: what it promises about names, ambiguity, parts and repeatability."""

import json
import subprocess
import sys
from collections import defaultdict

import pytest
from pydantic import ValidationError

from raykd.corpora import corpus_id, make_corpus
from raykd.corpora.builtin import BuiltinSource, languages
from raykd.corpora.builtin.grammar import Language
from raykd.corpora.builtin.lexicon import grammars
from raykd.forms.tag_schemes import to_bioes
from raykd.metrics.bioes import read_spans
from tests.corpora.parts import read

CODES = ("en", "de", "es", "nl")
LANGUAGES = languages()
AMBIGUOUS = {name for language in LANGUAGES for names in language.shared.values() for name in names}


@pytest.fixture(scope="module")
def parts():
    return read(BuiltinSource(source="builtin"))


def entities(sentences):
    return [
        (tuple(sentence.tokens[start:end]), kind)
        for sentence in sentences
        for start, end, kind in read_spans(sentence.tags)
    ]


def test_sizes_languages_and_labels(parts):
    for part, size in {"train": 400, "unlabelled": 600, "dev": 100, "test": 150}.items():
        assert [s.language for s in parts[part]] == [code for code in CODES for _ in range(size)]
        assert all((sentence.tags is None) == (part == "unlabelled") for sentence in parts[part])


def test_tags_are_valid_bioes_of_three_types(parts):
    for part in ("train", "dev", "test"):
        for sentence in parts[part]:
            assert len(sentence.tags) == len(sentence.tokens) > 0
            assert to_bioes(sentence.tags, "bioes") == (sentence.tags, 0)
            assert all(token and not token[0].isspace() and "{" not in token for token in sentence.tokens)
        shares = [kind for _, kind in entities(parts[part])]
        for kind in ("PER", "LOC", "ORG"):
            assert 0.2 < shares.count(kind) / len(shares) < 0.5


def test_no_sentence_occurs_twice(parts):
    texts = [tuple(sentence.tokens) for sentences in parts.values() for sentence in sentences]
    assert len(texts) == len(set(texts))


def test_names_of_dev_and_test_occur_in_no_training_text():
    """Every name but the ambiguous ones has one part, in all lists of all languages."""
    names = {
        part: {
            name
            for grammar in grammars(LANGUAGES, part, 0).values()
            for listed in grammar.names.values()
            for name in listed
        }
        for part in ("train", "unlabelled", "dev", "test")
    }
    assert names["train"] < names["unlabelled"]
    for part in ("dev", "test"):
        assert names[part] - AMBIGUOUS
        assert not (names[part] - AMBIGUOUS) & (names["train"] | names["unlabelled"])
    assert not (names["dev"] & names["test"]) - AMBIGUOUS


def test_most_entities_of_test_are_unseen(parts):
    train_names = {tuple(map(str.lower, words)) for words, _ in entities(parts["train"])}
    test = [tuple(map(str.lower, words)) for words, _ in entities(parts["test"])]
    assert sum(words in train_names for words in test) / len(test) < 0.2


def test_context_decides_what_an_ambiguous_name_is(parts):
    kinds = defaultdict(set)
    for words, kind in entities(parts["train"]):
        kinds[" ".join(words)].add(kind)
    several = {name for name in AMBIGUOUS if len(kinds[name]) > 1}
    assert {"Washington", "Jordan", "Paris", "Philips"} <= several
    assert any(len(kinds[name]) == 3 for name in AMBIGUOUS)


def test_capitals_alone_do_not_mark_names(parts):
    """In every language many capitalised words inside sentences are no names, and some text has none."""
    for code in CODES:
        sentences = [sentence for sentence in parts["train"] if sentence.language == code]
        inside = [pair for s in sentences for pair in list(zip(s.tokens, s.tags, strict=True))[1:]]
        capitals = [tag for word, tag in inside if word[0].isupper()]
        assert capitals.count("O") > 0.05 * len(capitals)
        assert sum(set(sentence.tags) == {"O"} for sentence in sentences) > 0.05 * len(sentences)


def test_the_same_in_every_process(parts):
    script = (
        "from raykd.corpora.builtin import BuiltinSource, read;"
        "print([each for part, each in read(BuiltinSource(source='builtin')) if part == 'test'])"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(parts["test"])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "corpus-c6abeefb08c103a1"),
        ({"seed": 3, "train": 700, "unlabelled": 50}, "corpus-8ddc24e50d7de6f7"),
    ],
)
def test_the_sentences_stay_what_they_are(settings, name):
    """Published scores rest on these sentences: a word changed in a data file makes another corpus."""
    config = BuiltinSource(source="builtin", **settings)
    assert corpus_id(make_corpus(read(config), config)) == name


def test_seeds_differ_and_test_stays_when_the_rest_grows(parts):
    assert read(BuiltinSource(source="builtin", seed=1, train=5))["test"] != parts["test"]
    grown = read(BuiltinSource(source="builtin", languages=("nl", "en"), train=7, unlabelled=9, dev=3))
    for code in ("nl", "en"):
        assert [s for s in grown["test"] if s.language == code] == [
            s for s in parts["test"] if s.language == code
        ]
    assert grown["dev"][:3] == [s for s in parts["dev"] if s.language == "nl"][:3]


@pytest.mark.parametrize("seed", range(8))
def test_every_part_has_names_of_every_list(seed):
    for part in ("train", "unlabelled", "dev", "test"):
        for grammar in grammars(LANGUAGES, part, seed).values():
            assert all(grammar.names.values()), "an empty list could not be chosen from"


def test_train_lacks_some_sentence_patterns():
    for code, grammar in grammars(LANGUAGES, "train", 0).items():
        whole = next(language for language in LANGUAGES if language.code == code).rules
        assert 0.6 < len(grammar.rules["core"]) / len(whole["core"]) < 0.9
        assert set(grammar.rules["core"]) < set(whole["core"])


def test_a_rule_with_an_unknown_slot_is_refused():
    with pytest.raises(ValueError, match="xx: rule 'sentence' uses 'citty'"):
        Language.parse("xx", {"city": "Bonn"}, {"sentence": "{city} is\n{citty} was"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"languages": ["fr"]},
        {"languages": []},
        {"train": 0},
        {"train": 20_001},
        {"colour": 1},
        {"scheme": "iob2"},
    ],
)
def test_configuration_is_strict(wrong):
    plain = {"source": "builtin", "languages": ["de"], "train": 10}
    assert BuiltinSource.model_validate_json(json.dumps(plain)).languages == ("de",)
    with pytest.raises(ValidationError):
        BuiltinSource.model_validate_json(json.dumps(plain | wrong))
