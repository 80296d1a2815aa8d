"""When Ray dies on this machine the command starts again, twice; the third time it says how to go on."""

from __future__ import annotations

import os
import sys

import pytest

from raykd.cli import cluster


@pytest.fixture
def started(monkeypatch):
    """How the process was replaced or ended."""
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
        cluster.start_again("Ray's process raylet died")
    again = ["python", "-u", "/bin/raykd", "sweep", "x.yaml", "--set", "a=b c", "--resume"]
    assert started == [(sys.executable, again)] * 2
    assert "warning Ray's process raylet died; starting again" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cluster.start_again("Ray's process raylet died")
    assert started[2] == ("exit", 7)
    shown = capsys.readouterr().err
    assert "error Ray's process raylet died" in shown
    assert "Go on with: raykd sweep x.yaml --set 'a=b c' --resume" in shown


@pytest.mark.parametrize(("words", "again"), [
    (["sweep", "x", "--resume"], ["sweep", "x", "--resume"]),
    (["distill", "x"], ["distill", "x"]),
])  # fmt: skip
def test_other_verbs_go_on_by_themselves(words, again):
    assert cluster.again(words) == again
