"""A real local MLflow tracking server, which can be stopped and started again at the same address."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from tests.patience import until


class MlflowServer:
    """Serves the SQLite file `folder/mlflow.db`."""

    def __init__(self, folder: Path):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait for its first answer from the database: later ones are much faster."""
        port = self.address.rpartition(":")[2]
        command = [
            sys.executable, "-m", "mlflow", "server", "--port", port, "--workers", "1", "--artifacts-destination",
            str(self.folder / "files"), "--backend-store-uri", f"sqlite:///{self.folder / 'mlflow.db'}",
        ]  # fmt: skip
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        until(self._answers, output=(self.folder / "server.log").read_text)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "server.log").read_text()
        search = f"http://{self.address}/api/2.0/mlflow/experiments/search"
        try:
            urlopen(Request(search, b'{"max_results": 1}', {"Content-Type": "application/json"})).close()
        except OSError:
            return False
        return True

    def hang(self) -> None:
        """Accept connections from now on without an answer."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again, also what it was asked meanwhile."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def stop(self) -> None:
        """End the server with all processes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
