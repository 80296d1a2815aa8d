"""Faults of nodes, against a real sweep on several node processes: it ends as on one, undisturbed.

`python -m tests.chaos.nodes` prints how each ended, as JSON, and fails where one differs. Needs root: the nodes have
mounts of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.chaos.faults import Attempt, undisturbed
from tests.chaos.full_disk import FULL_DISK
from tests.end_to_end.command import ROOT, Command, Ended
from tests.node_processes import TOKEN, NodeProcesses, node_processes

Whole = tuple[Path, dict[str, Any]]
LEFT_OUT = "gets no work of this sweep"
LONG: dict[str, Any] = {"schedule": {"epochs": 40, "anneal_horizon": 40}}
"""Longer than the slot of the other node may take to start: each node has to train students before it is disturbed."""
GRACE = 2.0
"""Seconds in which the remains of Ray on this machine may end with the nodes."""


def swept(
    nodes: NodeProcesses,
    attempt: Attempt,
    disturb: Callable[[Command], None] = lambda command: None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """The sweep from the first node, disturbed while it runs. Actors of Ray's own stay as long as the cluster."""
    with attempt.running("--resume", RAY_ADDRESS=nodes.address, **TOKEN, **(environment or {})) as command:
        command.grace = GRACE
        disturb(command)
        ended, _ = command.end_and_left()
    return attempt.checked(ended)


def store_missing(parent: Path, whole: Whole) -> dict[str, Any]:
    """One of two nodes has an empty folder in the place of the store."""
    attempt = Attempt(parent, "missing", whole[0], **LONG)
    with node_processes(attempt.folder, **TOKEN) as nodes:
        nodes.add()
        nodes.add(before=f"mount -t tmpfs none {attempt.store}")
        ended = swept(nodes, attempt)
    assert (ended.code, ended.output.count(LEFT_OUT)) == (0, 1), ended.output
    assert "is not the driver's there: mount it" in ended.output
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def store_lost(parent: Path, whole: Whole) -> dict[str, Any]:
    """The store disappears from one of two nodes while both train students.

    At the latest when its model is written, the run on that node fails.
    """
    return _replaced(Attempt(parent, "lost", whole[0], **LONG), whole, lambda: "mount -t tmpfs none")


def store_copied(parent: Path, whole: Whole) -> dict[str, Any]:
    """A copy replaces the store on one of two nodes while both train students.

    The run on that node ends well, with a result that is nowhere else.
    """
    attempt = Attempt(parent, "copied", whole[0], **LONG)
    copy, copied = attempt.folder / "copy", set[Path]()

    def mount() -> str:
        # Files come and go while they are copied.
        subprocess.run(["cp", "-r", str(attempt.store), str(copy)], check=False, capture_output=True)
        copied.update(copy.glob("runs/*/result.json"))
        return f"mount --bind {copy}"

    report = _replaced(attempt, whole, mount)
    lost = set(copy.glob("runs/*/result.json")) - copied
    assert lost, "no run ended there"
    return {**report, "runs that ended in the copy": len(lost)}


def _replaced(attempt: Attempt, whole: Whole, mount: Callable[[], str]) -> dict[str, Any]:
    """While both nodes train students, the second mounts something else in the place of the store."""
    with node_processes(attempt.folder, **TOKEN) as nodes:
        nodes.add()
        nodes.add(before="true")  # with mounts of its own

        def lose(command: Command) -> None:
            command.until(lambda: len(_begun(attempt.store)) > 1)
            inside = ["nsenter", "-t", str(nodes.pid(2)), "-m"]
            subprocess.run([*inside, *mount().split(), str(attempt.store)], check=True)

        ended = swept(nodes, attempt, lose)
    assert (ended.code, ended.output.count(LEFT_OUT)) == (0, 1), ended.output
    assert "is not the driver's there: mount it" in ended.output
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def disk_full(parent: Path, whole: Whole) -> dict[str, Any]:
    """One of two nodes has no room any more, while both train students."""
    files = [path for path in (whole[0] / "store").rglob("*") if path.is_file()]
    runs = [path for path in files if "runs" in path.parts]
    size = sum(path.stat().st_size for path in files if "sweeps" not in path.parts)
    free_space = size - sum(path.stat().st_size for path in runs) * 2 // 3
    attempt = Attempt(parent, "full", whole[0], **LONG)
    (attempt.folder / "sitecustomize.py").write_text(FULL_DISK)
    room = {"CHAOS_STORE": str(attempt.store), "CHAOS_ROOM": str(1 << 60)}
    with node_processes(attempt.folder, **TOKEN, **room) as nodes:
        nodes.add()
        nodes.add(CHAOS_ROOM=str(free_space))
        ended = swept(nodes, attempt, environment={**room, "PYTHONPATH": f"{attempt.folder}:{ROOT}"})
    assert (ended.code, ended.output.count(LEFT_OUT)) == (0, 1), ended.output
    assert "no space left on device" in ended.output
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def node_dies(parent: Path, whole: Whole) -> dict[str, Any]:
    """One of two nodes is killed while training students."""
    attempt = Attempt(parent, "dies", whole[0], **LONG)
    with node_processes(attempt.folder, **TOKEN) as nodes:
        nodes.add()
        nodes.add()

        def kill(command: Command) -> None:
            command.until(lambda: len(_begun(attempt.store)) > 1)
            nodes.kill(2)

        ended = swept(nodes, attempt, kill)
    assert ended.code == 0, ended.output
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def node_dies_in_precompute(parent: Path, whole: Whole) -> dict[str, Any]:
    """One of two nodes is killed while both compute transfer sets."""
    attempt = Attempt(
        parent, "precompute", whole[0], **LONG, resources={"concurrency": 2, "precompute_workers": 2}
    )
    with node_processes(attempt.folder, **TOKEN) as nodes:
        nodes.add()
        nodes.add()

        def kill(command: Command) -> None:
            command.until(lambda: _has(nodes, 2, "ShardWriter"))
            nodes.kill(2)

        ended = swept(nodes, attempt, kill)
    assert ended.code == 0, ended.output
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def _begun(store: Path) -> list[Path]:
    """The folders of the students in training: one for each slot, which are on one node each."""
    return [
        path.parent
        for path in store.glob("runs/*/checkpoint.pt")
        if not (path.parent / "result.json").exists()
    ]


def _has(nodes: NodeProcesses, number: int, part: str) -> bool:
    """True if a command line of the node's processes has the text."""
    for process in psutil.Process(nodes.pid(number)).children(recursive=True):
        try:
            if part in " ".join(process.cmdline()):
                return True
        except psutil.Error:
            continue
    return False


FAULTS: tuple[Callable[[Path, Whole], dict[str, Any]], ...] = (
    store_missing, store_lost, store_copied, disk_full, node_dies, node_dies_in_precompute,
)  # fmt: skip


def main(names: list[str]) -> dict[str, Any]:
    """All faults, or those that are named; how each ended."""
    assert os.geteuid() == 0, "nodes with mounts of their own: run it as root"
    with tempfile.TemporaryDirectory(prefix="raykd-chaos-") as folder:
        parent, started = Path(folder), time.monotonic()
        whole = undisturbed(parent, **LONG)
        report: dict[str, Any] = {"undisturbed_s": round(time.monotonic() - started, 1)}
        for fault in (
            fault_function for fault_function in FAULTS if not names or fault_function.__name__ in names
        ):
            began = time.monotonic()
            report[fault.__name__] = {**fault(parent, whole), "seconds": round(time.monotonic() - began, 1)}
            print(fault.__name__, json.dumps(report[fault.__name__]), file=sys.stderr, flush=True)
        return {**report, "minutes": round((time.monotonic() - started) / 60, 1)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:]), indent=2))
