"""The shape checks: they see a wrong shape, also where jaxtyping is imported for type checking only."""

import pytest
import torch
from jaxtyping import TypeCheckError

from raykd.objectives import OBJECTIVES, Part
from raykd.signals import TeacherBatch
from raykd.structures import Chain, log_partition


def test_a_wrong_shape_is_seen_in_a_function():
    chain = Chain(torch.zeros(2, 3, 4), torch.tensor([3, 2]))
    assert log_partition(chain).shape == (2,)
    # The dataclass of a floor above, whose annotations are words until they are looked up:
    with pytest.raises(TypeCheckError):
        TeacherBatch(chain, torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3))


def test_a_wrong_dtype_is_seen():
    with pytest.raises(TypeCheckError):
        TeacherBatch(None, torch.zeros(2, 1, 3), torch.zeros(2, 1))


def test_right_shapes_pass():
    batch = TeacherBatch(None, torch.zeros(2, 1, 3, dtype=torch.long), torch.zeros(2, 1))
    assert batch.paths_BKT is not None
    assert OBJECTIVES


def test_what_is_defined_for_type_checkers_alone_is_not_what_runs():
    part = Part.model_validate({"objective": {"kind": "structural"}})
    assert type(part.objective) is OBJECTIVES["structural"]
