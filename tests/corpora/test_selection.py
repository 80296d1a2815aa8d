"""Selection of sentences: caps, the drawn split, and no test sentence in training."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.corpora.conll import ConllSource
from raykd.corpora.selection import draw_order, split_sizes
from raykd.corpora.sentence import Sentence
from raykd.corpora.source import SourceConfig, Split
from raykd.corpora.tsv import TsvSource
from raykd.storage.layout import PARTS
from tests.corpora.parts import select
from tests.oracles import selection as oracle


def config(**settings):
    return SourceConfig.model_validate_json(json.dumps({"languages": ["da", "sv"]} | settings))


def rest_config(**settings):
    plain = {"source": "conll", "languages": ["da", "sv"], "train": "{lang}", "unlabelled": "rest"}
    return ConllSource.model_validate_json(json.dumps(plain | settings))


def sentences(language, words):
    return [Sentence([word], ["O"], language) for word in words]


def pool(count, language="da"):
    return sentences(language, [f"{language}{i}" for i in range(count)])


def words(part):
    return [" ".join(sentence.tokens) for sentence in part]


def test_overlaps_are_kept_on_request_and_nothing_else_changes():
    parts = {
        "train": sentences("da", "abca"),
        "unlabelled": sentences("sv", "ax"),
        "dev": sentences("da", "b"),
    }
    selected, dropped = select(parts, config(overlaps="keep", duplicates="keep"))
    assert selected["train"] == parts["train"]
    assert words(selected["unlabelled"]) == ["a", "x"]
    selected, dropped = select(parts, config(overlaps="keep"))
    assert words(selected["train"]) == ["a", "b", "c"]
    assert dropped.duplicates == {"train": 1, "unlabelled": 0}
    assert not any(dropped.overlaps.values())


def test_nothing_asked_for_takes_all_in_reading_order():
    parts = {"train": pool(5) + pool(3, "sv"), "dev": sentences("da", ["x"]), "test": sentences("da", ["y"])}
    selected, dropped = select(parts, config())
    assert selected == {**parts, "unlabelled": []}
    assert not any(dropped.overlaps.values())
    assert not any(dropped.duplicates.values())


def test_caps_per_language():
    parts = {"train": pool(50) + pool(50, "sv"), "dev": pool(0), "test": sentences("sv", "abcdefgh")}
    parts["unlabelled"] = sentences("da", [f"u{i}" for i in range(9)])
    capped = config(cap={"da": 20, "default": 7}, test_cap=3, unlabelled_cap={"da": 4})
    selected, _ = select(parts, capped)
    assert [s.language for s in selected["train"]] == ["da"] * 20 + ["sv"] * 7
    assert words(selected["train"]) == [w for w in words(parts["train"]) if w in words(selected["train"])]
    assert len(selected["test"]) == 3
    assert len(selected["unlabelled"]) == 4
    assert all(s.tags is None for s in selected["unlabelled"])


def test_a_smaller_cap_takes_a_subset_and_the_seed_decides():
    parts = {"train": pool(200)}
    words_by_cap = {cap: set(words(select(parts, config(cap=cap))[0]["train"])) for cap in (10, 50)}
    assert words_by_cap[10] < words_by_cap[50]
    assert set(words(select(parts, config(cap=50, seed=1))[0]["train"])) != words_by_cap[50]


def test_a_language_is_drawn_alike_whatever_others_there_are():
    alone, _ = select({"train": pool(100)}, config(cap=30, split={}))
    together, _ = select({"train": pool(77, "sv") + pool(100)}, config(cap=30, split={}))
    for part in PARTS:
        assert alone[part] == [s for s in together[part] if s.language == "da"]
    assert draw_order(9, 0, "da").tolist() != draw_order(9, 0, "sv").tolist()


def test_a_split_without_a_test_draws_dev_and_keeps_the_test_that_is_read():
    settings = config(cap=40, test_cap=7, split={"train": 3, "dev": 1, "test": 0}).model_copy(
        update={"test": "t"}
    )
    train, test = pool(100), pool(120)[80:]
    parts, dropped = select({"train": train, "test": test}, settings)
    texts = {part: {tuple(sentence.tokens) for sentence in sentences} for part, sentences in parts.items()}
    assert [len(parts[part]) for part in ("train", "dev", "test")] == [30, 10, 7]
    assert not texts["train"] & texts["dev"]
    # What is tested on is read, and no sentence of it is drawn for training or dev.
    assert texts["test"] <= {tuple(sentence.tokens) for sentence in test}
    assert not texts["test"] & (texts["train"] | texts["dev"])
    assert dropped.overlaps["train"] == len(texts["test"] & {tuple(sentence.tokens) for sentence in train})


def test_the_papers_draw_splits_the_cap_and_leaves_the_rest_unlabelled():
    selected, _ = select(
        {"train": pool(1000) + pool(600, "sv")}, rest_config(cap={"da": 500, "sv": 100}, split={})
    )
    counts = {
        part: [sum(s.language == lang for s in selected[part]) for lang in ("da", "sv")] for part in PARTS
    }
    assert counts == {"train": [300, 60], "dev": [100, 20], "test": [100, 20], "unlabelled": [500, 500]}
    everything = [word for part in PARTS for word in words(selected[part])]
    assert sorted(everything) == sorted(words(pool(1000) + pool(600, "sv")))
    assert all(s.tags is None for s in selected["unlabelled"])


@given(st.integers(0, 1000), st.tuples(*[st.integers(1, 9)] * 3))
def test_shares_lose_nothing_and_keep_their_proportion(count, weights):
    split = Split(train=weights[0], dev=weights[1], test=weights[2])
    parts = split_sizes(count, split)
    assert sum(parts) == count
    for size, weight in zip(parts[1:], weights[1:], strict=True):
        assert 0 <= count * weight / sum(weights) - size < 1


def test_training_loses_what_stands_in_dev_or_test_of_any_language_before_the_cap_is_filled():
    parts = {
        "train": sentences("da", ["a", "b", "c", "d"]),
        "unlabelled": sentences("sv", ["a", "e", "f"]),
        "dev": sentences("sv", ["a"]),
        "test": sentences("da", ["b", "f"]),
    }
    selected, dropped = select(parts, config(cap=2))
    assert words(selected["train"]) == ["c", "d"]
    assert words(selected["unlabelled"]) == ["e"]
    assert dropped.overlaps == {"train": 2, "unlabelled": 2}
    assert (selected["dev"], selected["test"]) == (parts["dev"], parts["test"])


def test_repeated_text_is_dropped_within_its_language_unless_kept():
    parts = {
        "train": sentences("da", ["a", "b", "a"]) + sentences("sv", ["a"]),
        "unlabelled": sentences("da", ["b", "c", "c"]),
        "dev": sentences("da", ["x", "x"]),
    }
    selected, dropped = select(parts, config())
    assert [(s.language, *s.tokens) for s in selected["train"]] == [("da", "a"), ("da", "b"), ("sv", "a")]
    assert words(selected["unlabelled"]) == ["c"]
    assert words(selected["dev"]) == ["x", "x"]
    assert dropped.duplicates == {"train": 1, "unlabelled": 2}
    repeated, dropped = select(parts, config(duplicates="keep"))
    assert len(repeated["train"]) == 4
    assert dropped.duplicates == {"train": 0, "unlabelled": 0}


@given(
    st.lists(st.tuples(st.sampled_from(["da", "sv"]), st.text("abc", min_size=1, max_size=3)), max_size=40),
    st.integers(0, 3),
    st.sampled_from([None, 5]),
)
def test_no_text_of_a_drawn_dev_or_test_ever_stands_in_training(pairs, seed, cap):
    parts = {"train": [Sentence(list(text), ["O"] * len(text), language) for language, text in pairs]}
    settings = {"split": {}, "seed": seed, "cap": cap}
    selected, dropped = select(parts, rest_config(**settings) if cap else config(**settings))
    held_out = {oracle.text_of(s) for part in ("dev", "test") for s in selected[part]}
    training = [oracle.text_of(s) for part in ("train", "unlabelled") for s in selected[part]]
    assert not held_out & set(training)
    lost = sum(dropped.overlaps.values()) + sum(dropped.duplicates.values())
    assert sum(len(part) for part in selected.values()) + lost == len(pairs)


def roles(**settings):
    plain = {"source": "conll", "languages": ["da", "sv", "nb"], "train": "{lang}", "dev": "d{lang}"}
    plain |= {"test": "t{lang}", "unlabelled_languages": ["sv"], "zero_shot_languages": ["nb"]}
    if "split" in settings:
        plain = {name: value for name, value in plain.items() if name not in ("dev", "test")}
    return ConllSource.model_validate_json(json.dumps(plain | settings))


def by_language(selected, part):
    return {lang: words(s for s in selected[part] if s.language == lang) for lang in ("da", "sv", "nb")}


def test_targets_give_text_without_tags_or_nothing_and_have_no_dev():
    parts = {part: [] for part in PARTS}
    for language in ("da", "sv", "nb"):
        for part in PARTS:
            parts[part] += sentences(language, [f"{language}-{part}-{i}" for i in range(4)])
    selected, _ = select(parts, roles(cap=2, unlabelled_cap={"sv": 6}))
    assert {language: len(texts) for language, texts in by_language(selected, "train").items()} == {
        "da": 2, "sv": 0, "nb": 0
    }  # fmt: skip
    text = by_language(selected, "unlabelled")
    assert text["da"] == [f"da-unlabelled-{i}" for i in range(4)]
    # The cap of labelled sentences does not limit text: 4 training sentences and 4 unlabelled ones make 6.
    assert len(text["sv"]) == 6
    assert set(text["sv"]) < {f"sv-{part}-{i}" for part in ("train", "unlabelled") for i in range(4)}
    assert not text["nb"]
    assert all(sentence.tags is None for sentence in selected["unlabelled"])
    assert {sentence.language for sentence in selected["dev"]} == {"da"}
    assert selected["test"] == parts["test"]


def test_a_language_keeps_its_test_sentences_whatever_its_role():
    parts = {"train": pool(50) + pool(50, "sv") + pool(50, "nb")}
    plain = rest_config(languages=["da", "sv", "nb"], cap=30, split={})
    targets = roles(cap=30, split={}, unlabelled="rest")
    labelled, shared = select(parts, plain)[0], select(parts, targets)[0]
    assert shared["test"] == labelled["test"]
    assert by_language(shared, "train") == by_language(labelled, "train") | {"sv": [], "nb": []}
    assert by_language(shared, "dev") == by_language(labelled, "dev") | {"sv": [], "nb": []}
    text = by_language(shared, "unlabelled")
    assert text["da"] == by_language(labelled, "unlabelled")["da"]
    drawn = {part: by_language(labelled, part)["sv"] for part in PARTS}
    assert sorted(text["sv"]) == sorted(drawn["train"] + drawn["unlabelled"] + drawn["dev"])
    assert text["nb"] == []


def test_the_test_of_a_zero_shot_language_guards_all_training_text():
    parts = {
        "train": sentences("da", ["a", "b"]) + sentences("sv", ["a", "c"]),
        "dev": sentences("da", ["x"]),
        "test": sentences("nb", ["a"]),
    }
    selected, dropped = select(parts, roles())
    assert (words(selected["train"]), words(selected["unlabelled"])) == (["b"], ["c"])
    assert dropped.overlaps == {"train": 1, "unlabelled": 1}


def test_words_not_their_joined_text_make_sentences_equal():
    parts = {"train": [Sentence(["a b"], ["O"], "da"), Sentence(["a", "b"], ["O", "O"], "da")]}
    assert len(select(parts, config())[0]["train"]) == 2


@pytest.mark.parametrize(
    "setting", [{"cap": 0}, {"split": {"train": 0}}, {"sampling_alpha": -1}, {"languages": []}]
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ValueError, match=r"greater|at least"):
        config(**setting)


CAPS = st.one_of(st.none(), st.integers(1, 6))


@st.composite
def asked(draw):
    """Draw a configuration with any settings, for sentences with one class."""
    languages = ["da", "sv", "nb"][: draw(st.integers(1, 3))]
    roles = {name: draw(st.sampled_from(["labelled", "unlabelled", "zero-shot"])) for name in languages[1:]}
    plain = {
        "source": "tsv", "languages": languages, "train": "{lang}", "seed": draw(st.integers(0, 3)),
        "cap": draw(st.one_of(CAPS, st.just({"da": 4, "default": 2}))),
        "cap_per_class": draw(CAPS), "unlabelled_cap": draw(CAPS),
        "duplicates": draw(st.sampled_from(["drop", "keep"])),
        "overlaps": draw(st.sampled_from(["drop", "keep"])),
        "unlabelled_languages": [name for name, role in roles.items() if role == "unlabelled"],
        "zero_shot_languages": [name for name, role in roles.items() if role == "zero-shot"],
    }  # fmt: skip
    if draw(st.booleans()):
        plain["split"] = draw(st.sampled_from([{}, {"train": 1}, {"train": 1, "dev": 2, "test": 3}]))
    else:
        plain |= {"dev": "d{lang}", "test": "t{lang}", "dev_cap": draw(CAPS), "test_cap": draw(CAPS)}
    rest = plain["cap"] or plain["cap_per_class"]
    plain["unlabelled"] = draw(st.sampled_from([None, "u{lang}", *(["rest"] if rest else [])]))
    return TsvSource.model_validate_json(json.dumps(plain))


@st.composite
def corpora(draw, languages):
    """Few words, so that many sentences are the same."""
    sentence = st.builds(
        Sentence, st.lists(st.sampled_from("ab"), min_size=1, max_size=3),
        st.sampled_from([["x"], ["y"], ["z"], None]), st.sampled_from(languages),
        origin=st.none(), unit=st.just("sentence"),
        heads=st.none(),
        pos=st.none(),
        text=st.none(),
        offsets=st.none(),
    )  # fmt: skip
    return {part: draw(st.lists(sentence, max_size=25)) for part in draw(st.permutations(PARTS))}


@settings(max_examples=300)
@given(st.data(), asked())
def test_the_same_sentences_as_from_lists(data, config):
    parts = data.draw(corpora(config.languages))
    assert select(parts, config) == oracle.select(parts, config)
