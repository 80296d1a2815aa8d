"""Faults against a real sweep, which must end like the undisturbed one.

The trials, scores, weights and the front must be the same, and the store without damage.

`python -m tests.chaos.faults SEED KILLS` prints what was done and how it ended, as JSON, and fails where one differs.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from mlflow.tracking import MlflowClient

from raykd.cli.sweep import SOME_FAILED
from raykd.errors import StoreError
from raykd.figures.front import pareto_front
from raykd.figures.table import OBJECTIVES
from raykd.storage.store import Storage
from raykd.sweep.doctor import examine_store
from raykd.sweep.records import SweepRecords
from tests.chaos.full_disk import FULL_DISK
from tests.end_to_end.command import ROOT, Command, Ended, run, running
from tests.end_to_end.sweeps import TREE, sweep_file
from tests.mlflow_server import MlflowServer
from tests.stored import stored

LONGEST_S = 18.0
"""Until the next kill, at most: half of what an undisturbed sweep takes."""
NAME = TREE["name"]
SECTIONS: dict[str, Any] = {
    "student": {**TREE["student"], "embedding_dim": {"choice": [8, 12, 16]}},
    "objective": {"choice": [{"kind": "structural", "temperature": {"float": [1.0, 4.0]}}, {"kind": "posterior"}]},
    "search": {"trials": 6, "sampler": "tpe", "seed": 3},
    "resources": {"concurrency": 2, "precompute_workers": 1},
}  # fmt: skip


class Attempt:
    """A folder with a disturbed sweep."""

    def __init__(self, parent: Path, name: str, undisturbed: Path | None = None, **sections: Any):
        self.folder = parent / name
        self.folder.mkdir()
        self.file = sweep_file(self.folder, **{**SECTIONS, **sections})
        self.store = self.folder / "store"
        self.ends: Counter[int] = Counter()
        if undisturbed is not None:
            # Latency is measured, and what is measured differs: with it a search would go another way.
            shutil.copytree(undisturbed / "store/costs", self.store / "costs")

    def sweep(self, *words: str, **environment: str) -> Ended:
        """Run the sweep to the end; begun again, if it was begun."""
        with self.running("--resume", *words, **environment) as command:
            return self.checked(command.end())

    @contextmanager
    def running(self, *words: str, **environment: str) -> Iterator[Command]:
        """The running sweep; none of its processes is left at the end."""
        with running(self.folder, "sweep", str(self.file), *words, **environment) as command:
            yield command

    def checked(self, ended: Ended) -> Ended:
        """Whatever went wrong was said in a sentence."""
        assert "Traceback" not in ended.output, ended.output
        self.ends[ended.code] += 1
        return ended

    def codes(self) -> dict[str, int]:
        """Number of ends of the sweep by exit code."""
        return {str(code): count for code, count in sorted(self.ends.items())}

    def outcome(self) -> dict[str, Any]:
        """The results independent of faults."""
        storage = Storage(str(self.store))
        examination = examine_store(storage)
        assert not examination.damages, examination.damages
        trials = [record.trial for record in SweepRecords(storage, NAME).load()]
        weights = {
            path.parent.name: stored(path)["weights_sha256"] for path in self.store.glob("runs/*/result.json")
        }
        return {
            "trials": [(t.number, t.state, t.role, dict(t.settings), t.run_ids, t.scores.to_plain()) for t in trials],
            "weights": {run_id: weights[run_id] for trial in trials for run_id in trial.run_ids},
            "front": [trial.number for trial in pareto_front(trials, OBJECTIVES)],
        }  # fmt: skip


def undisturbed(parent: Path, **sections: Any) -> tuple[Path, dict[str, Any]]:
    """The folder of an undisturbed sweep, and its outcome."""
    attempt = Attempt(parent, "undisturbed", **sections)
    ended = attempt.sweep()
    assert ended.code == 0, ended.output
    return attempt.folder, attempt.outcome()


def kills(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int, count: int) -> dict[str, Any]:
    """`kill -9` at random instants: of the driver, of workers, of Ray's own processes; begun again until it ends."""
    drawn, killed, ends, leftovers, sweeps = random.Random(seed), Counter(), Counter(), Counter(), 0
    while killed.total() < count:
        attempt = Attempt(parent, f"kills-{seed}-{sweeps}", whole[0])
        code: int | None = None
        while code != 0:
            with attempt.running("--resume") as command:
                while killed.total() < count and _lives(command, drawn.uniform(0.5, LONGEST_S)):
                    victim = _kill(command, drawn)
                    killed[victim] += 1
                    if victim == "driver":
                        break
                ended, remains = command.end_and_left()
                # Ray's own processes end by themselves when a driver is gone; one killed in its first second may not.
                leftovers.update(line.split()[0] for line in remains)
                code = attempt.checked(ended).code
            assert code in (0, -9, SOME_FAILED), ended.output
        assert attempt.outcome() == whole[1]
        sweeps, ends = sweeps + 1, ends + attempt.ends
        shutil.rmtree(attempt.folder)
    codes = {str(code): n for code, n in sorted(ends.items())}
    return {"killed": dict(killed), "sweeps": sweeps, "exit codes": codes, "left after 40 s": dict(leftovers)}


def _lives(command: Command, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while command.runs() and time.monotonic() < deadline:
        time.sleep(0.05)
    return command.runs()


def _kill(command: Command, drawn: random.Random) -> str:
    """Kill one; gives what it was. Before there are workers it is the driver."""
    victim = drawn.choices(["driver", "worker", "ray"], [5, 4, 1])[0]
    processes = {
        "worker": command.named("ray::"),
        "ray": command.containing("/raylet/raylet", "gcs_server"),
    }.get(victim, [])
    if not processes:
        command.kill()
        return "driver"
    try:
        drawn.choice(processes).kill()
    except psutil.NoSuchProcess:
        return f"{victim} (gone)"
    return victim


def full_disk(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int) -> dict[str, Any]:
    """The disk has room for a part of the store only, of two sizes; then for all."""
    size = sum(path.stat().st_size for path in (whole[0] / "store").rglob("*") if path.is_file())
    attempt = Attempt(parent, "disk", whole[0])
    (attempt.folder / "sitecustomize.py").write_text(FULL_DISK)
    for share in (0.4, 0.8):
        room = {"CHAOS_ROOM": str(int(share * size)), "CHAOS_STORE": str(attempt.store)}
        ended = attempt.sweep(**room, PYTHONPATH=f"{attempt.folder}:{ROOT}")
        assert ended.code in (4, 7, SOME_FAILED, 9), ended.output
        assert "no space left on device" in ended.output
    assert attempt.sweep().code == 0
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def flipped_bits(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int) -> dict[str, Any]:
    """One flipped bit in a file of all kinds in the store; the doctor repairs it."""
    attempt = Attempt(parent, "bits")
    shutil.rmtree(attempt.store, ignore_errors=True)
    shutil.copytree(whole[0] / "store", attempt.store)
    drawn, kinds = random.Random(seed), {}
    for path in sorted(attempt.store.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".arrow", ".safetensors"):
            kind = (
                path.relative_to(attempt.store).parts[0],
                path.name if path.suffix == ".json" else path.suffix,
            )
            kinds[kind if path.name[0] not in "0123456789" else (kind[0], "trial")] = path
    # What is measured again would be another: costs are checked in sweep/test_doctor.py.
    flipped = [path for (folder, _), path in kinds.items() if folder != "costs"]
    for path in flipped:
        data = bytearray(path.read_bytes())
        data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        path.write_bytes(data)
    assert attempt.sweep().code == StoreError.exit_code
    assert run(attempt.folder, "doctor", str(attempt.store), "--repair").code == 0
    assert attempt.sweep().code == 0
    assert attempt.outcome() == whole[1]
    return {"files": len(flipped), "exit codes": attempt.codes()}


def two_drivers(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int) -> dict[str, Any]:
    """Two at once on one sweep: one is refused by the other's name."""
    attempt = Attempt(parent, "two", whole[0])
    with attempt.running("--resume") as first_driver, attempt.running("--resume") as second_driver:
        ends = [attempt.checked(command.end()) for command in (first_driver, second_driver)]
    assert sorted(ended.code for ended in ends) == [0, StoreError.exit_code], ends
    (refused,) = (ended for ended in ends if ended.code)
    assert "works on this sweep" in refused.err
    assert attempt.outcome() == whole[1]
    return {"exit codes": attempt.codes()}


def server_away(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int) -> dict[str, Any]:
    """The tracking server dies while the sweep runs, and is back later: it shows every trial in the end."""
    server = MlflowServer(parent)
    server.start()
    try:
        attempt = Attempt(parent, "away", whole[0], tracking={"uri": f"http://{server.address}"})
        with attempt.running() as command:
            command.until(lambda: list(attempt.store.glob("teachers/*/checkpoint.pt")))
            server.stop()
            command.until(lambda: "the sweep goes on without it" in command.output())
            server.start()
            ended = attempt.checked(command.end())
        assert ended.code == 0, ended.output
        if "not shown in MLflow" in ended.output:  # it ended before the server was back
            assert attempt.sweep().code == 0
        _shows_all(server, whole)
        assert attempt.outcome() == whole[1]
        return {"exit codes": attempt.codes()}
    finally:
        server.stop()


def server_hangs(parent: Path, whole: tuple[Path, dict[str, Any]], seed: int) -> dict[str, Any]:
    """The tracking server accepts connections and answers nothing, from the middle of the sweep to its end.

    The sweep ends well without it. Once the server is back, `--resume` shows every trial.
    """
    folder = parent / "hanging server"  # the other one has runs of its own
    folder.mkdir()
    server = MlflowServer(folder)
    server.start()
    try:
        attempt = Attempt(parent, "hangs", whole[0], tracking={"uri": f"http://{server.address}"})
        with attempt.running() as command:
            command.until(lambda: list(attempt.store.glob("teachers/*/checkpoint.pt")))
            server.hang()
            ended = attempt.checked(command.end())
        assert ended.code == 0, ended.output
        assert "the sweep goes on without it" in ended.output
        assert "not shown in MLflow" in ended.output
        assert attempt.outcome() == whole[1]
        server.go_on()
        assert attempt.sweep().code == 0
        _shows_all(server, whole)
        assert attempt.outcome() == whole[1]
        return {"exit codes": attempt.codes()}
    finally:
        server.stop()


def _shows_all(server: MlflowServer, whole: tuple[Path, dict[str, Any]]) -> None:
    client = MlflowClient(f"http://{server.address}")
    experiment = client.get_experiment_by_name(NAME)
    assert experiment is not None
    shown_runs = client.search_runs([experiment.experiment_id])
    names = [run.info.run_name or "" for run in shown_runs]
    assert {run.info.status for run in shown_runs} == {"FINISHED"}, names
    # Besides there are the sweep and its teachers.
    assert sum(name.startswith("#") for name in names) == len(whole[1]["trials"]), names


OTHERS: tuple[Callable[..., dict[str, Any]], ...] = (
    full_disk, flipped_bits, two_drivers, server_away, server_hangs,
)  # fmt: skip


def main(seed: int, count: int) -> dict[str, Any]:
    """All faults, each against its own copy; how each ended."""
    with tempfile.TemporaryDirectory(prefix="raykd-chaos-") as folder:
        parent, started = Path(folder), time.monotonic()
        whole = undisturbed(parent)
        report: dict[str, Any] = {"undisturbed_s": round(time.monotonic() - started, 1)}
        faults: dict[str, Callable[[], dict[str, Any]]] = {"kills": lambda: kills(parent, whole, seed, count)}
        faults |= {
            fault_function.__name__: partial(fault_function, parent, whole, seed) for fault_function in OTHERS
        }
        for name, fault in faults.items():
            began = time.monotonic()
            report[name] = {**fault(), "seconds": round(time.monotonic() - began, 1)}
            print(name, json.dumps(report[name]), file=sys.stderr, flush=True)
        return {**report, "minutes": round((time.monotonic() - started) / 60, 1)}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2])), indent=2))
