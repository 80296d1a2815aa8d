import pytest
import torch
from pydantic import ValidationError

from raykd.forms import FLAT
from raykd.layers.ensemble import Ensemble
from raykd.layers.model_config import BuildInputs
from raykd.structures.labelled_arcs import LabelledArcs
from raykd.teachers import BiaffineParserTeacher, SecondOrderParserTeacher
from tests.layers.batches import CHARACTERS, PIECES, make_batch

RELATIONS = FLAT.tag_set(["nsubj", "obj", "root"])
SMALL = {
    "embedding_dim": 6, "hidden_dim": 4, "layers": 1, "character_dim": 3, "character_hidden": 2, "arc_dim": 5,
    "relation_dim": 4,
}  # fmt: skip
TEACHERS = (BiaffineParserTeacher, SecondOrderParserTeacher)
each_teacher = pytest.mark.parametrize("teacher", TEACHERS)


def build(teacher=BiaffineParserTeacher, *, seed=0, dropout=0.0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": PIECES.size, "characters": CHARACTERS.size, "tag_set": RELATIONS}
    model = teacher(**(SMALL | settings)).build(BuildInputs(**sizes, dropout=dropout))
    for parameter in model.head.parameters():
        torch.nn.init.normal_(parameter)
    return model


@each_teacher
def test_it_gives_every_head_and_relation_of_each_word(teacher):
    batch = make_batch()
    labelled = LabelledArcs.from_chain(build(teacher).eval()(batch).distribution)
    T = batch.first_BT.shape[1]
    assert labelled.arcs_BTH.shape == (4, T, T + 1)
    assert labelled.relations_BTHR.shape == (4, T, T + 1, len(RELATIONS))
    for row, length in enumerate(batch.lengths_B.tolist()):
        mass = labelled.arcs_BTH[row, :length, : length + 1].exp().sum(1)
        torch.testing.assert_close(mass, torch.ones(length))


@each_teacher
def test_dropout_of_the_training_reaches_the_head(teacher):
    model, batch = build(teacher, dropout=0.5, embedding_dim=0, word_dropout=0.0), make_batch()
    for part in (model.input_dropout, model.output_dropout, model.characters.dropout):
        part.rate = 0.0
    first, second = (model.train()(batch).distribution.emissions_BTY for _ in range(2))
    assert not torch.equal(first, second)


@each_teacher
def test_it_trains_as_the_papers_do_unless_the_file_says_otherwise(teacher):
    written = teacher.model_validate({"training": {"batch_tokens": 500}}).training
    assert (written.dropout, written.loss_average, written.batch_tokens) == (0.33, "token", 500)
    assert teacher.model_validate({"training": {"dropout": 0.1}}).training.dropout == 0.1


@pytest.mark.parametrize("size", ["arc_dim", "relation_dim", "pair_dim", "iterations", "layers"])
def test_its_shape_holds_its_sizes(size):
    shapes = [SecondOrderParserTeacher(**{size: value}).shape() for value in (7, 8)]
    assert shapes[0] != shapes[1]


def test_several_are_the_normalised_geometric_mean_of_heads_with_relations():
    batch, members = make_batch(rows=(0,)), [build(seed=seed).eval() for seed in (0, 1)]
    mean = Ensemble(members, combine="scores").eval()(batch).distribution
    logs = [member(batch).distribution.emissions_BTY for member in members]
    expected_BTY = torch.softmax((logs[0] + logs[1]) / 2, 2)
    labelled = LabelledArcs.from_chain(mean)
    torch.testing.assert_close(
        (labelled.arcs_BTH[..., None] + labelled.relations_BTHR).exp().flatten(2), expected_BTY
    )
    relation_mass_BTH = labelled.relations_BTHR.exp().sum(3)
    torch.testing.assert_close(relation_mass_BTH, torch.ones_like(relation_mass_BTH), atol=1e-3, rtol=0)


@each_teacher
def test_a_mixture_of_several_is_refused_with_a_hint(teacher):
    assert teacher(count=2).offers == ("arcs", "relations")
    with pytest.raises(ValidationError, match="set combine: scores"):
        teacher(count=2, combine="posteriors")
