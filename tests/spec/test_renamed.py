"""Keys under their former names, refused with the present one; through the models of real sweep files."""

from __future__ import annotations

import pytest

from raykd.errors import SpecError
from raykd.spec import Frozen, check, load
from raykd.sweep.sweep_faults import check_sweep

GOOD = """\
name: good
corpus: {source: builtin}
teachers: {kind: bilstm_crf, scope: language}
student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8}
objective: {kind: posterior, temperature: 2, soften: both}
training: {loss_average: token}
"""


def faults(tmp_path, text, checked=check_sweep) -> list[str]:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(SpecError) as refused:
        checked(load(tmp_path / "x.yaml"))
    return [str(fault).removeprefix(f"{tmp_path}/") for fault in refused.value.faults]


def test_the_present_names_are_valid(tmp_path):
    (tmp_path / "x.yaml").write_text(GOOD)
    check_sweep(load(tmp_path / "x.yaml"))


@pytest.mark.parametrize(
    ("present", "former", "message"),
    [
        ("scope: language", "per: language", "3 teachers.per: `per` is now called `scope`: write `scope: …`"),
        (
            "loss_average: token",
            "per: token",
            "6 training.per: `per` is now called `loss_average`: write `loss_average: …`",
        ),
        (
            "soften: both",
            "temper: both",
            "5 objective.temper: `temper` is now called `soften`: write `soften: …`",
        ),
    ],
)
def test_a_former_name_is_refused_with_the_present_one(tmp_path, present, former, message):
    assert GOOD.count(present) == 1
    assert faults(tmp_path, GOOD.replace(present, former)) == [f"x.yaml:{message}"]


@pytest.mark.parametrize(
    "kind", ["bilstm_crf", "bilstm_maxent", "biaffine_ner", "hf_token_classifier, path: x"]
)
def test_every_teacher_refuses_per(tmp_path, kind):
    text = GOOD.replace("bilstm_crf, scope", f"{kind}, per")
    assert "x.yaml:3 teachers.per: `per` is now called `scope`: write `scope: …`" in faults(tmp_path, text)


@pytest.mark.parametrize("kind", ["emission", "posterior", "structural", "token"])
def test_every_objective_with_soften_refuses_temper(tmp_path, kind):
    text = GOOD.replace("posterior", kind).replace("soften", "temper")
    assert "x.yaml:5 objective.temper: `temper` is now called `soften`: write `soften: …`" in faults(
        tmp_path, text
    )


def test_a_searched_former_key_is_one_fault(tmp_path):
    text = GOOD.replace("soften: both", "temper: {choice: [teacher, both]}")
    assert faults(tmp_path, text) == [
        "x.yaml:5 objective.temper: `temper` is now called `soften`: write `soften: …`"
    ]


def test_the_present_key_is_not_reported_as_missing(tmp_path):
    class Renamed(Frozen):
        renamed = (("per", "scope"),)
        scope: str

    assert faults(tmp_path, "per: all\n", lambda document: check(document, Renamed)) == [
        "x.yaml:1 per: `per` is now called `scope`: write `scope: …`"
    ]
