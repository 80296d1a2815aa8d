"""Conformance of all objectives of the table.

A new one needs a line in the table only; one with required settings needs them in `required`.
"""

import json
import pickle
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from raykd.needs import DERIVATIONS, LIVE_SIGNALS, signals_to_read
from raykd.objectives import OBJECTIVES, Objective, ObjectiveConfig
from raykd.objectives.table import SINGLE
from raykd.signals import SIGNALS, TeacherBatch
from raykd.structures import Chain, viterbi
from tests.objectives.cases import alone, built_loss, built_losses, cases, make_case, padded, targets_of

KINDS = pytest.mark.parametrize("kind", OBJECTIVES)
SOFT = {"temperature": 2.0, "temperature_mode": "local"}
LAMBDAS = (1.0, 0.4, 0.0)
FEW = settings(max_examples=10, deadline=None)


def required(kind: str) -> dict:
    """Required settings of an entry; a mix is of all that a chain can learn from."""
    if kind in ("hidden_states", "attention"):
        return {"layers": (1, 3)}
    if kind != "mix":
        return {}
    singles = [entry.model_fields["kind"].default for entry in SINGLE if not entry.maxent_only]
    anneals, texts = ("none", "falling", "rising"), ("all", "labelled", "unlabelled", "all")
    return {
        "parts": tuple(
            {
                "objective": make_objective(name),
                "weight": 0.5 + place,
                "anneal": anneals[place % 3],
                "text": texts[place % 4],
            }
            for place, name in enumerate(singles)
        )
    }


def make_objective(kind: str, **settings) -> Objective:
    """The objective with its fields among `settings`."""
    fields = OBJECTIVES[kind].model_fields
    inputs = {"k": 3} | SOFT | settings | required(kind)
    return OBJECTIVES[kind](**{name: value for name, value in inputs.items() if name in fields})


def read_by(objective, case) -> TeacherBatch:
    """A teacher's batch with the signals needed by the objective, and nothing else."""
    names = {need.signal for need in signals_to_read(objective.needs, SIGNALS)}
    signals = replace(case, k=max((need.k for need in objective.needs), default=0) or 1).signals
    chain = (
        case.teacher if "transitions" in names else Chain(case.teacher.emissions_BTY, case.teacher.lengths_B)
    )
    paths = (signals.paths_BKT, signals.scores_BK) if "kbest" in names else (None, None)
    hidden = {
        need: signals.hidden[need]
        for need in objective.needs
        if need.signal in SIGNALS and need.layer is not None
    }
    live = {
        name: {need.layer: inputs[need.layer] for need in objective.needs if need.signal == signal}
        for name, signal, inputs in (
            ("pieces", "piece_states", signals.pieces), ("attention", "attention", signals.attention)
        )
    }  # fmt: skip
    return TeacherBatch(chain if "emissions" in names else None, *paths, hidden=hidden, **live)


def loss_of(objective, case):
    """The loss of the case at some λ, which only a mix uses."""
    return built_loss(objective, case, read_by(objective, case), kd_weight=0.4)


def only_labels(objective) -> bool:
    """True for objectives without signals of a teacher."""
    return not objective.needs


@KINDS
def test_the_table_names_its_entries(kind):
    objective = make_objective(kind)
    assert objective.kind == kind
    assert all(need.signal in {*SIGNALS, *DERIVATIONS, *LIVE_SIGNALS} for need in objective.needs)


@KINDS
def test_configuration_survives_json_and_pickle(kind):
    objective = make_objective(kind)
    adapter = TypeAdapter(ObjectiveConfig)
    assert adapter.validate_json(json.dumps(objective.model_dump(mode="json"))) == objective
    assert pickle.loads(pickle.dumps(objective)) == objective


FAULTS = (
    {"k": 0}, {"temperature": 0.0}, {"temperature_mode": "lokal"}, {"soften": "x"}, {"oddity": 1},
    {"parts": ()}, {"parts": ({"objective": {"kind": "gold"}, "weight": -1},)},
    {"parts": ({"objective": {"kind": "mix", "parts": ({"objective": {"kind": "gold"}},)}},)},
    {"parts": ({"objective": {"kind": "gold"}, "anneal": "x"},)},
    {"parts": ({"objective": {"kind": "gold"}, "text": "x"},)},
    {"head": "x"}, {"floor": 0.0}, {"distance": "x"}, {"normalise": "x"}, {"precision": "int4"}, {"layer": -1},
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (kind, fault)
        for kind, entry in OBJECTIVES.items()
        for fault in FAULTS
        if set(fault) & {*entry.model_fields, "oddity"}
    ],
)
def test_configuration_refuses_nonsense(kind, fault):
    with pytest.raises(ValidationError):
        OBJECTIVES[kind](**(required(kind) | fault))


@KINDS
@FEW
@given(data=st.data())
def test_loss_reads_only_what_it_needs(kind, data):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    everything = replace(case, k=max(case.k, 3)).signals
    torch.testing.assert_close(
        loss_of(objective, case), built_loss(objective, case, everything, kd_weight=0.4)
    )


@KINDS
def test_a_missing_signal_is_named(kind):
    objective = make_objective(kind)
    if only_labels(objective):
        return
    case = make_case(0, maxent=objective.maxent_only)
    with pytest.raises(ValueError, match=r"objective '\w+' reads the teacher's .* and this batch has none"):
        built_loss(objective, case, TeacherBatch())


@KINDS
def test_what_is_built_gives_a_loss_for_each_sentence_and_its_parts(kind):
    objective = make_objective(kind)
    case = make_case(1, maxent=objective.maxent_only)
    losses = built_losses(objective, case, read_by(objective, case), kd_weight=0.4)
    assert losses.total_B.shape == (case.student.batch,)
    assert all(part_B.shape == losses.total_B.shape for part_B in losses.parts.values())
    if kind != "mix":
        assert set(losses.parts) == {kind}
        assert torch.equal(losses.parts[kind], losses.total_B)
    if type(objective).loss is not Objective.loss:
        direct_B = objective.loss(case.student, read_by(objective, case))
        assert torch.equal(direct_B, losses.total_B)


@KINDS
def test_an_objective_has_a_loss_between_distributions_or_builds_one(kind):
    entry = OBJECTIVES[kind]
    methods = [
        name
        for name in ("loss", "batch_loss", "build")
        if getattr(entry, name) is not getattr(Objective, name)
    ]
    assert len(methods) == 1, methods


@KINDS
def test_only_a_mix_uses_lambda(kind):
    """An annealed objective becomes part of a mix; `follows_lambda` says which losses change with λ."""
    objective = make_objective(kind)
    case = make_case(1, maxent=objective.maxent_only)
    at = [built_loss(objective, case, read_by(objective, case), kd_weight=kd_weight) for kd_weight in LAMBDAS]
    assert torch.equal(at[0], at[1]) != objective.follows_lambda
    assert not (objective.anneals and objective.follows_lambda)


@KINDS
@pytest.mark.parametrize("kd_weight", LAMBDAS)
def test_a_loss_that_reads_labels_touches_every_score_of_the_student(kind, kd_weight):
    """DDP then need not look for parameters without a gradient, at any λ."""
    objective = make_objective(kind)
    if not objective.reads_labels:
        return
    case = make_case(1)
    student = case.student.map(lambda part: part.clone().requires_grad_())
    case = replace(case, student=student)
    built_loss(objective, case, read_by(objective, case), kd_weight=kd_weight).sum().backward()
    assert all(part.grad is not None for part in student.scores())


@KINDS
def test_unlabelled_sentences_count_where_they_are_trained_on(kind):
    objective = make_objective(kind)
    case = make_case(1, maxent=objective.maxent_only)
    case = replace(case, labels=targets_of(case.targets.tags_BT, labelled=False))
    assert bool(loss_of(objective, case).any()) == (objective.text == "all")


@KINDS
@FEW
@given(data=st.data(), steps=st.integers(1, 3))
def test_padding_changes_nothing(kind, data, steps):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    wide = replace(case, student=padded(case.student, steps), teacher=padded(case.teacher, steps, -50.0))
    torch.testing.assert_close(loss_of(objective, wide), loss_of(objective, case))


@KINDS
@FEW
@given(data=st.data())
def test_splitting_the_batch_changes_nothing(kind, data):
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only))
    apart = [loss_of(objective, alone(case, b)) for b in range(case.student.batch)]
    torch.testing.assert_close(torch.cat(apart), loss_of(objective, case))


def variants() -> list[tuple[str, dict]]:
    """The objectives in all their ways to soften."""
    ways = ({}, {"soften": "both"}, {"temperature_mode": "global"})
    return [
        (kind, way) for kind, entry in OBJECTIVES.items() for way in ways if set(way) <= {*entry.model_fields}
    ]


@pytest.mark.parametrize(("kind", "settings"), variants())
def test_gradients_are_the_derivatives(kind, settings):
    objective = make_objective(kind, **settings)
    case = make_case(1, maxent=objective.maxent_only, lengths=(3, 1), tags=2)
    signals, lengths_B = read_by(objective, case), case.student.lengths_B
    scores = tuple(part.clone().requires_grad_() for part in case.student.scores())

    def loss_B(*parts):
        leaf_case = replace(case, student=Chain(parts[0], lengths_B, *parts[1:]))
        return built_loss(objective, leaf_case, signals, kd_weight=0.4)

    assert torch.autograd.gradcheck(loss_B, scores)


@KINDS
def test_the_teacher_is_never_trained(kind):
    objective = make_objective(kind)
    case = make_case(2, maxent=objective.maxent_only)
    scores = [part.requires_grad_() for part in case.teacher.scores()]
    case = replace(case, student=case.student.map(lambda part: part.requires_grad_()))
    loss_of(objective, case).sum().backward()
    assert case.student.emissions_BTY.grad is not None
    assert all(part.grad is None for part in scores)


@KINDS
@FEW
@given(data=st.data(), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_forbidden_transitions_give_no_nan(kind, data, dtype):
    """A student with the teacher's forbidden transitions has a finite loss and finite gradients."""
    objective = make_objective(kind)
    case = data.draw(cases(maxent=objective.maxent_only, forbidden=True, student_chained=True))
    student, rows_B = case.student, (case.student.batch, -1, -1)
    if student.transitions is not None:
        barred = case.teacher.transitions == float("-inf")
        student = replace(
            student, transitions=student.transitions.expand(rows_B).masked_fill(barred, float("-inf"))
        )
    student = student.map(lambda part: part.to(dtype, copy=True).requires_grad_())
    # Gold labels that the student forbids would be infinitely far: the teacher's best are allowed.
    labels = targets_of(viterbi(case.teacher)[0], labelled=case.targets.labelled_B.tolist())
    loss_B = loss_of(objective, replace(case, student=student, labels=labels))
    loss_B.sum().backward()
    assert torch.isfinite(loss_B).all()
    assert all(part.grad is None or torch.isfinite(part.grad).all() for part in student.scores())


@pytest.mark.parametrize("kind", [kind for kind in OBJECTIVES if not make_objective(kind).maxent_only])
def test_a_student_that_forbids_more_may_be_infinitely_far_but_not_nan(kind):
    objective = make_objective(kind)
    case = make_case(3, lengths=(4, 3))
    barred = torch.full_like(case.student.transitions, float("-inf")).fill_diagonal_(0)
    loss_B = loss_of(objective, replace(case, student=replace(case.student, transitions=barred)))
    assert not torch.isnan(loss_B).any()


@KINDS
def test_bf16_scores_stay_within_their_rounding(kind):
    """bf16 keeps 8 bits: scores of paths, and log Z, move by at most 2⁻⁸ of the size of their parts."""
    objective = make_objective(kind)
    case = make_case(4, maxent=objective.maxent_only, lengths=(4, 2, 3))
    exact_B = loss_of(objective, case)
    loss_B = loss_of(objective, replace(case, student=case.student.map(lambda part: part.bfloat16())))
    parts = sum(part.abs().amax() for part in case.student.scores())
    weights = sum(part.weight for part in getattr(objective, "parts", ())) or 1.0
    assert loss_B.dtype == torch.float32
    assert ((loss_B - exact_B).abs() <= 2 * 2**-8 * weights * case.student.lengths_B * parts).all()
