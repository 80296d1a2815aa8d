"""The real command in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.patience import comes, until

ROOT = str(Path(__file__).parents[2])
MARK = "RAYKD_TEST_MARK"
# Ray ends what it started when its driver is gone; it takes some seconds to notice.
GRACE = 40.0
# Actors that Ray Data starts once for a whole cluster; they live as long as it.
OF_THE_CLUSTER = ("ray::_StatsActor", "ray::ActorLocationTracker", "ray::_AutoscalingCoordinatorActor")
# Workers of a cluster have none of this process' environment but what raykd passes on. A node that is busy for long is
# none with a fault.
PROGRAM = f"""
import os
from raykd.cluster import environment
from raykd.cluster import nodes
nodes.ANSWER_S = 1200.0
passed_on = {{name: os.environ[name] for name in ("{MARK}", "PYTHONPATH") if name in os.environ}}
environment.RAY = {{**environment.RAY, **passed_on}}
from raykd.cli.main import main
main()
"""


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        return self.out + self.err


class Command:
    """A running `raykd …`."""

    def __init__(self, folder: Path, *words: str, **environment: str):
        self.mark, self.grace = uuid.uuid4().hex, GRACE
        self._others = OF_THE_CLUSTER if environment.get("RAY_ADDRESS") else ()
        for name in ("RAY_ADDRESS", "RAY_JOB_CONFIG_JSON_ENV_VAR"):
            environment.setdefault(name, "")
        usual = {
            "RAYKD_CPUS": "2",
            "OMP_NUM_THREADS": "1",
            "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "1200",
            "COLUMNS": "140",
            MARK: self.mark,
            "PYTHONPATH": ROOT,
        }
        env = {name: value for name, value in (os.environ | usual | environment).items() if value}
        self._output = [folder / f"{self.mark}.{name}" for name in ("out", "err")]
        program = [sys.executable, "-c", PROGRAM, *words]
        with self._output[0].open("w") as out, self._output[1].open("w") as err:
            # What starts the tests may ignore Ctrl-C, and a child would inherit that.
            self._driver = subprocess.Popen(
                program, cwd=folder, env=env, stdout=out, stderr=err,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )  # fmt: skip

    def family(self) -> list[psutil.Process]:
        """The command and every process that came of it, also those whose parent is gone."""
        marked = [process for process in psutil.process_iter() if _marked(process, self.mark)]
        return [process for process in marked if not _line(process).startswith(self._others)]

    def named(self, name: str) -> list[psutil.Process]:
        """Those of the family whose command line begins so: Ray names its workers after what they do."""
        return [process for process in self.family() if _line(process).startswith(name)]

    def containing(self, *parts: str) -> list[psutil.Process]:
        """Those of the family whose command line has one of the parts."""
        return [process for process in self.family() if any(part in _line(process) for part in parts)]

    def runs(self) -> bool:
        """True until the command has ended."""
        return self._driver.poll() is None

    def until(self, event: Callable[[], object]) -> None:
        """Wait until `event` is true, or fail with what the command printed."""

        def comes_while_it_runs() -> bool:
            runs = self.runs()
            met = bool(event())
            assert met or runs, f"it ended before that:\n{self.output()}"
            return met

        until(comes_while_it_runs, output=self.output)

    def kill(self) -> None:
        """`kill -9` of the driver alone."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the driver alone."""
        self._driver.send_signal(number)

    def output(self) -> str:
        """The output until now."""
        return self._ended().output

    def end(self) -> Ended:
        """Wait for the end, and that no process is left."""
        ended, remaining = self.end_and_left()
        assert not remaining, f"left behind: {remaining}"
        return ended

    def end_and_left(self) -> tuple[Ended, list[str]]:
        """Wait for the end; and what was left some time after it, which is killed."""
        try:
            until(lambda: not self.runs(), output=self.output)
            comes(lambda: not self.family(), seconds=self.grace)
            lines = [_line(process).strip() for process in self.family()]
        finally:
            self.kill_all()
        return self._ended(), lines

    def kill_all(self) -> None:
        """End whatever is left, each by its id."""
        for process in self.family():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._driver.wait()

    def _ended(self) -> Ended:
        out, err = (path.read_text() for path in self._output)
        return Ended(self._driver.poll() or 0, out, err)


@contextmanager
def running(folder: Path, *words: str, **environment: str) -> Iterator[Command]:
    """The command; whatever happens, none of its processes is left at the end."""
    command = Command(folder, *words, **environment)
    try:
        yield command
    finally:
        command.kill_all()


def run(folder: Path, *words: str, **environment: str) -> Ended:
    """The command from its start to its end."""
    with running(folder, *words, **environment) as command:
        return command.end()


def stamps(folder: Path, *parts: str) -> dict[str, tuple[int, int]]:
    """Every file below the parts of a folder, with what changes when it is written again."""
    files = [path for part in parts for path in (folder / part).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
        if not path.name.startswith(".")
    }


def _marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
