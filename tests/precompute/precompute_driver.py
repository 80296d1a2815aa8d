"""A driver in a separate process for the kill test: `python -m tests.precompute.precompute_driver ADDRESS STORE`.

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
import torch

from raykd.needs import CHAIN, signals_to_store
from raykd.precompute.plan import Placement, PrecomputePlan, PrecomputeTask, precompute
from raykd.precompute.shard_writer import TeacherHandle
from raykd.signals import Need, Sizes
from raykd.storage.store import Storage
from raykd.transfer import Text
from tests.transfer.samples import TAGS, FakeTeacher

SHARD, SHARDS, TEACHERS = 4, 7, ("en", "de")
NEEDS = signals_to_store([*map(Need, CHAIN), Need("kbest", 2)], CHAIN)


def texts() -> dict[str, Text]:
    """Sentences with the row as the first word."""
    return {
        name: Text.from_tokens([[str(row), name, *["word"] * (row % 3)] for row in range(SHARD * SHARDS)])
        for name in TEACHERS
    }


class SlowTeacher(FakeTeacher):
    """A slow teacher with a log of sentences.

    In some scenarios it fails at row 13 of "de", or never ends with the last row.
    """

    def __init__(self, name: str, folder: Path, scenario: str):
        super().__init__(name)
        self.folder, self.scenario = folder, scenario

    def emit(self, sentences, token_budget):
        rows = [int(sentence[0]) for sentence in sentences if sentence != ["."]]
        if rows:
            with open(self.folder / "asked.jsonl", "a") as log:
                log.write(json.dumps({"teacher": self.name, "rows": rows, "pid": os.getpid()}) + "\n")
            time.sleep(0.1)
        if self.name == "de" and 13 in rows:
            self.fail()
        if self.scenario == "never-ends" and SHARD * SHARDS - 1 in rows:
            signal.pause()
        return super().emit(sentences, token_budget)

    def fail(self) -> None:
        flag = self.folder / "actor-died"
        if self.scenario == "actor-dies" and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.scenario == "disk-full":
            os.fsync = _full


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def load(store: Storage, teacher_id: str, device: torch.device) -> SlowTeacher:
    folder = Path(store.uri).parent
    return SlowTeacher(teacher_id, folder, (folder / "scenario").read_text())


def plan(store: Path) -> PrecomputePlan:
    loader = "tests.precompute.precompute_driver:load"
    tasks = tuple(
        PrecomputeTask(TeacherHandle(str(store), name, loader, Sizes(TAGS)), text, NEEDS)
        for name, text in texts().items()
    )
    return PrecomputePlan(str(store), tasks, shard_sentences=SHARD, token_budget=8)


def run(store: Path, scenario: str, *, actors: int = 2, slots_asleep: bool = False) -> tuple[int, list[int]]:
    """Rows computed by one precompute in the process, and the sentences of each range as it was reported."""
    (store.parent / "scenario").write_text(scenario)
    reported: list[int] = []
    outcome = precompute(
        plan(store),
        placement=Placement(actors=actors, cpus_per_actor=0.5, slots_asleep=slots_asleep),
        on_range=lambda row: reported.append(row["sentences"]),
    )
    return outcome.computed_shards, reported


if __name__ == "__main__":
    ray.init(address=sys.argv[1], log_to_driver=False)
    run(Path(sys.argv[2]), "never-ends")
