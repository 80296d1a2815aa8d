"""The processes of one run with several workers, for the tests: every world size in turn, met through a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from raykd.runs import evaluate
from raykd.runs.data import corpus_of, evaluation_part
from raykd.runs.distil import Worker
from raykd.runs.run import Run
from raykd.storage import Storage
from tests.runs.loops import distiller, weights_of

WORLDS = (2, 4)


def trained(storage: Storage, run: Run, worker: Worker) -> dict[str, Any]:
    """What one worker sees of a run in float64: every step's gradients, the weights, reports and predictions."""
    loop = distiller(storage, run, worker=worker, folder=f"{run.id}-{worker.world}", double=True)
    gradients, reports = [], []

    def watch(optimiser: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        gradients.append(torch.cat([p.grad.flatten() for p in parameters]))

    watching = register_optimizer_step_pre_hook(watch)
    try:
        loop.train(reports.append)
    finally:
        watching.remove()
    # Batches small enough that every worker gets some of them.
    evaluate.EVALUATION_TOKENS = 120
    dev = evaluation_part(storage.uri, run.corpus_id, run.vocabulary_id, "dev")
    scored = evaluate.score_part(
        loop.model, dev, corpus_of(storage.uri, run.corpus_id).tag_set, "accuracy", worker=worker
    )
    paths = evaluate.predict(loop.model, dev, worker=worker)
    return {
        "gradients": torch.stack(gradients), "weights": weights_of(loop.model), "scored": scored,
        "paths": [torch.from_numpy(path) for path in paths],
        "losses": [(r.kd_weight, r.loss, r.kd_loss, r.gold_loss) for r in reports],
    }  # fmt: skip


def work(rank: int, folder: str, store: str, runs: list[dict[str, Any]]) -> None:
    """Process `rank` of `max(WORLDS)`; each rank leaves what it saw in the folder."""
    torch.set_num_threads(1)
    for world in WORLDS:
        if rank >= world:
            continue
        meeting = f"file://{folder}/meeting-{world}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
        for number, plain in enumerate(runs):
            seen = trained(Storage(store), Run.from_plain(plain), Worker(rank, world))
            torch.save(seen, Path(folder, f"{number}-{world}-{rank}.pt"))
        dist.destroy_process_group()
