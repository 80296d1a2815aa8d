"""Ctrl-C, and the SIGTERM of a job that is stopped: the command ends at once and says how to go on."""

from __future__ import annotations

import signal

import pytest

from tests.end_to_end.command import running
from tests.end_to_end.sweeps import TREE, sweep_file
from tests.long import of_make_chaos


@pytest.mark.parametrize(
    ("number", "phase"),
    [
        pytest.param(signal.SIGINT, "teachers", id="ctrl-c"),
        pytest.param(signal.SIGTERM, "teachers", id="terminated"),
        pytest.param(signal.SIGINT, "precompute", id="ctrl-c while slots sleep", marks=of_make_chaos),
    ],
)
@pytest.mark.slow
def test_an_interrupted_sweep_says_how_to_go_on(tmp_path, number, phase, request):
    epochs = 500 if phase == "teachers" else 1
    path = sweep_file(tmp_path, teachers={**TREE["teachers"], "epochs": epochs})
    store = tmp_path / "store"
    begun = "teachers/*/checkpoint.pt" if phase == "teachers" else "transfer/*"
    # A job joins its cluster; at a terminal the command starts Ray, and ends it.
    job = number == signal.SIGTERM
    joined = {"RAY_ADDRESS": request.getfixturevalue("ray_cluster")} if job else {}
    with running(tmp_path, "sweep", str(path), **joined) as command:
        command.until(lambda: list(store.glob(begun)))
        command.send(number)
        ended = command.end()
    assert ended.code == 130
    assert ended.err.strip().splitlines()[-1].startswith("interrupted: finished work is kept"), ended.output
    assert "Traceback" not in ended.output
    # It did not continue as if all were done.
    assert not list((store / "runs").glob("*"))
