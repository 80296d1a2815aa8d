"""Encoded text against sentence-by-sentence encoding in plain Python."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from raykd.corpora.encoded_text import EncodedText, encode_text
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import CharacterVocabulary, WordPieceVocabulary, WordVocabulary
from raykd.corpora.word_pieces import Special
from tests.corpora.encoded import encoded

untimed = settings(deadline=None)  # a busy machine is no failure


LEXICON = ["a", "ab", "abba", "babab", "c", "cab", "x", ""]
CHARACTERS = CharacterVocabulary.build(["abc"], longest=4)
PIECES = WordPieceVocabulary.build(LEXICON * 3, size=100)
# Special tokens on both sides, of unequal number, and a padding id that is not 0.
SPECIAL = HFVocabulary(
    Tokenizer(
        models.WordPiece({e: i for i, e in enumerate(["[UNK]", "a", "##b", "##a", "c"])}, unk_token="[UNK]")
    ).to_str(),
    size=9,
    special=Special(padding=8, unknown=0, prefix=(5, 6), suffix=(7,)),
)
VOCABULARIES = [WordVocabulary.build(["a", "ab"]), PIECES, SPECIAL]

sentences = st.lists(st.lists(st.sampled_from(LEXICON), min_size=1, max_size=6), min_size=1, max_size=6)
picks = st.lists(st.integers(0, 5), max_size=8)


def padded(rows, fill=0):
    width = max(map(len, rows), default=0)
    return [[*row, *[fill] * (width - len(row))] for row in rows]


def test_the_word_in_front_of_an_utterance_is_read_at_the_last_special_token_before_it():
    batch = encode_text([["a", "ab"], ["ab"]], SPECIAL).gather(np.array([0, 1]))
    utterances = encode_text([["<utterance>", "a", "ab"], ["<utterance>", "ab"]], SPECIAL).gather(
        np.array([0, 1])
    )
    assert utterances.pieces_BP.tolist() == batch.pieces_BP.tolist()
    assert utterances.first_BT.tolist() == [[1, 2, 3], [1, 2, 0]]
    assert utterances.lengths_B.tolist() == [3, 2]
    # Where there is none, it is a word like any other.
    words = WordVocabulary.build(["<utterance>", "a"])
    assert encode_text([["<utterance>", "a"]], words).gather(np.array([0])).pieces_BP.tolist() == [[2, 3]]
    without_prefix = replace(SPECIAL, special=replace(SPECIAL.special, prefix=()))
    batch = encode_text([["<utterance>", "a"], ["", "a"]], without_prefix).gather(np.array([0, 1]))
    assert batch.first_BT.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=["word", "wordpiece", "special tokens"])
@untimed
@given(sentences=sentences, picks=picks)
def test_batches_are_what_encoding_each_sentence_gives(vocabulary, sentences, picks):
    text = encode_text(sentences, vocabulary, CHARACTERS)
    indices = np.array([pick % len(sentences) for pick in picks], dtype=np.int64)
    chosen = [sentences[i] for i in indices]
    expected = [encoded(vocabulary, sentence) for sentence in chosen]

    batch = text.gather(indices)

    assert len(batch) == len(chosen)
    assert batch.pieces_BP.tolist() == padded([ids for ids, _ in expected], vocabulary.special.padding)
    assert batch.piece_lengths_B.tolist() == [len(ids) for ids, _ in expected]
    assert batch.first_BT.tolist() == padded([first for _, first in expected])
    assert batch.lengths_B.tolist() == [len(sentence) for sentence in chosen]
    spelt = [[encoded(CHARACTERS, [word])[0] for word in sentence] for sentence in chosen]
    width = max((len(word) for sentence in spelt for word in sentence), default=0)
    time = max(map(len, spelt), default=0)
    characters = [
        [word + [0] * (width - len(word)) for word in [*sentence, *[[]] * (time - len(sentence))]]
        for sentence in spelt
    ]
    assert batch.characters_BTC.tolist() == characters
    assert batch.character_lengths_BT.tolist() == padded([[len(w) for w in s] for s in spelt])
    assert all(t.dtype == torch.int64 for t in vars(batch).values() if isinstance(t, torch.Tensor))


@untimed
@given(sentences)
def test_lengths_are_those_of_each_sentence(sentences):
    text = encode_text(sentences, SPECIAL)
    assert len(text) == len(sentences)
    assert text.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert text.piece_lengths.tolist() == [len(encoded(SPECIAL, sentence)[0]) for sentence in sentences]
    assert text.gather(np.array([0])).characters_BTC is None


@untimed
@given(sentences=sentences, picks=picks, cut=st.integers(0, 6), characters=st.booleans())
def test_blocks_one_after_the_other_are_the_whole(sentences, picks, cut, characters):
    spelt = CHARACTERS if characters else None
    parts = [part for part in (sentences[:cut], sentences[cut:]) if part]
    blocks = [encode_text(part, SPECIAL, spelt) for part in parts]
    joined = EncodedText.concatenate(blocks, padding=SPECIAL.special.padding)
    whole = encode_text(sentences, SPECIAL, spelt)
    indices = np.array([pick % len(sentences) for pick in picks], dtype=np.int64)
    assert joined.lengths.tolist() == whole.lengths.tolist()
    assert joined.piece_lengths.tolist() == whole.piece_lengths.tolist()
    for block_text, expected in zip(
        vars(joined.gather(indices)).values(), vars(whole.gather(indices)).values(), strict=True
    ):
        assert (
            torch.equal(block_text, expected)
            if isinstance(expected, torch.Tensor)
            else block_text == expected
        )


def test_a_sentence_without_words_is_refused():
    with pytest.raises(ValueError, match=r"sentence 1 .* has no words"):
        encode_text([["a"], []], VOCABULARIES[0])


def test_moving_a_batch_moves_every_tensor():
    batch = encode_text([["a", "b"]], VOCABULARIES[0], CHARACTERS).gather(np.array([0])).to("meta")
    tensors = {name: tensor for name, tensor in vars(batch).items() if isinstance(tensor, torch.Tensor)}
    assert len(tensors) == 6
    assert all(tensor.device.type == "meta" for tensor in tensors.values())
