"""Joining and starting clusters: access to the cluster, and clusters that do not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import raykd.cluster.connection as cluster_module
from raykd.cluster.connection import connected
from raykd.errors import PlacementError


@pytest.mark.timeout(60)  # Ray would try for minutes
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"])
def test_a_cluster_that_does_not_answer_is_refused_at_once(monkeypatch, address):
    monkeypatch.setattr(cluster_module.ray, "is_initialized", lambda: False)
    with pytest.raises(PlacementError, match=f"no Ray cluster answers at {address}"), connected(address):
        pass


PROGRAM = """
import json, os, sys
import psutil, ray
from raykd.cluster.connection import connected
with connected():
    family = psutil.Process().children(recursive=True)
    mine = {process.pid for process in family} | {os.getpid()}
    print(json.dumps({
        "address": ray.get_runtime_context().gcs_address,
        "listens": sorted({c.laddr.ip for c in psutil.net_connections() if c.status == "LISTEN" and c.pid in mine}),
        "arguments": [" ".join(process.cmdline()) for process in family],
        "token": os.environ["RAY_AUTH_TOKEN"],
    }), flush=True)
    sys.stdin.read()
"""
JOINS = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False)
print("joined", ray.cluster_resources()["CPU"])
"""


@pytest.mark.slow
def test_ray_on_this_machine_listens_here_alone_and_lets_in_only_who_has_its_token(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # Ray tries the machine's own address in place of the loopback's, where nobody listens, unless it is told not to.
    loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    home = {**environment, **loopback, "HOME": str(tmp_path), "PYTHONPATH": os.getcwd(), "RAYKD_CPUS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    owner = subprocess.Popen([sys.executable, "-c", PROGRAM], env=home, text=True, **pipes)
    try:
        address = json.loads(owner.stdout.readline())
        assert {ip.removeprefix("::ffff:") for ip in address["listens"]} == {"127.0.0.1"}
        assert not [line for line in address["arguments"] if address["token"] in line], (
            "anybody may read a command line"
        )
        join = [sys.executable, "-c", JOINS, address["address"]]
        # Other processes of this machine: with no token, without authentication, and with a token that they made up.
        tokens = ({}, {"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64})
        outsiders = [
            subprocess.Popen(
                join, env=home | token, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for token in tokens
        ]
        for outsider in outsiders:
            out, err = outsider.communicate()
            assert outsider.returncode != 0
            assert "joined" not in out
            assert "authentication" in err.lower()
        owner_environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": address["token"]}
        answer = subprocess.run(
            join, env=home | owner_environment, capture_output=True, text=True, check=True
        )
        assert "joined 1" in answer.stdout
    finally:
        owner.communicate("")
    assert owner.returncode == 0
    assert not (tmp_path / ".ray").exists(), "no token is left in the home folder"


def test_ray_that_starts_too_slowly_is_tried_again_and_then_one_sentence(monkeypatch):
    attempts = []

    def slow(**options):
        attempts.append(options)
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr("ray.init", slow)
    with pytest.raises(PlacementError, match="timed out during startup"), connected():
        pass
    assert len(attempts) == 2


WITHOUT_DASHBOARD = """
import ray
from raykd.cluster.connection import connected
with connected() as cluster:
    print(cluster.dashboard, ray.get(ray.remote(lambda: 7).remote()))
"""


@pytest.mark.slow
def test_ray_whose_dashboard_does_not_start_is_started_without(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    impatient = {"RAY_DASHBOARD_STARTUP_TIMEOUT_S": "0", "RAYKD_CPUS": "1", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", WITHOUT_DASHBOARD]
    process = subprocess.run(
        command, env=environment | impatient | {"HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "False 7\n"


@pytest.mark.slow
def test_ray_that_does_not_start_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    program = "from raykd.cluster.connection import connected\nwith connected(): pass"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"RAY_TMPDIR": str(tmp_path / "file"), "PYTHONPATH": os.getcwd()},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (
        ended.stderr.strip()
        .splitlines()[-1]
        .startswith("raykd.errors.PlacementError: Ray does not start on this machine (")
    )


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_a_temporary_folder_whose_path_is_too_long_is_named(tmp_path, variable):
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    program = "from raykd.cluster.connection import connected\nwith connected(): pass"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment | {variable: str(folder), "PYTHONPATH": os.getcwd()},
        capture_output=True, text=True,
    )  # fmt: skip
    last = ended.stderr.strip().splitlines()[-1]
    assert f"the path of its temporary folder, {folder} (${variable}), has {len(str(folder))} bytes" in last
    assert last.endswith("set RAY_TMPDIR to a folder with a short path: RAY_TMPDIR=/tmp")
