"""A run that is killed at several moments, each in a process of its own: `python -m tests.runs.interrupted STORE RUN`.

RUN is a file with the run as JSON. The last process is left alone and finishes it. Prints what became of each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from raykd.runs import execute as room
from raykd.runs.distil import EpochReport, Worker
from raykd.runs.run import Run

CHECKPOINT_STEPS = 4
# In the middle of the first epoch, between two checkpoints; at its end; after the dev score of the second, before
# that is saved; and when all is trained but the result not written.
MOMENTS = ("step 7", "report 0", "evaluation 1", "weights")


def killer(moment: str) -> Callable[[str], None]:
    """Kills this process when it is told the moment."""

    def tell(now: str) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return tell


def watched(tell: Callable[[str], None]) -> Callable[[EpochReport], None]:
    """Lets `tell` hear of every step, evaluation and report, and of the weights about to be written."""
    steps, evaluations = iter(range(10**6)), iter(range(10**6))
    register_optimizer_step_post_hook(lambda *_: tell(f"step {next(steps)}"))
    score, write = room.score_part, room.Storage.write

    def score_part(*args: Any, **options: Any) -> dict[str, Any]:
        scored = score(*args, **options)
        # The first epoch was scored by an earlier process.
        tell(f"evaluation {1 + next(evaluations)}")
        return scored

    def written(storage: Any, name: str, data: bytes) -> None:
        tell("weights" if name == room.WEIGHTS else name)
        write(storage, name, data)

    room.score_part, room.Storage.write = score_part, written
    return lambda epoch: tell(f"report {epoch.epoch}")


def execute(store: str, run: Run, moment: str) -> None:
    """The run in this process, killed at `moment`."""
    training_plan_of = room.training_plan_of
    room.training_plan_of = lambda run: replace(training_plan_of(run), checkpoint_steps=CHECKPOINT_STEPS)
    room.execute(store, run, worker=Worker(), report=watched(killer(moment)))


def main(store: str, run: Run) -> None:
    """Forks before torch computes anything, so that every process starts as a new one would."""
    for moment in (*MOMENTS, "never"):
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            execute(store, run, moment)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        died = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "finished"
        print(json.dumps([moment, died]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Run.from_plain(json.loads(Path(sys.argv[2]).read_text())))
