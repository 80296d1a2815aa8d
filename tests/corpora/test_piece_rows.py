"""Rows of embeddings for the pieces of two vocabularies."""

from dataclasses import replace

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from raykd.corpora.piece_rows import checkpoint_rows, matching_rows, piece_texts
from raykd.corpora.pretrained import HFVocabulary
from raykd.corpora.vocabulary import CharacterVocabulary, WordPieceVocabulary, WordVocabulary
from raykd.corpora.word_pieces import Special
from tests.teachers.checkpoints import PIECES, make_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return HFVocabulary.load(make_checkpoint(tmp_path_factory.mktemp("tiny"), head=False))


def pruned(whole, *words):
    return whole.for_words(list(words), prune=True)


def test_words_and_wordpieces_are_the_same_by_their_text():
    first, second = WordVocabulary(("an", "bo", "[UNK]")), WordVocabulary(("jij", "an"))
    # Padding and unknown are the first two pieces of both; a word that is spelled like one is a word.
    assert matching_rows(first, second).tolist() == [0, 1, -1, 2]
    assert matching_rows(second, first).tolist() == [0, 1, 3, -1, -1]
    pieces, more = (
        WordPieceVocabulary(("[PAD]", "[UNK]", *letters)) for letters in (("a", "##a"), ("##a", "b", "a"))
    )
    assert matching_rows(pieces, more).tolist() == [0, 1, 3, -1, 2]
    assert matching_rows(first, pieces).tolist() == [-1, -1, -1, -1]


def test_pieces_of_a_checkpoint_are_the_same_by_their_ids_there(whole):
    teacher, student = pruned(whole, "an", "abc"), pruned(whole, "an", "bo", "jij")
    assert teacher.checkpoint_ids != student.checkpoint_ids
    for source in (whole, teacher, student):
        for target in (whole, teacher, student):
            rows, mine = matching_rows(source, target), checkpoint_rows(target).tolist()
            theirs = checkpoint_rows(source).tolist()
            assert [theirs[row] if row >= 0 else None for row in rows] == [
                piece if piece in theirs else None for piece in mine
            ]
    assert set(matching_rows(whole, student).tolist()) == set(student.checkpoint_ids)
    assert (matching_rows(teacher, student) < 0).any()
    assert checkpoint_rows(whole).tolist() == list(range(whole.size))


def test_texts_have_no_marks(whole):
    assert piece_texts(WordVocabulary(("an", "##"))) == ["", "", "an", "##"]
    assert piece_texts(WordPieceVocabulary(("[PAD]", "[UNK]", "a", "##ab"))) == ["[PAD]", "[UNK]", "a", "ab"]
    assert piece_texts(whole) == [piece.removeprefix("##") for piece in PIECES]
    student = pruned(whole, "jij")
    assert piece_texts(student) == [PIECES[row].removeprefix("##") for row in student.checkpoint_ids]
    marked = replace(whole, definition=whole.definition.replace("##", "▁"))
    assert piece_texts(marked) == piece_texts(whole)


def test_texts_of_byte_level_pieces_are_those_of_their_bytes(whole):
    pieces = {"<pad>": 0, "<unk>": 1, "Ġ": 2, "Ã": 3, "©": 4, "Ã©": 5, "ĠÃ©": 6}
    tokenizer = Tokenizer(models.BPE(pieces, [("Ã", "©"), ("Ġ", "Ã©")], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    vocabulary = HFVocabulary(tokenizer.to_str(), len(pieces), Special(), full_size=len(pieces))
    assert piece_texts(vocabulary)[:3] == ["<pad>", "<unk>", ""]
    assert piece_texts(vocabulary)[5:] == ["é", "é"]


def test_characters_are_no_pieces():
    characters = CharacterVocabulary(("a",))
    with pytest.raises(TypeError, match="CharacterVocabulary has no pieces"):
        piece_texts(characters)
    with pytest.raises(TypeError, match="CharacterVocabulary has no pieces"):
        matching_rows(characters, characters)
