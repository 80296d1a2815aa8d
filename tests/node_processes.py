"""Several local nodes of Ray, each a process of its own with an address, a home and a view of the disks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from raykd.cluster.environment import TELEMETRY_OFF
from tests.patience import comes, until

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ab" * 32}
GRACE_S = 20.0
"""Seconds after which a process that was told to end is killed."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextmanager
def process(log: Path, *command: object, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, and all that comes of it, which are gone at the end."""
    variables = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "XDG_CACHE_HOME") if name in os.environ
    }
    with log.open("ab") as file:
        started = subprocess.Popen(
            [str(word) for word in command], cwd=log.parent, env=variables | environment, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield started
    finally:
        started.terminate()
        if not comes(lambda: started.poll() is not None, seconds=GRACE_S):
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


class NodeProcesses:
    """The running nodes: the first has the cluster's head, and may be joined at `address`."""

    def __init__(self, folder: Path, **environment: str):
        self._folder, self._environment = folder, environment
        self._port, self.jobs_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self._port}"
        self._running = ExitStack()
        self._nodes: list[subprocess.Popen[bytes]] = []

    def add(self, *, cpus: int = 1, separate_ip: bool = True, before: str = "", **environment: str) -> Path:
        """Start a node, wait for it, and return its home folder.

        Args:
            cpus: CPUs of the node.
            separate_ip: If false, all nodes share one address, and a driver may join any of them.
            before: Shell commands executed first, in a mount namespace of the node.
            environment: Environment variables of the node.
        """
        number = len(self._nodes) + 1
        home = self._folder / f"node{number}"
        home.mkdir()
        head = [
            "--head",
            f"--port={self._port}",
            f"--dashboard-port={self.jobs_port}",
            "--include-dashboard=true",
        ]
        role = head if number == 1 else [f"--address={self.address}"]
        kernels = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # compiled into the image
        node = {
            "HOME": str(home), "XDG_CACHE_HOME": kernels, "RAYKD_CACHE": str(home / "cache"), "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT), **TELEMETRY_OFF,
            "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]), **self._environment, **environment,
        }  # fmt: skip
        # Nodes with one folder between them would remove each other's copies of a job's working directory.
        files = self._running.enter_context(
            tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True)
        )
        command = [
            BIN / "ray", "start", "--block", f"--num-cpus={cpus}", "--num-gpus=0",
            f"--object-store-memory={128 << 20}", *role,
            f"--node-ip-address=127.0.0.{number if separate_ip else 1}", f"--temp-dir={files}",
            # The agent that takes jobs has one port on every machine, which another Ray may have.
            f"--dashboard-agent-listen-port={free_port()}",
        ]  # fmt: skip
        if before:
            command = ["unshare", "-m", "sh", "-ec", f'{before}; exec "$@"', "sh", *command]
        log = home / "ray.log"
        self._nodes.append(self._running.enter_context(process(log, *command, **node)))
        if number == 1:
            until_open(self._port, log)
        else:
            until(lambda: "Ray runtime started" in log.read_text(), output=log.read_text)
        return home

    def pid(self, number: int) -> int:
        """The process of a node; whoever enters its mounts is on that node."""
        return self._nodes[number - 1].pid

    def kill(self, number: int) -> None:
        """`kill -9` of everything on a node, as when its machine goes away."""
        started = self._nodes[number - 1]
        family = [*psutil.Process(started.pid).children(recursive=True), psutil.Process(started.pid)]
        for process_ in family:
            try:
                process_.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family)

    def end(self) -> None:
        """End all nodes."""
        self._running.close()


@contextmanager
def node_processes(folder: Path, **environment: str) -> Iterator[NodeProcesses]:
    """No node yet; those that were started are gone at the end."""
    nodes = NodeProcesses(folder, **environment)
    try:
        yield nodes
    finally:
        nodes.end()


def until_open(port: int, log: Path) -> None:
    """Wait until something listens at the port."""

    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            return False
        return True

    until(listens, output=log.read_text)
