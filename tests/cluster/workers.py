"""The processes of one run with several workers, for the tests: every world size in turn, met through a file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.tasks import TASKS
from raykd.training import device, evaluate
from raykd.training.data import cached_corpus, encoded_part
from raykd.training.execute import training_plan
from raykd.training.worker import Worker
from raykd.transfer import windows
from raykd.transfer.windows import WINDOW_BYTES
from tests.training.loops import distiller, weights_of
from tests.training.projected import with_projection

WORLDS = (2, 4)


def trained(
    storage: Storage, run: Run, worker: Worker, *, projected: bool = False, window_bytes: int = WINDOW_BYTES
) -> dict[str, Any]:
    """Train a run in float64; return the gradients of all steps, the weights, reports and predictions of one worker.

    Args:
        storage: Store of the run.
        run: Run to train.
        worker: Rank of the worker and number of workers.
        projected: If true, the objective of the first stage has trainable parameters.
        window_bytes: Largest size of a window, in bytes.
    """
    windows.WINDOW_BYTES = window_bytes
    plan = training_plan(storage.uri, run)
    if projected:
        plan = replace(plan, stages=[with_projection(plan.stages[0]), *plan.stages[1:]])
    folder = f"{run.id}-{worker.world}"
    loop = distiller(storage, run, worker=worker, folder=folder, plan=plan, double=True)
    gradients, reports = [], []

    def watch(optimiser: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        gradients.append(torch.cat([_gradient(p).flatten() for p in parameters]))

    watching = register_optimizer_step_pre_hook(watch)
    try:
        loop.train(reports.append)
    finally:
        watching.remove()
        windows.WINDOW_BYTES = WINDOW_BYTES
    # Batches small enough that every worker gets some of them.
    device.CPU_PIECES = 120
    task, tag_set = TASKS[run.task], cached_corpus(storage.uri, run.corpus_id).tag_set
    dev = encoded_part(storage.uri, run, "dev")
    scored = evaluate.score_part(loop.model, dev, task, tag_set, worker=worker)
    paths = evaluate.predict(
        loop.model, dev.text, partial(task.form.best_labellings, dev.labels), worker=worker
    )
    return {
        "gradients": gradients, "weights": weights_of(loop.model),
        "scored": {group: dict(score.by_language) for group, score in scored.items()},
        "paths": [torch.from_numpy(path) for path in paths],
        "losses": [{"λ": r.kd_weight, "loss": r.loss, "held out": r.held_out_loss or 0.0, **r.losses} for r in reports],
    }  # fmt: skip


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach().clone()


def work(rank: int, folder: str, store: str, runs: list[tuple[dict[str, Any], bool, int]]) -> None:
    """Process `rank` of `max(WORLDS)`; each rank leaves what it saw in the folder."""
    torch.set_num_threads(1)
    for world in WORLDS:
        if rank >= world:
            continue
        meeting = f"file://{folder}/meeting-{world}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
        for number, (plain, projected, window_bytes) in enumerate(runs):
            run, worker = Run.from_plain(plain), Worker(rank, world)
            reports = trained(Storage(store), run, worker, projected=projected, window_bytes=window_bytes)
            torch.save(reports, Path(folder, f"{number}-{world}-{rank}.pt"))
        dist.destroy_process_group()
