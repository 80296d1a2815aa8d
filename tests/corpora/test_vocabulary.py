"""Vocabularies: what is spelt how, the same in every process, and read back as written."""

import json
import subprocess
import sys
import unicodedata
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import (
    CharacterVocabulary,
    WordPieceVocabulary,
    WordVocabulary,
    count_words,
    vocabulary_from_json,
    words_in,
)
from raykd.corpora.vocabulary_config import (
    BertConfig,
    PretrainedConfig,
    RobertaConfig,
    VocabularyConfig,
    WordConfig,
    WordPieceConfig,
)
from raykd.errors import CorpusError
from raykd.forms.utterance_marks import UTTERANCE
from raykd.serving.labeller import splitter, with_package
from raykd.serving.labeller.pieces import speller
from tests.corpora.encoded import encoded

untimed = settings(deadline=None)  # a busy machine is no failure


SENTENCES = [["Anna", "lives", "in", "Bonn", "."], ["Anna", "and", "Annette", "live", "in", "Bönen", "!"]]
words = st.lists(st.text(max_size=40).filter(lambda word: word != UTTERANCE), max_size=8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A tiny BERT-like tokenizer folder, made here: nothing is downloaded."""
    from transformers import PreTrainedTokenizerFast

    entries = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "Ann",
        "##a",
        "##ette",
        "in",
        "Bonn",
        ".",
        "a",
        "live",
        "##s",
    ]
    tokenizer = Tokenizer(models.WordPiece({entry: i for i, entry in enumerate(entries)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder = tmp_path_factory.mktemp("checkpoint")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def vocabularies(checkpoint):
    configs = [WordConfig(kind="word"), WordPieceConfig(kind="wordpiece", size=100)]
    built = [config.build(count_words(SENTENCES)) for config in configs]
    return [*built, CharacterVocabulary.build(words_in(SENTENCES)), HFVocabulary.load(checkpoint)]


def test_word_ids_go_by_frequency_then_code_point():
    vocabulary = WordVocabulary.build(["b", "a", "c", "b"])
    assert vocabulary.words == ("b", "a", "c")
    ids, first = encoded(vocabulary, ["a", "x", "b"])
    assert (ids, first) == ([3, 1, 2], [0, 1, 2])
    assert vocabulary.pieces(["a"]).values.dtype == np.int32


def test_rare_words_are_unknown():
    vocabulary = WordConfig(kind="word", min_count=2).build(count_words(SENTENCES))
    assert sorted(vocabulary.words) == ["Anna", "in"]
    assert vocabulary.size == 4


def test_wordpiece_joins_back_to_the_word():
    vocabulary = WordPieceVocabulary.build([*words_in(SENTENCES)] * 3, size=100)
    for word in ["Anna", "Annette", "Bönen", "Annalive"]:
        ids, first = encoded(vocabulary, [word])
        pieces = [vocabulary.entries[i] for i in ids]
        assert pieces[0] + "".join(piece.removeprefix("##") for piece in pieces[1:]) == word
        assert all(piece.startswith("##") for piece in pieces[1:])
        assert first == [0]
    assert len(encoded(vocabulary, ["Anna"])[0]) == 1, "a frequent word is one piece"


def test_wordpiece_keeps_within_its_size_and_marks_foreign_letters_unknown():
    vocabulary = WordPieceVocabulary.build([chr(0x4E00 + i) * 2 for i in range(500)] + ["the"] * 9, size=100)
    assert vocabulary.size <= 100
    assert vocabulary.entries[:2] == ("[PAD]", "[UNK]")
    assert len(vocabulary.entries) == len(set(vocabulary.entries))
    assert encoded(vocabulary, ["the", "ж"])[0][-1] == 1


def test_wordpiece_training_is_the_same_in_every_process_and_order():
    text = "the cat then bathed other mothers thus gather lathe nether cats bath hens"
    script = (
        "import sys; from raykd.corpora.vocabulary import WordPieceVocabulary as V;"
        "print(V.build(sys.argv[1].split() * 3, size=100).to_json())"
    )
    vocabulary_json = WordPieceVocabulary.build(reversed(text.split() * 3), size=100).to_json()
    for _ in range(2):
        process = subprocess.run(
            [sys.executable, "-c", script, text], capture_output=True, text=True, check=True
        )
        assert process.stdout.strip() == vocabulary_json


def test_characters_keep_both_ends_of_a_long_word():
    vocabulary = CharacterVocabulary.build(["abcdef"], longest=4)
    ids, first = encoded(vocabulary, ["abcdef", "", "fx"])
    assert ids == [2, 3, 6, 7, 1, 7, 1]
    assert first == [0, 4, 5]


@untimed
@given(words)
def test_every_word_has_a_first_piece_and_ids_stay_below_size(vocabularies, words):
    for vocabulary in vocabularies:
        ids, first = encoded(vocabulary, words)
        before, after = len(vocabulary.special.prefix), len(vocabulary.special.suffix)
        bounds = [*first, len(ids) - after]
        assert bounds[0] == before
        assert all(a < b for a, b in pairwise(bounds))
        assert all(0 <= i < vocabulary.size for i in ids)


@untimed
@given(words)
def test_json_gives_the_same_vocabulary_back(vocabularies, words):
    for vocabulary in vocabularies:
        reloaded = vocabulary_from_json(vocabulary.to_json())
        assert type(reloaded) is type(vocabulary)
        assert (reloaded.size, reloaded.special) == (vocabulary.size, vocabulary.special)
        assert encoded(reloaded, words) == encoded(vocabulary, words)
        assert reloaded.to_json() == vocabulary.to_json()


def test_pretrained_splits_as_its_own_tokenizer_does(checkpoint):
    from transformers import AutoTokenizer

    vocabulary = PretrainedConfig(kind="pretrained", path=checkpoint).build(count_words(SENTENCES))
    reference = AutoTokenizer.from_pretrained(checkpoint)
    for sentence in [*SENTENCES, ["Anna-Annette", "x"]]:
        expected = reference(sentence, is_split_into_words=True)
        ids, first = encoded(vocabulary, sentence)
        assert ids == expected["input_ids"]
        assert first == [expected.word_ids().index(i) for i in range(len(sentence))]
    assert (vocabulary.special.prefix, vocabulary.special.suffix) == ((2,), (3,))


def test_a_folder_without_tokenizer_is_reported_by_name(tmp_path):
    with pytest.raises(CorpusError, match=rf"{tmp_path}.*tokenizer.*give a checkpoint"):
        HFVocabulary.load(str(tmp_path))


def test_words_come_from_tables_and_lists_alike():
    table = pa.table({"tokens": pa.array(SENTENCES, pa.list_(pa.string()))})
    assert list(words_in(table)) == list(words_in(SENTENCES)) == [w for s in SENTENCES for w in s]


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"kind": "word", "min_count": 2}, WordConfig),
        ({"kind": "wordpiece", "size": 500}, WordPieceConfig),
        ({"kind": "pretrained", "path": "bert-base-cased"}, PretrainedConfig),
    ],
)
def test_configuration_is_chosen_by_kind(config, kind):
    adapter = TypeAdapter(VocabularyConfig)
    assert isinstance(adapter.validate_json(json.dumps(config)), kind)
    with pytest.raises(ValidationError):
        adapter.validate_json(json.dumps(config | {"colour": "red"}))


def test_words_are_counted_chunk_by_chunk():
    column = pa.chunked_array([[["b", "a", "b"]], [], [["a"], ["c", "b"]]], pa.list_(pa.string()))
    table = pa.table({"tokens": column})
    assert count_words(table) == count_words(column.to_pylist()) == Counter(b=3, a=2, c=1)
    for config in (WordConfig(kind="word"), WordPieceConfig(kind="wordpiece", size=100)):
        assert config.build(count_words(table)) == config.build([*words_in(table)])
    assert CharacterVocabulary.build(count_words(table)) == CharacterVocabulary.build(words_in(table))


BUILT = {
    "word": WordConfig(kind="word").build,
    "wordpiece": WordPieceConfig(kind="wordpiece", size=100).build,
    "character": CharacterVocabulary.build,
    "bert": BertConfig(kind="bert", size=200).build,
    "roberta": RobertaConfig(kind="roberta", size=300).build,
}
FORMS = ["Bönen", unicodedata.normalize("NFD", "Bönen")]


@pytest.mark.parametrize("kind", BUILT)
def test_the_forms_of_unicode_have_the_same_pieces_in_training_and_served(kind):
    built = [BUILT[kind](["Anna", word, word, word]) for word in FORMS]
    assert built[0] == built[1]
    composed, decomposed = (built[0].pieces([word]).values.tolist() for word in FORMS)
    assert composed == decomposed
    assert 1 not in composed
    unknown = built[0].special.unknown
    served = {"character": lambda text, **_: speller(text), "roberta": with_package}.get(kind, splitter)
    split = served(built[0].to_json(), unknown=unknown)
    assert [split(word) for word in FORMS] == [composed, composed]


@pytest.mark.parametrize("kind", ["word", "wordpiece", "character"])
def test_invisible_signs_make_no_other_word(kind):
    vocabulary = BUILT[kind](["London", "London"])
    served = (
        speller(vocabulary.to_json()) if kind == "character" else splitter(vocabulary.to_json(), unknown=1)
    )
    for word in ("Lon\u00addon", "\ufeffLondon", "London\u200e"):
        pieces = vocabulary.pieces([word]).values.tolist()
        assert pieces == vocabulary.pieces(["London"]).values.tolist() == served(word)
    assert vocabulary.pieces(["\u00ad"]).values.tolist() == served("\u00ad") == [1]


@pytest.mark.parametrize("kind", ["word", "wordpiece", "character"])
def test_a_vocabulary_of_an_earlier_version_has_words_as_they_came(kind):
    plain = json.loads(BUILT[kind](["Bönen", "Bönen"]).to_json())
    assert plain.pop("normalization") == "NFC"
    earlier = json.dumps(plain)
    served = speller(earlier) if kind == "character" else splitter(earlier, unknown=1)
    for word in FORMS:
        assert vocabulary_from_json(earlier).pieces([word]).values.tolist() == served(word)
    assert served(FORMS[0]) != served(FORMS[1])
    assert json.loads(vocabulary_from_json(earlier).to_json())["normalization"] is None


def test_byte_pairs_give_every_text_pieces_and_are_read_by_transformers(tmp_path):
    """RoBERTa's special pieces, bytes for what was never seen, and the same pieces in running text."""
    from transformers import PreTrainedTokenizerFast

    text = [word for sentence in SENTENCES for word in sentence] * 3
    vocabulary = RobertaConfig(kind="roberta", size=300).build(text)
    assert vocabulary == RobertaConfig(kind="roberta", size=300).build(reversed(text))
    assert vocabulary.size <= 300
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(vocabulary.definition))
    for sentence in [*SENTENCES, ["Ελλάς", "😀", "Anna"]]:
        pieces, _ = encoded(vocabulary, sentence)
        assert pieces == tokenizer(" ".join(sentence))["input_ids"]
        assert vocabulary.special.unknown not in pieces
        assert tokenizer.decode(pieces, skip_special_tokens=True).split() == sentence
    special = vocabulary.special
    marks = (*special.prefix, special.padding, *special.suffix, special.unknown, special.mask)
    assert tokenizer.convert_ids_to_tokens(marks) == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    end = 1 + len(vocabulary.pieces(["Anna"]).values)
    assert tokenizer("Anna", "and")["input_ids"][end : end + 2] == list(special.separator)
    assert vocabulary_from_json(vocabulary.to_json()) == vocabulary


@pytest.mark.parametrize("splits", [False, True])
def test_words_of_byte_level_tokenizers_begin_with_a_space_as_in_running_text(tmp_path, splits):
    """ModernBERT's tokenizer, and one that splits text before (as that of the privacy filter does)."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not splits)
    pattern = pre_tokenizers.Split(Regex(r" ?[a-z]+| ?[A-Z]+|\s+|."), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pattern, byte_level]) if splits else byte_level
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=byte_level.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(["ada lives in Paris and ada sings"] * 9, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.save_pretrained(tmp_path)
    vocabulary = HFVocabulary.load(str(tmp_path))
    words = ["ada", "lives", "in", "Paris", "and", "adaPAris"]
    running = fast.encode(" " + " ".join(words))
    assert vocabulary.pieces(words).values.tolist() == running
    assert vocabulary.spaces == (fast.convert_tokens_to_ids("Ġ"),)
    pruned = vocabulary.for_words(words, prune=True)
    assert [pruned.checkpoint_ids[piece] for piece in pruned.pieces(words).values] == running
