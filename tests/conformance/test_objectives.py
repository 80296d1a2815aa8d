"""What every objective of the table must do, whatever it computes. A new one needs its line there only."""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from raykd.objectives import OBJECTIVES, ObjectiveConfig
from raykd.signals import DERIVED, SIGNALS, TeacherBatch, to_read
from raykd.structures import Chain
from tests.objectives.cases import cases, make_case, padded, rows

KINDS = pytest.mark.parametrize("kind", OBJECTIVES)
SOFT = {"temperature": 2.0, "temperature_mode": "local"}


def make_objective(kind: str, **settings):
    """The objective with those of `settings` that it has."""
    known = OBJECTIVES[kind].model_fields
    return OBJECTIVES[kind](
        **{name: value for name, value in ({"k": 3} | SOFT | settings).items() if name in known}
    )


def read_by(objective, case) -> TeacherBatch:
    """A teacher's batch that holds what the objective needs and nothing else."""
    names = {need.signal for need in to_read(objective.needs, SIGNALS)}
    k = max((need.k for need in objective.needs), default=0)
    signals = replace(case, k=k).signals if k else replace(case, k=1).signals
    chain = (
        case.teacher if "transitions" in names else Chain(case.teacher.emissions_BTY, case.teacher.lengths_B)
    )
    gold = objective.kind == "gold"  # its tags are no signal: they come with the corpus
    paths = (signals.paths_BKT, signals.scores_BK) if "kbest" in names or gold else (None, None)
    return TeacherBatch(chain if "emissions" in names else None, *paths)


@KINDS
def test_the_table_names_its_entries(kind):
    objective = OBJECTIVES[kind]()
    assert objective.kind == kind
    assert all(need.signal in SIGNALS or need.signal in DERIVED for need in objective.needs)


@KINDS
def test_configuration_survives_json_and_pickle(kind):
    objective = make_objective(kind)
    adapter = TypeAdapter(ObjectiveConfig)
    assert adapter.validate_json(json.dumps(objective.model_dump(mode="json"))) == objective
    assert pickle.loads(pickle.dumps(objective)) == objective


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (kind, fault)
        for kind, entry in OBJECTIVES.items()
        for fault in (
            {"k": 0},
            {"temperature": 0.0},
            {"temperature_mode": "lokal"},
            {"soften": "x"},
            {"oddity": 1},
        )
        if set(fault) & {*entry.model_fields, "oddity"}
    ],
)
def test_configuration_refuses_nonsense(kind, fault):
    with pytest.raises(ValidationError):
        OBJECTIVES[kind](**fault)


@KINDS
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_loss_reads_only_what_it_needs(kind, data):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    everything = replace(case, k=max(case.k, 3)).signals
    torch.testing.assert_close(
        objective.loss(case.student, read_by(objective, case)), objective.loss(case.student, everything)
    )


@KINDS
def test_a_missing_signal_is_named(kind):
    objective = make_objective(kind)
    case = make_case(0, maxent=objective.maxent_only)
    with pytest.raises(ValueError, match=f"objective {kind!r} reads|objective '(posterior|top_wk)' reads"):
        objective.loss(case.student, TeacherBatch())


@KINDS
@settings(max_examples=15, deadline=None)
@given(data=st.data(), steps=st.integers(1, 3))
def test_padding_changes_nothing(kind, data, steps):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    wide = replace(case, student=padded(case.student, steps), teacher=padded(case.teacher, steps, -50.0))
    torch.testing.assert_close(
        objective.loss(wide.student, read_by(objective, wide)),
        objective.loss(case.student, read_by(objective, case)),
    )


@KINDS
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_splitting_the_batch_changes_nothing(kind, data):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    apart = []
    for b in range(case.student.batch):
        own = replace(
            case, student=rows(case.student, slice(b, b + 1)), teacher=rows(case.teacher, slice(b, b + 1))
        )
        apart.append(objective.loss(own.student, read_by(objective, own)))
    torch.testing.assert_close(torch.cat(apart), objective.loss(case.student, read_by(objective, case)))


@KINDS
@pytest.mark.parametrize("settings", [{}, {"soften": "both"}, {"temperature_mode": "global"}])
def test_gradients_are_the_derivatives(kind, settings):
    objective = make_objective(kind, **settings)
    case = make_case(1, maxent=objective.maxent_only, lengths=(3, 1), tags=2)
    signals, lengths_B = read_by(objective, case), case.student.lengths_B
    scores = tuple(part.clone().requires_grad_() for part in case.student.scores())
    assert torch.autograd.gradcheck(
        lambda *parts: objective.loss(Chain(parts[0], lengths_B, *parts[1:]), signals), scores
    )


@KINDS
def test_the_teacher_is_never_trained(kind):
    objective = make_objective(kind)
    case = make_case(2, maxent=objective.maxent_only)
    scores = [part.requires_grad_() for part in case.teacher.scores()]
    student = case.student.map(lambda part: part.requires_grad_())
    objective.loss(student, read_by(objective, case)).sum().backward()
    assert student.emissions_BTY.grad is not None
    assert all(part.grad is None for part in scores)


@KINDS
@settings(max_examples=15, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_forbidden_transitions_give_no_nan(kind, data, dtype):
    """A student that forbids what its teacher forbids has a finite loss and finite gradients."""
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only, forbidden=True, student_chained=True))
    student = case.student
    if not objective.maxent_only:
        rows_B = (len(student.lengths_B), student.tags, student.tags)
        barred = case.teacher.transitions == float("-inf")
        student = replace(
            student, transitions=student.transitions.expand(rows_B).masked_fill(barred, float("-inf"))
        )
    student = student.map(lambda part: part.to(dtype, copy=True).requires_grad_())
    loss_B = objective.loss(student, read_by(objective, case))
    loss_B.sum().backward()
    assert torch.isfinite(loss_B).all()
    assert all(part.grad is None or torch.isfinite(part.grad).all() for part in student.scores())


@pytest.mark.parametrize("kind", [kind for kind in OBJECTIVES if not OBJECTIVES[kind].maxent_only])
def test_a_student_that_forbids_more_may_be_infinitely_far_but_not_nan(kind):
    objective = make_objective(kind)
    case = make_case(3, lengths=(4, 3))
    barred = torch.full_like(case.student.transitions, float("-inf")).fill_diagonal_(0)
    loss_B = objective.loss(replace(case.student, transitions=barred), read_by(objective, case))
    assert not torch.isnan(loss_B).any()


@KINDS
def test_bf16_scores_stay_within_their_rounding(kind):
    """bf16 keeps 8 bits: scores of paths, and log Z, move by at most 2⁻⁸ of the size of their parts."""
    objective = make_objective(kind)
    case = make_case(4, maxent=objective.maxent_only, lengths=(4, 2, 3))
    signals = read_by(objective, case)
    exact_B = objective.loss(case.student, signals)
    loss_B = objective.loss(case.student.map(lambda part: part.bfloat16()), signals)
    parts = sum(part.abs().amax() for part in case.student.scores())
    assert loss_B.dtype == torch.float32
    assert ((loss_B - exact_B).abs() <= 2 * 2**-8 * case.student.lengths_B * parts).all()
