"""Every objective equals its definition by enumeration, at every temperature, mode and side."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.objectives import OBJECTIVES
from raykd.signals import TeacherBatch
from tests.objectives.cases import cases
from tests.objectives.definitions import DEFINITIONS


@st.composite
def objectives(draw, kind):
    """An objective of the table with drawn hyper-parameters."""
    fields = OBJECTIVES[kind].model_fields
    drawn = {
        "k": st.integers(1, 6),
        "temperature": st.sampled_from([0.5, 1.0, 2.0, 5.0]),
        "temperature_mode": st.sampled_from(["local", "global"]),
        "soften": st.sampled_from(["teacher", "both"]),
    }
    unknown = set(fields) - {"kind", *drawn}
    assert not unknown, f"draw {unknown} too"
    return OBJECTIVES[kind](**{name: draw(values) for name, values in drawn.items() if name in fields})


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_loss_is_its_definition(kind, data):
    case = data.draw(cases(maxent=OBJECTIVES[kind].maxent_only, teacher_chained=None))
    objective = data.draw(objectives(kind))
    case = type(case)(case.student, case.teacher, max(case.k, getattr(objective, "k", 1)))
    loss_B = objective.loss(case.student, case.signals)
    torch.testing.assert_close(loss_B, DEFINITIONS[kind](objective, case), rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_maxent_teacher_of_a_chain_tells_pairs_by_products(data):
    """Case 3 of the 2021 paper, for a stored teacher too: its transitions are zeros, not absent."""
    case = data.draw(cases(teacher_chained=False, student_chained=True))
    objective = data.draw(objectives("structural"))
    zeros = torch.zeros(case.teacher.batch, case.teacher.tags, case.teacher.tags, dtype=torch.float64)
    stored = replace(case.teacher, transitions=zeros, start=zeros[:, 0], end=zeros[:, 0])
    loss_B = DEFINITIONS["structural"](objective, case)
    for teacher in (case.teacher, stored):
        batch = TeacherBatch(teacher)
        torch.testing.assert_close(objective.loss(case.student, batch), loss_B, rtol=1e-9, atol=1e-9)


def test_every_objective_has_a_definition():
    assert set(DEFINITIONS) == set(OBJECTIVES)
