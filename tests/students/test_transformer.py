import pytest
from pydantic import ValidationError

from raykd.forms import SPANS
from raykd.layers.model_config import BuildInputs
from raykd.students import TransformerStudent

TAGS = SPANS.tag_set(["LOC", "ORG", "PER"])


@pytest.mark.parametrize(
    ("embedding_dim", "layers", "millions"), [(48, 2, 4.4), (144, 1, 13.4), (276, 3, 28.0)]
)
def test_size_is_that_of_the_papers_students(embedding_dim, layers, millions):
    """The (E, depth) grid of XtremeDistil's Table 15, over the 90,000 rows that its parameters fit."""
    student = TransformerStudent(embedding_dim=embedding_dim, layers=layers, heads=12)
    model = student.build(BuildInputs(vocabulary_size=90_000, tag_set=TAGS))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.03)


def test_heads_divide_e():
    with pytest.raises(
        ValidationError, match="embedding_dim 50 is not divisible by heads 4; set embedding_dim: 48"
    ):
        TransformerStudent(embedding_dim=50)
    assert TransformerStudent(embedding_dim=50, heads=5).heads == 5


def test_the_linear_layers_are_four_times_as_wide_where_nothing_is_said():
    models = [
        TransformerStudent(embedding_dim=8, feed_forward_dim=width).build(
            BuildInputs(vocabulary_size=9, tag_set=TAGS)
        )
        for width in (None, 32, 20)
    ]
    assert [model.encoder.layers[0].inner.out_features for model in models] == [32, 32, 20]
