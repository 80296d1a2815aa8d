import pytest
from pydantic import ValidationError

from raykd.forms import SPANS
from raykd.layers.model_config import BuildInputs
from raykd.students import BiLSTMStudent

TAGS = SPANS.tag_set(["LOC", "ORG", "PER"])


@pytest.mark.parametrize(
    ("embedding_dim", "hidden_dim", "millions"),
    [(50, 100, 6.10), (50, 200, 6.38), (100, 400, 13.6), (300, 600, 40.2)],
)
def test_size_over_mberts_pieces_is_that_of_the_papers_students(embedding_dim, hidden_dim, millions):
    """The (E, H) grid of XtremeDistil over all 119,547 pieces of mBERT: the embedding dominates."""
    student = BiLSTMStudent(embedding_dim=embedding_dim, hidden_dim=hidden_dim)
    model = student.build(BuildInputs(vocabulary_size=119_547, tag_set=TAGS))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.005)


def test_e_and_h_have_no_default():
    with pytest.raises(ValidationError, match=r"(?s)embedding_dim.*hidden_dim"):
        BiLSTMStudent()


def test_pieces_are_wordpieces_by_default():
    assert BiLSTMStudent(embedding_dim=4, hidden_dim=4).vocabulary.kind == "wordpiece"


def test_characters_are_part_of_the_shape_where_they_are_read():
    plain = BiLSTMStudent(embedding_dim=4, hidden_dim=4)
    assert not plain.reads_characters
    assert BiLSTMStudent(embedding_dim=4, hidden_dim=4, character_hidden=9).shape() == plain.shape()
    spelling = BiLSTMStudent(embedding_dim=4, hidden_dim=4, character_dim=5)
    wider = BiLSTMStudent(embedding_dim=4, hidden_dim=4, character_dim=5, character_hidden=9)
    assert len({str(student.shape()) for student in (plain, spelling, wider)}) == 3


def test_only_what_costs_time_is_in_the_shape():
    words = BiLSTMStudent.model_validate(
        {"embedding_dim": 4, "hidden_dim": 4, "vocabulary": {"kind": "word"}}
    )
    assert words.shape() == BiLSTMStudent(embedding_dim=4, hidden_dim=4).shape()


def test_a_projection_counts_in_size_and_shape():
    plain = BiLSTMStudent(embedding_dim=4, hidden_dim=6)
    wide = BiLSTMStudent(embedding_dim=4, hidden_dim=6, projection=10)
    assert (plain.depth, wide.depth) == (1, 2)
    assert wide.shape() == {**plain.shape(), "projection": 10}
    models = [student.build(BuildInputs(vocabulary_size=9, tag_set=TAGS)) for student in (plain, wide)]
    sizes = [sum(p.numel() for p in model.parameters()) for model in models]
    # 2H · 10 weights and 10 biases, and the head reads 10 components where it read 2H.
    head = len(TAGS) * (10 - 12)
    assert sizes[1] - sizes[0] == 12 * 10 + 10 + head


def test_the_teachers_width_has_to_be_known_before_a_student_is_built():
    student = BiLSTMStudent(embedding_dim=4, hidden_dim=6, projection="teacher")
    with pytest.raises(ValueError, match="the teacher's width has not been filled in"):
        student.build(BuildInputs(vocabulary_size=9, tag_set=TAGS))


def test_what_reads_nothing_is_refused():
    with pytest.raises(ValidationError, match="the model has no input; set embedding_dim"):
        BiLSTMStudent(embedding_dim=0, hidden_dim=4)
    assert BiLSTMStudent(embedding_dim=0, hidden_dim=4, character_dim=3).reads_characters
