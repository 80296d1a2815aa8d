"""`raykd check`: which variants of a file are looked at, and how a fault of one is named."""

from __future__ import annotations

import pytest

from tests.sweep.in_process import call, code_of

FILE = """
name: checked
corpus: {source: builtin, languages: [en]}
teachers: {kind: bilstm_crf}
student: {kind: bilstm, embedding_dim: 8, hidden_dim: 8}
objective: {kind: representation, layer: 2}
search: {trials: 1}
variants:
  deep: {teachers: {layers: 2}}
  plain: {objective: {kind: gold}}
  shallow: {teachers: {layers: 1}}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "checked.yaml"
    path.write_text(FILE.replace("{kind: bilstm_crf}", "{kind: bilstm_crf, layers: 2}"))
    return str(path)


def test_a_fault_of_a_variant_names_it(file, capsys):
    assert code_of("check", file) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "has no layer 2; choose from 0 (its input) to 1 (in variant shallow)" in shown


def test_a_variant_that_is_named_is_checked_alone(file, capsys):
    """`deep` laid over `shallow` is nobody's setting."""
    for name in ("deep", "plain"):
        call("check", file, "--variant", name)
        assert f"--variant {name}" in capsys.readouterr().out
    assert code_of("check", file, "--variant", "shallow") == 2
    assert "in variant" not in capsys.readouterr().err
