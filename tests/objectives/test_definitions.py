"""Every objective equals its definition by enumeration, at every temperature, mode and side."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from raykd.objectives import OBJECTIVES
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
        "temper": st.sampled_from(["teacher", "both"]),
    }
    unknown = set(fields) - {"kind", *drawn}
    assert not unknown, f"draw {unknown} too"
    return OBJECTIVES[kind](**{name: draw(values) for name, values in drawn.items() if name in fields})


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_loss_is_its_definition(kind, data):
    case = data.draw(cases(maxent=OBJECTIVES[kind].maxent_only))
    objective = data.draw(objectives(kind))
    case = type(case)(case.student, case.teacher, max(case.k, getattr(objective, "k", 1)))
    loss_B = objective.loss(case.student, case.signals)
    torch.testing.assert_close(loss_B, DEFINITIONS[kind](objective, case), rtol=1e-9, atol=1e-9)


def test_every_objective_has_a_definition():
    assert set(DEFINITIONS) == set(OBJECTIVES)
