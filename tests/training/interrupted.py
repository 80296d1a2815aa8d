"""Kill a run at several moments, each time in a new process: `python -m tests.training.interrupted STORE RUN MOMENT…`.

RUN is a file with the run as JSON. The last process is not killed and finishes the run. Prints how each process ended.
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

from raykd.recipes.run import Run
from raykd.storage.layout import WEIGHTS
from raykd.training import execute as module
from raykd.training.epoch_report import EpochReport
from raykd.training.worker import Worker

CHECKPOINT_STEPS = 4
"""Optimiser steps between checkpoints inside an epoch."""


def killer(moment: str) -> Callable[[str], None]:
    """Kill the process at a moment.

    "step N" and "evaluation N" count from the start of the process, "report N" is the epoch over all stages, "weights"
    is after training, when the weights are about to be written.
    """

    def reach(now: str) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def watched(reach: Callable[[str], None]) -> Callable[[EpochReport], None]:
    """Calls `reach` at all steps, evaluation and report, and when the weights are about to be written."""
    steps, evaluations = iter(range(10**6)), iter(range(10**6))
    register_optimizer_step_post_hook(lambda *_: reach(f"step {next(steps)}"))
    score, write = module.score_part, module.Storage.write

    def score_part(*args: Any, **options: Any) -> Any:
        scored = score(*args, **options)
        reach(f"evaluation {next(evaluations)}")
        return scored

    def written(storage: Any, name: str, data: bytes) -> None:
        reach("weights" if name == WEIGHTS else name)
        write(storage, name, data)

    module.score_part, module.Storage.write = score_part, written
    return lambda epoch: reach(f"report {epoch.epoch}")


def execute(store: str, run: Run, moment: str) -> None:
    """The run in the current process, killed at `moment`."""
    training_plan_of = module.training_plan
    module.training_plan = lambda *of: replace(training_plan_of(*of), checkpoint_steps=CHECKPOINT_STEPS)
    module.execute_run(store, run, worker=Worker(), report=watched(killer(moment)))


def main(store: str, run: Run, moments: list[str]) -> None:
    """Forks before torch computes anything, so that every process starts as a new one would."""
    for moment in (*moments, "never"):
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            execute(store, run, moment)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        died = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "finished"
        print(json.dumps([moment, died]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Run.from_plain(json.loads(Path(sys.argv[2]).read_text())), sys.argv[3:])
