"""A missing file named in a sweep file is reported with line and key, as are all faults."""

import pytest

from raykd.errors import SpecError, StoreError
from raykd.spec import load
from raykd.sweep.named_files import file_errors_as_faults
from tests.sweep.in_process import code_of, without_ray

TEXT = """\
name: own
corpus: {source: builtin, languages: [en, de], train: 16, dev: 6, test: 6}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student:
  kind: bilstm
  embedding_dim: 6
  hidden_dim: 6
  contextual:
    - {vectors: "cc.{lang}.vec"}
  scope: language
  vocabulary: {kind: word}
objective: {kind: structural}
schedule: {epochs: 1}
search: {sampler: grid}
tracking: {models: none}
"""


def test_a_missing_file_is_named_with_its_line_and_key(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(TEXT)
    with without_ray():
        assert code_of("plan", "own.yaml") == SpecError.exit_code
    message = f"own.yaml:9 student.contextual.0.vectors: {tmp_path}/cc.en.vec cannot be read"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "passing"), [("store/runs/run-1/model.json", False), ("cc.en.vec", True), ("cc..vec", False)]
)
def test_what_the_file_does_not_name_stays_what_it_is(tmp_path, name, passing):
    (tmp_path / "own.yaml").write_text(TEXT)
    with pytest.raises(StoreError), file_errors_as_faults(load(tmp_path / "own.yaml")):
        raise StoreError(name, "is damaged", "remove it", passing)


def test_every_key_that_names_the_file_is_a_fault(tmp_path):
    (tmp_path / "own.yaml").write_text(TEXT + "start_from: models/one\n")
    message = r"own\.yaml:16 start_from: models/one is no run; correct it"
    with pytest.raises(SpecError, match=message), file_errors_as_faults(load(tmp_path / "own.yaml")):
        raise StoreError("models/one", "is no run", "correct it")
