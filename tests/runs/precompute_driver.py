"""A driver of its own process for the kill tests: `python -m tests.runs.precompute_driver STORE=SCENARIO …`.

STORE/../asked.jsonl collects, from all actors, which rows a teacher was asked for, and by which process.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

import ray

from raykd.errors import RaykdError
from raykd.runs.precompute import Placement, PrecomputePlan, PrecomputeTask, precompute
from raykd.runs.shard_writer import TeacherHandle
from raykd.storage import Storage
from raykd.transfer import Text
from tests.transfer.samples import TAGS, FakeTeacher

SHARD, SHARDS, TEACHERS = 4, 7, ("en", "de")


def texts() -> dict[str, Text]:
    """Sentences whose first word is their row."""
    return {
        name: Text.of([[str(row), name, *["word"] * (row % 3)] for row in range(SHARD * SHARDS)])
        for name in TEACHERS
    }


class SlowTeacher(FakeTeacher):
    """Takes its time, writes down what it is asked, and may meet with an accident at row 13 of "de"."""

    def __init__(self, name: str, folder: Path, accident: str):
        super().__init__(name)
        self.folder, self.accident = folder, accident

    def emit(self, sentences, token_budget):
        rows = [int(sentence[0]) for sentence in sentences]
        with open(self.folder / "asked.jsonl", "a") as log:
            log.write(json.dumps({"teacher": self.name, "rows": rows, "pid": os.getpid()}) + "\n")
        time.sleep(0.1)
        if self.name == "de" and 13 in rows:
            self.meet()
        return super().emit(sentences, token_budget)

    def meet(self) -> None:
        flag = self.folder / "accident-happened"
        if self.accident == "actor-dies" and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.accident == "disk-full":
            os.fsync = _full


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def load(store: Storage, teacher_id: str) -> SlowTeacher:
    folder = Path(store.uri).parent
    return SlowTeacher(teacher_id, folder, (folder / "scenario").read_text())


def plan(store: Path) -> PrecomputePlan:
    loader = "tests.runs.precompute_driver:load"
    tasks = tuple(
        PrecomputeTask(TeacherHandle(str(store), name, loader, TAGS), text) for name, text in texts().items()
    )
    return PrecomputePlan(str(store), tasks, k=2, shard_sentences=SHARD, token_budget=8)


def run(store: Path, scenario: str, *, actors: int | None = None) -> dict:
    """What one precompute came to, as plain data."""
    (store.parent / "scenario").write_text(scenario)
    told = []
    try:
        done = precompute(
            plan(store),
            placement=Placement(actors=actors),
            on_shard=lambda *progress: told.append(progress),
        )
    except RaykdError as error:
        return {"error": type(error).__name__, "message": str(error), "told": told}
    return {"computed": done.computed_shards, "told": told}


def main(*scenes: str) -> None:
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    for store, scenario in (scene.split("=") for scene in scenes):
        actors = 9 if scenario == "too-many-actors" else None
        print(json.dumps(run(Path(store), scenario, actors=actors)), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
