import numpy as np
import pytest

from raykd.identity import canonical_json, identity
from raykd.spec import Frozen


class Shape(Frozen):
    hidden_dim: int
    dropout: float = 0.0
    name: str = "é"


def test_canonical_does_not_depend_on_the_order_of_keys():
    assert canonical_json({"b": [1, 2], "a": {"d": None, "c": True}}) == canonical_json(
        {"a": {"c": True, "d": None}, "b": (1, 2)}
    )
    assert canonical_json({"b": 1.0, "a": "é"}) == '{"a":"é","b":1.0}'.encode()


def test_models_are_their_json_form_also_inside_plain_data():
    shape = Shape(hidden_dim=3)
    assert canonical_json({"student": shape}) == canonical_json(
        {"student": {"name": "é", "hidden_dim": 3, "dropout": 0.0}}
    )


@pytest.mark.parametrize(
    "other", [{"k": 2}, {"K": 1}, {"k": 1.0}, {"k": "1"}, {"k": True}, {"k": None}, {"k": 1, "x": None}]
)
def test_different_values_have_different_identities(other):
    assert identity("run", {"k": 1}) != identity("run", other)


def test_identity_names_its_kind_and_is_stable():
    # The bytes hashed are `{"k":1}`; a change here renames every stored part there is.
    assert identity("run", {"k": 1}) == "run-a0da1fce57d0e4f9"
    assert identity("run", {"k": 1}, length=64).startswith("run-a0da1fce57d0e4f9")
    assert len(identity("run", {"k": 1}, length=64)) == len("run-") + 64


@pytest.mark.parametrize("length", [0, 8, 15, 65])
def test_short_names_that_could_collide_are_refused(length):
    with pytest.raises(ValueError, match=f"got {length}"):
        identity("run", {}, length=length)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused_with_their_place(number):
    with pytest.raises(ValueError, match=r"value\.a\.1"):
        canonical_json({"a": [0, number]})
    with pytest.raises(ValueError, match=r"value\.dropout"):
        canonical_json(Shape.model_construct(hidden_dim=1, dropout=number, name="x"))


@pytest.mark.parametrize("value", [{1: "a"}, {"a": {1, 2}}, np.float32(1.0), [b"x"], object()])
def test_what_is_not_plain_data_is_refused(value):
    with pytest.raises(TypeError):
        canonical_json(value)
