import pytest
from pydantic import ValidationError

from raykd.corpora.vocabulary_config import BERT_SPECIAL
from raykd.forms import SPANS
from raykd.layers.model_config import BuildInputs
from raykd.students.encoder import EncoderStudent

TAGS = SPANS.tag_set(["LOC", "ORG", "PER"])


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
@pytest.mark.parametrize("deviation", [0.02, 0.1])
def test_weights_are_drawn_with_the_stated_deviation(architecture, deviation):
    student = EncoderStudent(
        architecture=architecture, embedding_dim=64, layers=1, initializer_range=deviation
    )
    model = student.build(BuildInputs(vocabulary_size=500, tag_set=TAGS, special=BERT_SPECIAL))
    matrices = [
        weight for name, weight in model.named_parameters() if weight.ndim == 2 and "position" not in name
    ]
    for weight in matrices:
        if len(weight) > 2:  # types of sentences are too few to measure
            assert weight.detach().std().item() == pytest.approx(deviation, rel=0.1)
    assert len(matrices) >= 8


def test_weights_of_no_deviation_are_refused():
    with pytest.raises(ValidationError, match="initializer_range"):
        EncoderStudent(embedding_dim=64, initializer_range=0)


def test_the_deviation_is_no_part_of_a_shape():
    shapes = [
        EncoderStudent(embedding_dim=64, initializer_range=deviation).shape() for deviation in (0.02, 0.1)
    ]
    assert shapes[0] == shapes[1]
