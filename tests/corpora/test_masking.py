"""Masked text: which pieces are hidden is decided by the sentence, the epoch and the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

from raykd.corpora import masking
from raykd.corpora.encoded_text import encode_text
from raykd.corpora.masking import MaskedText
from raykd.corpora.vocabulary_config import BertConfig, WordPieceConfig
from raykd.forms.pieces import HiddenPieces

WORDS = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]


@pytest.fixture(scope="module")
def masked():
    draw = np.random.default_rng(0)
    sentences = [[*draw.choice(WORDS, size)] for size in [1, 2, *draw.integers(3, 40, 800)]]
    vocabulary = BertConfig(kind="bert", size=400).build(word for sentence in sentences for word in sentence)
    return MaskedText(
        encode_text(sentences, vocabulary), vocabulary.special, vocabulary.size, seed=3, epoch=1
    )


def test_a_share_of_pieces_is_hidden_by_berts_rules(masked):
    rows = np.arange(len(masked))
    read, whole = masked.gather(rows), masked.text.gather(rows)
    hidden = masked.hidden(rows)
    places = np.arange(hidden.shape[1]) < read.lengths_B.numpy()[:, None]
    first = read.first_BT.numpy()
    assert (np.take_along_axis(whole.pieces_BP.numpy(), first, 1)[places] == hidden[places]).all()
    inside = masked.piece_lengths - 2
    assert places.sum() / inside.sum() == pytest.approx(0.15, abs=0.01)
    read_pieces = np.take_along_axis(read.pieces_BP.numpy(), first, 1)[places]
    assert (read_pieces == masked.special.mask).mean() == pytest.approx(0.8, abs=0.03)
    assert (read_pieces == hidden[places]).mean() == pytest.approx(0.1, abs=0.03)
    # What is not predicted is as it was, and so are the pieces around each sentence.
    unmasked = np.ones(whole.pieces_BP.shape, bool)
    unmasked[np.nonzero(places)[0], first[places]] = False
    assert (read.pieces_BP.numpy() == whole.pieces_BP.numpy())[unmasked].all()
    assert first[places].min() >= 1
    assert (first < (masked.piece_lengths - 1)[:, None])[places].all()
    assert read.lengths_B.min() == 1, "of the shortest sentences one piece is hidden too"


def test_batches_have_no_effect_and_counts_are_known_before(masked):
    rows = np.arange(len(masked))
    assert (masked.lengths == masked.gather(rows).lengths_B.numpy()).all()
    some = rows[::-7]
    alone, together = masked.gather(some[:1]), masked.gather(some)
    width = alone.pieces_BP.shape[1]
    assert (alone.pieces_BP == together.pieces_BP[:1, :width]).all()
    targets = HiddenPieces(masked).gather(some)
    assert (targets.tags_BT.numpy() == masked.hidden(some)).all()
    assert targets.labelled_B.all()


def test_every_epoch_and_seed_hides_other_pieces(masked):
    rows = np.arange(len(masked))
    assert masked.for_epoch(3, 1) is masked
    pieces_BP = masked.gather(rows).pieces_BP
    for other_mask in (masked.for_epoch(3, 2), masked.for_epoch(4, 1)):
        assert (other_mask.gather(rows).pieces_BP != pieces_BP).any()
        assert (other_mask.for_epoch(3, 1).gather(rows).pieces_BP == pieces_BP).all()


def test_copies_of_a_sentence_have_masks_of_their_own(masked):
    rows = np.sort(np.concatenate([np.repeat([7, 40], 4), [3, 90, 91]]))
    copies, once = masked.for_epoch(3, 1, rows), masked.gather(np.unique(rows))
    assert len(copies) == len(rows)
    assert (copies.piece_lengths == masked.piece_lengths[rows]).all()
    read = copies.gather(np.arange(len(rows)))
    assert (copies.lengths == read.lengths_B.numpy()).all()
    first = np.searchsorted(rows, np.unique(rows))
    assert (read.pieces_BP.numpy()[first] == once.pieces_BP.numpy()).all(), "the first is as it was"
    for row in (7, 40):
        copies_BP = read.pieces_BP.numpy()[rows == row]
        assert len(np.unique(copies_BP, axis=0)) == 4
    # Whatever batch a copy is in, and in the next epoch all of it is forgotten.
    some = np.array([9, 2, 4])
    width = copies.gather(some).pieces_BP.shape[1]
    assert (copies.gather(some).pieces_BP.numpy() == read.pieces_BP.numpy()[some, :width]).all()
    hidden = HiddenPieces(copies).gather(np.arange(len(rows))).tags_BT.numpy()
    whole = masked.text.gather(rows).pieces_BP.numpy()
    places = np.arange(hidden.shape[1]) < copies.lengths[:, None]
    assert (np.take_along_axis(whole, read.first_BT.numpy(), 1)[places] == hidden[places]).all()
    assert len(copies.for_epoch(3, 2)) == len(masked)


def test_counts_do_not_depend_on_how_many_are_counted_at_once(masked, monkeypatch):
    expected = masked.lengths
    monkeypatch.setattr(masking, "BLOCK", 17)
    assert (masked.for_epoch(3, 2).for_epoch(3, 1).lengths == expected).all()


def test_a_vocabulary_without_a_mask_is_refused(masked):
    plain = WordPieceConfig(kind="wordpiece", size=200).build(WORDS)
    with pytest.raises(ValueError, match="no piece that masks"):
        MaskedText(encode_text([["ak"]], plain), plain.special, plain.size)
