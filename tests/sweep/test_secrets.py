"""A password in a sweep file is in no file of the store, in nothing that is printed and in nothing that is logged."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raykd.errors import SpecError, TrackingError
from tests.mlflow_server import MlflowServer
from tests.sweep.in_process import code_of, without_ray

CANARY = "c4n4ry"
TEXT = """\
name: secret
corpus: {{source: conll, root: '{folder}/text', languages: [en], train: a, dev: b, test: b}}
teachers: {{kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}}
student: {{kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {{kind: wordpiece, size: 200}}}}
objective: {{kind: structural}}
schedule: {{epochs: 1, anneal_horizon: 2}}
training: {{batch_tokens: 200}}
store: {folder}/store
tracking: {{uri: 'http://me:{password}@{address}'}}
"""


@pytest.fixture
def server(tmp_path, empty_mlflow) -> Iterator[MlflowServer]:
    shutil.copy(empty_mlflow, tmp_path / "mlflow.db")
    started = MlflowServer(tmp_path)
    started.start()
    yield started
    started.stop()


def with_canary(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and CANARY in text(path)
    ]


def text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


@pytest.mark.slow
def test_a_password_is_nowhere_but_in_its_sweep_file(tmp_path, server, capsys, monkeypatch):
    monkeypatch.setenv("PASSWORD", CANARY)
    for word in ("a", "b"):
        (tmp_path / "text").mkdir(exist_ok=True)
        (tmp_path / "text" / word).write_text(f"Anna{word} B-PER\nsleeps O\n\nin O\nRome{word} B-LOC\n\n" * 3)
    file = tmp_path / "sweep.yaml"
    for password in (CANARY, "${PASSWORD}"):
        file.write_text(TEXT.format(password=password, folder=tmp_path, address=server.address))
        with without_ray():
            for verb in ("check", "plan", "sweep", "front"):
                words = ["--resume"] if verb == "sweep" else []
                assert code_of(verb, str(file), *words) == 0
        printed = capsys.readouterr()
        assert CANARY not in printed.out + printed.err
        assert "'http://me:" in (tmp_path / "sweep.yaml").read_text()
        assert f"open http://{server.address}/#/experiments/" in printed.out
    server.stop()
    with without_ray():
        assert code_of("sweep", str(file), "--resume") == TrackingError.exit_code
    assert CANARY not in capsys.readouterr().err
    file.unlink()
    assert (tmp_path / "store/sweeps/secret/front.html").exists()
    assert with_canary(tmp_path) == []


@pytest.mark.parametrize("key", ["teachers.checkpoint", "start_from", "corpus.root"])
def test_a_password_where_runs_would_store_it_is_refused(tmp_path, key, capsys):
    file = tmp_path / "sweep.yaml"
    file.write_text(TEXT.format(password=CANARY, folder=tmp_path, address="h:1"))
    assert code_of("check", str(file), "--set", f"{key}=s3://KEY:{CANARY}@bucket/x") == SpecError.exit_code
    printed = capsys.readouterr().err
    assert f"{key}: holds a password, which every trial would store; write ${{NAME}}" in printed
    assert CANARY not in printed
