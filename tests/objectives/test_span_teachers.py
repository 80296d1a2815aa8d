"""Case 4 of the 2021 paper: what a student learns from a teacher over spans, against the enumerated definition."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.objectives import Gold, Top1
from raykd.objectives.logits import Logits
from raykd.objectives.posterior import Posterior
from raykd.objectives.structural import Structural
from raykd.objectives.token import Token
from raykd.objectives.top_k import TopK
from raykd.signals import TeacherBatch
from raykd.structures import Chain, Spans, SpanTags, token_marginals, viterbi
from tests.objectives.cases import Case, built_loss, draw_chain, targets_of
from tests.objectives.definitions import DEFINITIONS, laws, local

TAGS = SpanTags((4,), (2,), (3,), (1,), 0)
FEW = settings(max_examples=12, deadline=None)
WARMTH = st.sampled_from([0.5, 1.0, 3.0])


@st.composite
def cases(draw, *, chained: bool = False) -> Case:
    """A student, and a teacher over spans of one label in sentences of up to four words."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    lengths_B = torch.tensor(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    B, T = len(lengths_B), int(lengths_B.max())
    scores = 2 * torch.randn(B, T, T, 1, generator=generator, dtype=torch.float64)
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = float("-inf")
    return Case(draw_chain(lengths_B, 5, generator, chained=chained), Spans(scores, lengths_B, TAGS), 1)


def given_by_teacher(case: Case) -> TeacherBatch:
    """Stored signals of the teacher: marginals and best path."""
    marginals = Chain(token_marginals(case.teacher).log(), case.teacher.lengths_B)
    paths_BT, scores_B = viterbi(case.teacher)
    return TeacherBatch(None, paths_BT[:, None], scores_B[:, None], marginals)


def near(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


@FEW
@given(case=cases(), temperature=WARMTH, soften=st.sampled_from(["teacher", "both"]))
def test_structural_of_a_maxent_student_is_its_definition(case, temperature, soften):
    objective = Structural(temperature=temperature, soften=soften)
    near(
        objective.loss(case.student, given_by_teacher(case)), DEFINITIONS["structural"](objective, case, 1.0)
    )


@FEW
@given(case=cases(), chained=cases(chained=True), temperature=WARMTH)
def test_posterior_is_its_definition_whatever_the_student(case, chained, temperature):
    for student_case in (case, chained):
        objective = Posterior(temperature=temperature)
        near(
            objective.loss(student_case.student, given_by_teacher(student_case)),
            DEFINITIONS["posterior"](objective, student_case, 1.0),
        )


@FEW
@given(case=cases(), temperature=WARMTH)
def test_token_is_the_cross_entropy_of_the_marginals(case, temperature):
    actual_B = Token(temperature=temperature).loss(case.student, given_by_teacher(case))
    for b, law in enumerate(laws(case.teacher)):
        target = local(law.token_marginals(), temperature, (-1,))
        logs = case.student.emissions_BTY[b, : len(target)].log_softmax(-1)
        near(actual_B[b], -(target * logs).sum())


@FEW
@given(case=cases(), chained=cases(chained=True), head=st.sampled_from(["student", "own"]))
def test_logits_regress_on_the_marginals_whatever_the_student(case, chained, head):
    for student_case in (case, chained):
        objective = Logits(head=head, floor=-5.0)
        near(
            built_loss(objective, student_case, given_by_teacher(student_case)),
            DEFINITIONS["logits"](objective, student_case, 1.0),
        )


@FEW
@given(case=cases())
def test_structural_is_least_at_the_teachers_token_marginals(case):
    """The least loss of a MaxEnt student is the summed entropy of the tokens, not that of the segmentations."""
    agreeing = Chain(given_by_teacher(case).marginals.emissions_BTY.clamp_min(-200.0), case.teacher.lengths_B)
    expected = [
        -torch.special.xlogy(p, p).sum() for p in (law.token_marginals() for law in laws(case.teacher))
    ]
    near(Structural().loss(agreeing, given_by_teacher(case)), torch.stack(expected))
    assert (Structural().loss(case.student, given_by_teacher(case)) >= torch.stack(expected) - 1e-9).all()


@FEW
@given(case=cases(chained=True))
def test_top_1_and_top_k_of_one_path_are_the_best_segmentation(case):
    unlabelled = replace(case, labels=targets_of(torch.zeros(case.student.batch, 1).long(), labelled=False))
    inputs_B = given_by_teacher(case)
    near(built_loss(Top1(), unlabelled, inputs_B), DEFINITIONS["top_1"](Top1(), unlabelled, 1.0))
    near(TopK(k=1).loss(case.student, inputs_B), DEFINITIONS["top_1"](Top1(), unlabelled, 1.0))


@FEW
@given(case=cases())
def test_gold_trains_a_model_over_spans_on_the_segmentation(case):
    """A teacher over spans is trained by the same objective as a chain."""
    labels = targets_of(viterbi(case.teacher)[0])
    trained = Case(case.teacher, case.teacher, 1, labels)  # pyright: ignore[reportArgumentType]
    near(built_loss(Gold(), trained, TeacherBatch()), DEFINITIONS["gold"](Gold(), trained, 1.0))


def test_a_chain_student_needs_pairs_that_it_does_not_have():
    generator = torch.Generator().manual_seed(0)
    lengths_B = torch.tensor([3])
    spans = Spans(torch.randn(1, 3, 3, 1, generator=generator).double(), lengths_B, TAGS)
    case = Case(draw_chain(lengths_B, 5, generator), spans, 1)
    with pytest.raises(ValueError, match="reads the teacher's emissions"):
        Structural().loss(case.student, given_by_teacher(case))
    with pytest.raises(ValueError, match="reads the teacher's emissions"):
        Structural(temperature=2.0, temperature_mode="global").loss(
            replace(case.student, transitions=None, start=None, end=None), given_by_teacher(case)
        )
