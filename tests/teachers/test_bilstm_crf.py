import pytest
import torch
from pydantic import ValidationError

from raykd.forms import SPANS
from raykd.layers.model_config import BuildInputs
from raykd.teachers import BiLSTMCRFTeacher
from tests.layers.batches import CHARACTERS, PIECES, make_batch

TAGS = SPANS.tag_set(["PER"])


def build(**settings):
    torch.manual_seed(0)
    teacher = BiLSTMCRFTeacher(embedding_dim=6, hidden_dim=4, **settings)
    return teacher.build(BuildInputs(vocabulary_size=PIECES.size, characters=CHARACTERS.size, tag_set=TAGS))


def test_unknown_words_are_learnt_though_training_text_has_none():
    model, batch = build(word_dropout=0.5).train(), make_batch()
    without_unknown_BP = batch.pieces_BP.masked_fill(batch.pieces_BP == 1, 2)
    model(
        type(batch)(**{**vars(batch), "pieces_BP": without_unknown_BP})
    ).distribution.emissions_BTY.sum().backward()
    assert model.embedding.table.weight.grad[1].abs().sum() > 0


def test_word_dropout_is_off_in_evaluation():
    model, batch = build(word_dropout=0.9).eval(), make_batch()
    first, second = (model(batch).distribution.emissions_BTY for _ in range(2))
    assert torch.equal(first, second)


def test_a_teacher_reads_something():
    with pytest.raises(
        ValidationError, match="the model has no input; set embedding_dim, character_dim or contextual"
    ):
        BiLSTMCRFTeacher(embedding_dim=0, character_dim=0)


def test_a_checkpoints_vocabulary_is_refused():
    """Word dropout needs an unknown piece known to raykd."""
    with pytest.raises(ValidationError, match="pretrained"):
        BiLSTMCRFTeacher.model_validate({"vocabulary": {"kind": "pretrained", "path": "x"}})
