"""A local S3-compatible server, in memory: moto's."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tests.patience import until

REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "raykd", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": REGION}
"""Environment of the clients; the server takes any key."""


# What is not there is logged in colour.
_REQUEST = re.compile(r'"(\x1b\[[0-9;]*m)*(?P<method>[A-Z]+) (?P<target>\S+) HTTP')


@dataclass(frozen=True)
class Asked:
    """One answered request; `path` is without the bucket, `query` what comes after it."""

    method: str
    path: str
    query: str

    @property
    def kind(self) -> str:
        """The kind of the request: `GET`, `HEAD`, `PUT`, `LIST`, …."""
        lists = self.method == "GET" and "list-type" in self.query
        parts = "uploads" in self.query or "uploadId" in self.query
        return "LIST" if lists else "UPLOAD" if parts else self.method


class S3Server:
    """Started with one bucket, `raykd`."""

    def __init__(self, folder: Path):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._log = folder / "s3.log"
        self._read = 0
        command = [sys.executable, "-m", "moto.server", "-p", self.address.rpartition(":")[2]]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until(self._has_bucket, output=self._log.read_text)

    def _has_bucket(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            urlopen(Request(f"http://{self.address}/raykd", method="PUT")).close()
        except OSError:
            return False
        return True

    def uri(self, name: str) -> str:
        """A folder of the bucket, as raykd takes it."""
        return f"s3://raykd/{name}?endpoint_override={self.address}&scheme=http&region={REGION}"

    def asked(self) -> list[Asked]:
        """The requests since the last call: it logs each before it answers."""
        with self._log.open() as log:
            log.seek(self._read)
            lines = log.read()
            self._read = log.tell()
        matches = (_REQUEST.search(line) for line in lines.splitlines())
        targets = ((match["method"], match["target"].partition("?")) for match in matches if match)
        return [
            Asked(method, path.removeprefix("/raykd").strip("/"), query)
            for method, (path, _, query) in targets
        ]

    def stop(self) -> None:
        """End the server; what it held is gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
