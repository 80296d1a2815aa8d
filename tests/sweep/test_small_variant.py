"""Settings of the variant `small` larger than in the sweep file."""

from __future__ import annotations

import pytest

from raykd.spec import load
from raykd.sweep.small_variant import larger_settings

FILE = """
name: whole
corpus: {source: builtin, languages: [en, de], train: 100}
teachers: {kind: bilstm_crf, hidden_dim: 64, epochs: 5}
student: {kind: bilstm, embedding_dim: {choice: [8, 32]}, hidden_dim: 8}
objective: {kind: structural, temperature: {choice: [1, 2]}}
schedule: {epochs: 4, anneal_horizon: 4}
search: {trials: 3}
variants:
  small: VARIANT
"""


@pytest.mark.parametrize(("variant", "larger"), [
    ("{corpus: {train: 50}, search: {trials: 2}, student: {embedding_dim: 16}}", []),
    ("{teachers: {epochs: 6}}", ["teachers.epochs: 6, without it 5"]),
    ("{corpus: {train: 200}}", ["corpus.train: 200, without it 100"]),
    ("{corpus: {languages: [en, de, nl]}}", ["corpus.languages: 3, without it 2"]),
    # The space has four settings, so that no more than four trials are made.
    ("{search: {trials: 9}}", ["trials: 4, without it 3"]),
    ("{student: {embedding_dim: {choice: [16, 64]}}}", ["student.embedding_dim: 64, without it 32"]),
    # What the file leaves to a default is compared too.
    ("{search: {runs_per_setting: 2}}", ["search.runs_per_setting: 2, without it 1"]),
    ("{schedule: {epochs: null, max_steps: 10}}", []),
    ("{training: {batch_tokens: 9000, learning_rate: 0.1}, objective: {temperature: 7}}", []),
])  # fmt: skip
def test_what_takes_longer_is_named(tmp_path, variant, larger):
    (tmp_path / "whole.yaml").write_text(FILE.replace("VARIANT", variant))
    whole, small = load(tmp_path / "whole.yaml"), load(tmp_path / "whole.yaml", variants=["small"])
    assert larger_settings(whole, small) == larger
