"""Objectives equal their definitions by enumeration, at every temperature, mode and side."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.objectives import OBJECTIVES, Part
from raykd.objectives.table import SINGLE
from raykd.signals import TeacherBatch
from tests.objectives.cases import built_loss, cases
from tests.objectives.definitions import DEFINITIONS


@st.composite
def parts(draw):
    """One to three parts of a mix; λ strictly between 0 and 1 gives each a weight."""
    kinds = [entry.model_fields["kind"].default for entry in SINGLE if not entry.maxent_only]
    return tuple(
        Part(
            objective=draw(objectives(kind)),
            weight=draw(st.sampled_from([0.5, 1.0, 3.0])),
            anneal=draw(st.sampled_from(["none", "falling", "rising"])),
            text=draw(st.sampled_from(["all", "labelled", "unlabelled"])),
        )
        for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    )


@st.composite
def objectives(draw, kind):
    """An objective of the table with drawn hyper-parameters."""
    fields = OBJECTIVES[kind].model_fields
    drawn = {
        "k": st.integers(1, 6),
        "temperature": st.sampled_from([0.5, 1.0, 2.0, 5.0]),
        "temperature_mode": st.sampled_from(["local", "global"]),
        "soften": st.sampled_from(["teacher", "both"]),
        "layer": st.just(1),
        "student_layer": st.sampled_from([-1, 0, 2]),
        "distance": st.sampled_from(
            get_args(fields["distance"].annotation) if "distance" in fields else [None]
        ),
        "normalise": st.sampled_from(["softmax", "none"]),
        "precision": st.sampled_from(["float16", "int8"]),
        "head": st.sampled_from(["student", "own"]),
        "floor": st.sampled_from([-20.0, -3.0]),
        "parts": parts(),
    }
    if "layers" in fields:
        layers = draw(st.lists(st.integers(1 if kind == "attention" else 0, 3), min_size=1, max_size=3))
        layer_lists = st.lists(st.integers(1, 3), min_size=len(layers), max_size=len(layers))
        drawn["layers"] = st.just(tuple(layers))
        drawn["student_layers"] = st.one_of(st.none(), layer_lists.map(tuple))
    unknown = set(fields) - {"kind", *drawn}
    assert not unknown, f"draw {unknown} too"
    return OBJECTIVES[kind](**{name: draw(values) for name, values in drawn.items() if name in fields})


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), kd_weight=st.sampled_from([0.25, 0.5]))
def test_loss_is_its_definition(kind, data, kd_weight):
    objective = data.draw(objectives(kind))
    case = data.draw(cases(maxent=objective.maxent_only, teacher_chained=None))
    case = replace(case, k=max([case.k, *(need.k for need in objective.needs)]))
    loss_B = built_loss(objective, case, kd_weight=kd_weight)
    expected_B = DEFINITIONS[kind](objective, case, kd_weight)
    torch.testing.assert_close(loss_B, expected_B, rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_maxent_teacher_gives_a_chain_student_products_as_pairs(data):
    """Case 3 of the 2021 paper, for a stored teacher too: its transitions are zeros, not absent."""
    case = data.draw(cases(teacher_chained=False, student_chained=True))
    objective = data.draw(objectives("structural"))
    zeros = torch.zeros(case.teacher.batch, case.teacher.tags, case.teacher.tags, dtype=torch.float64)
    stored = replace(case.teacher, transitions=zeros, start=zeros[:, 0], end=zeros[:, 0])
    loss_B = DEFINITIONS["structural"](objective, case, 1.0)
    for teacher in (case.teacher, stored):
        batch = TeacherBatch(teacher)
        torch.testing.assert_close(objective.loss(case.student, batch), loss_B, rtol=1e-9, atol=1e-9)


def test_every_objective_has_a_definition():
    assert set(DEFINITIONS) == set(OBJECTIVES)
