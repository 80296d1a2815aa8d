"""The Slurm script, run with stand-ins of Slurm's commands that start what they are given: two nodes of Ray, here."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psutil

from tests.long import of_make_chaos

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "cluster/slurm/raykd.sbatch"
ENDS_WITH = 8
COMMANDS = {
    "srun": 'echo "srun $*" >> calls; while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "scontrol": 'echo "first\nsecond"',
    "hostname": "echo 127.0.0.1",
    "raykd": 'exec python raykd.py "$@"',
}
# In place of the sweep: what it would find.
SWEEP = f"""
import json, sys
import psutil, ray
address = sys.argv[sys.argv.index("--address") + 1]
ray.init(address=address, log_to_driver=False)
nodes = [node["Resources"].get("CPU") for node in ray.nodes() if node["Alive"]]
raylets = [each for each in psutil.process_iter() if each.name() == "raylet"]
port = address[address.rindex(":"):]  # Ray shows another of the machine's addresses
started = [each for each in raylets if any(word.endswith(port) for word in each.cmdline())]
modes = [[each.environ().get("RAY_AUTH_MODE"), len(each.environ().get("RAY_AUTH_TOKEN", ""))] for each in started]
with open("seen.json", "w") as file:
    json.dump({{"arguments": sys.argv[1:], "cpus": nodes, "modes": modes}}, file)
ray.shutdown()
sys.exit({ENDS_WITH})
"""


def test_the_script_is_sound():
    subprocess.run(["bash", "-n", SCRIPT], check=True)
    text = SCRIPT.read_text()
    assert "ray stop" not in text  # it would end other jobs' Ray
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", SCRIPT], check=True)


def test_without_a_sweep_file_it_says_how(tmp_path):
    ended = subprocess.run(["bash", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "give a sweep file: sbatch raykd.sbatch sweeps/x.yaml\n")


@of_make_chaos
def test_two_nodes_are_there_before_the_sweep_begins_and_gone_after_it(tmp_path):
    for name, does in COMMANDS.items():
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(f"#!/bin/bash\n{does}\n")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "raykd.py").write_text(SWEEP)
    job = _free_job()
    slurm = {"SLURM_JOB_NODELIST": "[first,second]", "SLURM_JOB_ID": str(job), "SLURM_CPUS_PER_TASK": "1"}
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SLURM_"))}
    try:
        ended = subprocess.run(
            ["bash", SCRIPT, "sweeps/x.yaml", "--small"], cwd=tmp_path, env=env | slurm | {"PATH": path},
            capture_output=True, text=True,
        )  # fmt: skip
        assert ended.returncode == ENDS_WITH, ended.stdout + ended.stderr
        environment = json.loads((tmp_path / "seen.json").read_text())
        address = f"127.0.0.1:{20000 + job}"
        assert environment["arguments"] == [
            "sweep",
            "sweeps/x.yaml",
            "--small",
            "--resume",
            "--address",
            address,
        ]
        assert environment["cpus"] == [1.0, 1.0]
        assert environment["modes"] == [["token", 64]] * 2
        calls = (tmp_path / "calls").read_text()
        assert "--nodelist=second" in calls
        # The token is in no command line, which others on a node see.
        assert "TOKEN" not in calls
        assert not [line for line in _command_lines() if f"/tmp/ray-{job}/" in line]
    finally:
        shutil.rmtree(f"/tmp/ray-{job}", ignore_errors=True)


def _free_job() -> int:
    """A job number with a free port."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        if 20000 <= port < 40000:
            return port - 20000


def _command_lines() -> list[str]:
    lines = []
    for process in psutil.process_iter():
        try:
            lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return lines
