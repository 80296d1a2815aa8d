"""An S3-compatible server on this machine, in memory: moto's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "raykd", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": REGION}
"""What its clients need; it takes any key."""


class S3Server:
    """Started with one bucket, `raykd`."""

    def __init__(self, folder: Path):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "moto.server", "-p", self.address.rpartition(":")[2]]
        with (folder / "s3.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while True:
            try:
                urlopen(Request(f"http://{self.address}/raykd", method="PUT"), timeout=5).close()
                return
            except OSError:
                assert self._process.poll() is None, (folder / "s3.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)

    def uri(self, name: str) -> str:
        """A folder of the bucket, as raykd takes it."""
        return f"s3://raykd/{name}?endpoint_override={self.address}&scheme=http&region={REGION}"

    def stop(self) -> None:
        """End it; what it held is gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
