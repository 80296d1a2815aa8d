"""A real local PostgreSQL server, which asks for a password and can be stopped and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until

USER, PASSWORD = "raykd", "CANARY/of:the@database"
SERVERS = "/usr/lib/postgresql/*/bin/initdb"
UNPRIVILEGED = ("postgres", "nobody")


class PostgresServer:
    """The files are in a separate folder: the server refuses to run as root, and is then another user's process."""

    def __init__(self, password: str = PASSWORD) -> None:
        self.password = password
        self._programs, self._as = _programs(), _user()
        self._folder = Path(tempfile.mkdtemp(prefix="raykd-postgres-"))
        password_file = self._folder / "password"
        password_file.write_text(password)
        if self._as:
            os.chown(self._folder, self._as["user"], self._as["group"])
            os.chown(password_file, self._as["user"], self._as["group"])
        options = [
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--no-sync",
            "--locale=C",
            "--encoding=UTF8",
        ]
        command = [self._programs / "initdb", *options, "--username", USER, "-D", self._folder / "data"]
        process = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, **self._as)
        assert process.returncode == 0, process.stderr
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The URI in a sweep file: `DB_PASSWORD` is a variable of the environment."""
        return f"postgresql://{USER}:${{DB_PASSWORD}}@{self.address}/postgres"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        host, _, port = self.address.partition(":")
        command = [
            self._programs / "postgres",
            "-D",
            "data",
            "-p",
            port,
            "-h",
            host,
            "-k",
            "",
            "-c",
            "fsync=off",
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdout=log, stderr=log, start_new_session=True, **self._as
            )
        ready = [self._programs / "pg_isready", "-q", "-h", host, "-p", port]
        running = self._process

        def takes_connections() -> bool:
            assert running.poll() is None, self.log()
            return subprocess.run(ready).returncode == 0

        until(takes_connections, output=self.log)

    def log(self) -> str:
        """The server's output."""
        return (self._folder / "log").read_text()

    def dump(self) -> str:
        """All stored text, as text."""
        host, _, port = self.address.partition(":")
        command = [self._programs / "pg_dump", "-h", host, "-p", port, "-U", USER, "--inserts", "postgres"]
        env = os.environ | {"PGPASSWORD": self.password}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    def stop(self) -> None:
        """End it, with all connections to it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """End it, and remove its files."""
        self.stop()
        shutil.rmtree(self._folder)


def _programs() -> Path:
    """The folder of the newest installed server; where there is none the test is skipped."""
    folders = [path.parent for path in Path("/").glob(SERVERS[1:]) if (path.parent / "postgres").exists()]
    if folders:
        return max(folders, key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    if on_path is None:
        pytest.skip("no PostgreSQL server is installed here: there is no initdb on PATH")
    return Path(on_path).resolve().parent


def _user() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return pytest.skip("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
