"""The command restarts after a death of Ray on this machine."""

from __future__ import annotations

import os
import sys

import pytest

from raykd.cli import cluster
from tests.sweep.in_process import code_of, without_ray


@pytest.fixture
def started(monkeypatch):
    """The replacements and the ends of the process, in order."""
    ends: list[tuple[str, object]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: ends.append((program, arguments)))

    def exit_(code: int) -> None:
        ends.append(("exit", code))
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", exit_)
    monkeypatch.delenv(cluster.RESTARTS, raising=False)
    words = ["raykd", "sweep", "x.yaml", "--set", "a=b c"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-u", "/bin/raykd", *words[1:]])
    yield ends
    os.environ.pop(cluster.RESTARTS, None)


def test_the_same_command_goes_on_and_not_for_ever(started, capsys):
    for _ in range(2):
        cluster.restart("Ray's process raylet died")
    restarted_words = ["python", "-u", "/bin/raykd", "sweep", "x.yaml", "--set", "a=b c", "--resume"]
    assert started == [(sys.executable, restarted_words)] * 2
    assert "warning Ray's process raylet died; starting again" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cluster.restart("Ray's process raylet died")
    assert started[2] == ("exit", 7)
    output = capsys.readouterr().err
    assert "error Ray's process raylet died" in output
    assert "Continue with: raykd sweep x.yaml --set 'a=b c' --resume" in output


@pytest.mark.parametrize(("words", "restarted_words"), [
    (["sweep", "x", "--resume"], ["sweep", "x", "--resume"]),
    (["distill", "x"], ["distill", "x"]),
])  # fmt: skip
def test_other_verbs_go_on_by_themselves(words, restarted_words):
    assert cluster.resumed_command(words) == restarted_words


TEXT = """\
name: own
corpus: {source: builtin, languages: [en], train: 16, dev: 6, test: 6}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 1}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {kind: posterior}
schedule: {epochs: 1, anneal_horizon: 1}
search: {trials: 1}
"""


@pytest.mark.parametrize(
    ("verb", "setting", "problem"),
    [
        (
            "plan",
            "cpus_per_worker=2",
            "resources: one run takes 1 worker × 2 CPUs = 2 CPUs, the cluster has 1",
        ),
        (
            "precompute",
            "precompute={workers: 3}",
            "resources.precompute.workers: 3 × 1 = 3 CPUs, the cluster has 1",
        ),
        ("sweep", "students={gpus_per_worker: 0.5}", "resources.students: one run takes 1 worker × 0.5 GPUs"),
        ("sweep", "latency={custom: {phone: 1}}", "resources.latency: no node has {CPU: 1, phone: 1}"),
    ],
)
def test_what_any_phase_cannot_have_is_refused_before_the_first(
    tmp_path, monkeypatch, capsys, verb, setting, problem
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(TEXT)
    with without_ray() as done:
        assert code_of(verb, "own.yaml", "--set", f"resources.{setting}") == 5
    assert problem in capsys.readouterr().err
    assert done == []
    assert not [path for kind in ("costs", "teachers", "runs") for path in tmp_path.glob(f".raykd/{kind}/*")]
