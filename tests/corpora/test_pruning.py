"""Pruned tokenizers: known words are split as by the whole one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import vocabulary_from_json
from raykd.corpora.vocabulary_config import PretrainedConfig
from raykd.corpora.word_pieces import Special
from tests.teachers.checkpoints import make_checkpoint

LETTERS = "abcdeé"
TEXT = [f"{a}{b}{c}{a}{b}" for a in LETTERS for b in LETTERS for c in "abc"] * 2
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>"]


def trained(kind: str) -> HFVocabulary:
    """A small vocabulary of a kind, trained on `TEXT`."""
    if kind == "Unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=60, special_tokens=SPECIALS, unk_token="<unk>", show_progress=False
        )
    elif kind == "WordPiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=SPECIALS, show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=320, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
        )
    tokenizer.train_from_iterator(TEXT, trainer)
    size = tokenizer.get_vocab_size()
    return HFVocabulary(tokenizer.to_str(), size, Special(0, 3, (1,), (2,)), full_size=size)


@pytest.fixture(scope="module")
def vocabularies():
    return {kind: trained(kind) for kind in ("Unigram", "WordPiece", "BPE")}


def rows(vocabulary, words):
    pieces = vocabulary.pieces(words)
    return [pieces.values[first:last].tolist() for first, last in pairwise(pieces.offsets)]


words_of_corpus = st.lists(
    st.text(LETTERS + "Ax☃", min_size=1, max_size=9), min_size=1, max_size=12, unique=True
)


@pytest.mark.parametrize("kind", ["Unigram", "WordPiece", "BPE"])
@settings(deadline=None, max_examples=60)
@given(words=words_of_corpus, unused=words_of_corpus)
def test_its_words_are_split_as_before(vocabularies, kind, words, unused):
    whole = vocabularies[kind]
    pruned = whole.for_words(words, prune=True)
    assert pruned.size == len(pruned.checkpoint_ids) == pruned.used <= whole.size == pruned.full_size
    assert [[pruned.checkpoint_ids[id] for id in row] for row in rows(pruned, words)] == rows(whole, words)
    # Other words are split into what is kept, or are unknown.
    assert all(row and max(row) < pruned.size for row in rows(pruned, unused))
    assert [pruned.checkpoint_ids[id] for id in (pruned.special.padding, pruned.special.unknown)] == [0, 3]
    assert [pruned.checkpoint_ids[id] for id in (*pruned.special.prefix, *pruned.special.suffix)] == [1, 2]


def test_pieces_that_no_word_needs_are_gone_and_others_are_split_smaller(vocabularies):
    whole = vocabularies["Unigram"]
    pruned = whole.for_words(["abaab"], prune=True)
    assert pruned.size < whole.size / 2
    assert pruned.special.unknown in rows(pruned, ["ddd"])[0]
    assert whole.special.unknown not in rows(whole, ["ddd"])[0]


def test_what_pruning_would_keep_is_known_without_it(vocabularies):
    for whole in vocabularies.values():
        unpruned = whole.for_words(["abaab", "cd"], prune=False)
        assert (unpruned.size, unpruned.checkpoint_ids, unpruned.definition) == (
            whole.size,
            None,
            whole.definition,
        )
        # What words are merged from, and the piece that unknown ones are counted from, is kept too.
        assert 0 < unpruned.used <= whole.for_words(["abaab", "cd"], prune=True).size


def test_without_text_nothing_is_known_of_pruning(vocabularies):
    for whole in vocabularies.values():
        assert whole.for_words([], prune=False).used == 0


def test_it_comes_back_from_json_and_of_a_checkpoint(tmp_path):
    config = PretrainedConfig(kind="pretrained", path=make_checkpoint(tmp_path), pruned=True)
    pruned = config.build(["an", "abc", "zz"])
    assert [pruned.checkpoint_ids.index(id) for id in pruned.checkpoint_ids] == list(range(pruned.size))
    reloaded = vocabulary_from_json(pruned.to_json())
    assert reloaded == pruned
    assert rows(reloaded, ["an", "abc", "zz", "bo"]) == rows(pruned, ["an", "abc", "zz", "bo"])
    assert np.array_equal(pruned.checkpoint_ids, sorted(pruned.checkpoint_ids))
