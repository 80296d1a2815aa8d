"""Trees of intents and slots, the steps that write them, and the files of mTOP."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.corpora.corpus import open_corpus, read_corpus, write_corpus
from raykd.corpora.describe import describe_corpus, example_sentences
from raykd.corpora.mtop import MtopSource
from raykd.corpora.semantic_trees import tree_of_text
from raykd.errors import CorpusError
from raykd.forms import STEPS, UTTERANCES
from raykd.forms.steps import (
    Node,
    bracket_text,
    step_tags_from_slots,
    steps_from_tree,
    tree_from_slots,
    tree_from_steps,
)
from raykd.forms.tag_schemes import write_spans
from raykd.forms.utterance_marks import UTTERANCE
from raykd.storage.store import Storage
from tests.corpora.parts import read

untimed = settings(deadline=None)  # a busy machine is no failure
INTENTS, SLOTS = ("IN:A", "IN:B#C"), ("SL:X", "SL:y.z")
WORDS = 6
places = st.integers(0, WORDS - 1)


def intents(slots):
    return st.builds(Node, st.sampled_from(INTENTS), st.lists(slots, max_size=3).map(tuple))


def slots(below):
    return st.builds(Node, st.sampled_from(SLOTS), st.lists(below, min_size=1, max_size=3).map(tuple))


trees = intents(
    st.recursive(slots(places), lambda inner: slots(st.one_of(places, intents(inner))), max_leaves=8)
)
anything = st.lists(
    st.sampled_from((*INTENTS, *SLOTS, "]", *(f"@{i}" for i in range(WORDS + 2)))), max_size=8
)


@untimed
@given(trees)
def test_a_tree_comes_back_from_its_steps(tree):
    steps = steps_from_tree(tree)
    assert tree_from_steps(steps, WORDS) == tree
    assert steps.count("]") == sum(not step.startswith(("]", "@")) for step in steps)
    tag_set = STEPS.tag_set((*INTENTS, *SLOTS))
    assert tag_set.decode(tag_set.encode(steps)) == steps


@untimed
@given(trees)
def test_only_whole_trees_are_trees(tree):
    """A prefix of a tree's steps is no tree, and neither are steps behind the last bracket."""
    steps = steps_from_tree(tree)
    assert all(tree_from_steps(steps[:end], WORDS) is None for end in range(len(steps)))
    assert all(tree_from_steps([*steps, more], WORDS) is None for more in ("]", "@0", *INTENTS, *SLOTS))


@untimed
@given(anything)
def test_any_steps_are_a_tree_that_gives_them_again_or_none(steps):
    tree = tree_from_steps(steps, WORDS)
    assert tree is None or steps_from_tree(tree) == steps
    assert len(bracket_text(steps, ["a", "b", "c"]).split()) == len(steps)


@pytest.mark.parametrize(
    "steps",
    [
        "", "]", "@0", "SL:X @0 ]", "IN:A", "IN:A @0 ]", "IN:A IN:A ] ]", "IN:A SL:X ] ]", "IN:A SL:X SL:X @0 ] ] ]",
        "IN:A SL:X @6 ] ]", "IN:A ] ]", "IN:A ] IN:A ]",
    ],
)  # fmt: skip
def test_what_is_no_tree(steps):
    assert tree_from_steps(steps.split(), WORDS) is None


@untimed
@given(trees)
def test_a_tree_comes_back_from_its_text(tree):
    """If all words differ, the text alone says which words are meant."""
    words = [f"w{i}" for i in range(WORDS)]
    text = bracket_text(steps_from_tree(tree), words)
    assert tree_of_text(text, words) == tree
    assert tree_of_text(text.replace(" ", "  "), words) == tree


def test_equal_words_are_looked_for_side_by_side_first_and_taken_once():
    words = ["to", "go", "to", "new", "york", "to", "new", "york"]
    tree = tree_of_text("[IN:A [SL:X to new york ] [SL:X to ] [SL:y.z york new ] ]", words)
    assert tree == Node("IN:A", (Node("SL:X", (2, 3, 4)), Node("SL:X", (0,)), Node("SL:y.z", (7, 6))))
    # A word that stands there once is meant by both.
    twice = tree_of_text("[IN:A [SL:X go ] [SL:X go ] ]", words)
    assert twice == Node("IN:A", (Node("SL:X", (1,)), Node("SL:X", (1,))))


@untimed
@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=6))
def test_the_tree_of_slots_has_their_words(kinds):
    """Neighbours of one kind are one span here; 0 is no slot."""
    spans, start = [], 0
    for end in range(1, len(kinds) + 1):
        if end == len(kinds) or kinds[end] != kinds[start]:
            spans += [(start, end, f"s{kinds[start]}")] * bool(kinds[start])
            start = end
    tree = tree_from_slots(["intent:go", *write_spans(spans, len(kinds), "bioes")])
    assert tree == Node("IN:go", tuple(Node(f"SL:{k}", tuple(range(a + 1, b + 1))) for a, b, k in spans))
    tag_set = step_tags_from_slots(UTTERANCES.tag_set(["s1", "s2", "intent:go", "intent:fare"]))
    assert tag_set.tags == ("]", "IN:fare", "IN:go", "SL:s1", "SL:s2")
    assert tree_from_steps(tag_set.decode(tag_set.encode(steps_from_tree(tree))), len(kinds) + 1) == tree


def line(words, tree, **changes):
    cells = {
        "id": "1", "intent": "IN:X", "slots": "", "utterance": " ".join(words), "domain": "weather", "locale": "en_XX",
        "tree": tree, "tokens": json.dumps({"tokens": words, "tokenSpans": []}),
    } | changes  # fmt: skip
    return "\t".join(cells.values()) + "\n"


RAIN = line(
    ["will", "it", "rain", "in", "new", "york"],
    "[IN:GET_WEATHER [SL:ATTRIBUTE rain ] [SL:LOCATION new york ] ]",
)
CALL = line(["call", "her"], "[IN:CREATE_CALL [SL:CONTACT [IN:GET_CONTACT [SL:NAME her ] ] ] ]")


def source(root, **settings):
    plain = {"source": "mtop", "root": str(root), "languages": ["en"], "train": "t", "dev": "d", "test": "d"}
    return MtopSource.model_validate_json(json.dumps(plain | settings))


def test_words_and_steps_of_the_files_of_mtop(tmp_path):
    quoted = line(['"', "go"], "[IN:GO ]").replace(r'["\""', '["""')
    (tmp_path / "t").write_text(RAIN + "\n" + CALL + quoted)
    (tmp_path / "d").write_text(CALL)
    parts = read(source(tmp_path, unlabelled="t"))
    assert [sentence.tokens[1:] for sentence in parts["train"]] == [
        ["will", "it", "rain", "in", "new", "york"], ["call", "her"], ['"', "go"]
    ]  # fmt: skip
    assert [" ".join(sentence.tags) for sentence in parts["train"]] == [
        "IN:GET_WEATHER SL:ATTRIBUTE @3 ] SL:LOCATION @5 @6 ] ]",
        "IN:CREATE_CALL SL:CONTACT IN:GET_CONTACT SL:NAME @2 ] ] ] ]", "IN:GO ]",
    ]  # fmt: skip
    assert {sentence.tokens[0] for sentences in parts.values() for sentence in sentences} == {UTTERANCE}
    assert [sentence.origin for sentence in parts["train"]] == [(str(tmp_path / "t"), n) for n in (1, 3, 4)]
    assert [sentence.tags for sentence in parts["unlabelled"]] == [None] * 3


def test_a_corpus_of_trees_is_stored_and_described(tmp_path):
    (tmp_path / "t").write_text(RAIN)
    (tmp_path / "d").write_text(CALL)
    corpus = read_corpus(source(tmp_path))
    assert corpus.tag_set.form.scheme == "parse"
    assert corpus.tag_set.tags == (
        "]", "IN:CREATE_CALL", "IN:GET_CONTACT", "IN:GET_WEATHER", "SL:ATTRIBUTE", "SL:CONTACT", "SL:LOCATION",
        "SL:NAME",
    )  # fmt: skip
    storage = Storage(str(tmp_path / "store"))
    reopened = open_corpus(storage, write_corpus(corpus, storage))
    assert reopened.tag_set == corpus.tag_set
    (steps,) = reopened.parts["train"]["tags"].to_pylist()
    written_steps = " ".join(reopened.tag_set.decode(steps))
    assert written_steps == "IN:GET_WEATHER SL:ATTRIBUTE @3 ] SL:LOCATION @5 @6 ] ]"
    assert example_sentences(corpus, words=3)["en"] == (
        "will it rain …\n[IN:GET_WEATHER [SL:ATTRIBUTE rain ] [SL:LOCATION new york ] ]"
    )
    # What train does not have cannot be learnt; words can be pointed to wherever they are.
    unseen = [warning for warning in describe_corpus(corpus)["warnings"] if "cannot be learnt" in warning]
    assert {warning.split("'")[1] for warning in unseen} == {
        "IN:CREATE_CALL",
        "IN:GET_CONTACT",
        "SL:CONTACT",
        "SL:NAME",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\tIN:X\n", "2 columns between tabs: expected 8"),
        (line(["a"], "[IN:A"), "column 7, '[IN:A': brackets are not closed: expected 1 more ]"),
        (line(["a"], "[IN:A ] ]"), "']' stands outside of the root: expected one tree"),
        (line(["a"], "] [IN:A"), "']' stands outside of the root"),
        (line(["a"], "[IN:A ] [IN:A ]"), "'[IN:A' stands outside of the root"),
        (line(["a"], "[IN:A [sl:X a ] ]"), "'[sl:X' is neither [IN:… nor [SL:… nor ]"),
        (line(["a"], "[IN:A [SL:X b ] ]"), "'b' is none of the sentence's words: expected one of a"),
        (line(["a"], "[SL:X a ]"), "expected an intent with slots below it"),
        (line(["a"], "a [IN:A ]"), "'[IN:A' stands outside of the root"),
        (line(["a"], "[IN:A a ]"), "expected an intent with slots below it"),
        (line(["a"], "[IN:A ]", tokens="{}"), 'column 8 has no words: expected {"tokens"'),
        (line(["a"], "[IN:A ]", tokens="[1"), "column 8 has no words"),
        (line(["a"], "[IN:A ]", tokens='{"tokens": [1]}'), "column 8 has no words"),
        (line(["g\0"], "[IN:A ]"), "a zero byte"),
    ],
)
def test_faults_say_file_line_and_what_was_expected(tmp_path, text, expected):
    (tmp_path / "t").write_text(CALL + text)
    (tmp_path / "d").write_text(CALL)
    with pytest.raises(CorpusError) as raised:
        read(source(tmp_path))
    message = str(raised.value)
    assert f"{tmp_path / 't'}:2" in message
    assert expected in message
    assert len(read(source(tmp_path, on_error="skip"))["train"]) == 1
