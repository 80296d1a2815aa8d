"""Decode a part of the corpus and score it per language."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from raykd.corpora.batching import plan_batches
from raykd.corpora.tags import TagSet
from raykd.metrics import TagMetric, evaluate_tags
from raykd.runs.data import Part
from raykd.runs.distil import Worker
from raykd.structures import viterbi

EVALUATION_TOKENS = 8000


def predict(model: nn.Module, part: Part, *, worker: Worker) -> list[np.ndarray]:
    """The best path of every sentence, decoded by all workers together; every worker gets the whole list."""
    model.eval()
    plan = plan_batches(
        part.text.piece_lengths, batch_tokens=EVALUATION_TOKENS, seed=0, epoch=0, shuffle=False
    )
    found: list[tuple[int, np.ndarray]] = []
    with torch.inference_mode():
        for rows in plan[worker.rank :: worker.world]:
            batch = part.text.gather(rows).to(worker.device)
            paths_BT = viterbi(model(batch))[0].cpu().numpy()
            found += [
                (int(row), path[:n])
                for row, path, n in zip(rows, paths_BT, part.text.lengths[rows], strict=True)
            ]
    if worker.world > 1:
        gathered: list[Any] = [None] * worker.world
        dist.all_gather_object(gathered, found)
        found = [item for items in gathered for item in items]
    return [path for _, path in sorted(found, key=lambda item: item[0])]


def score_part(
    model: nn.Module,
    part: Part,
    tag_set: TagSet,
    metric: TagMetric,
    *,
    worker: Worker,
    targets: Collection[str] = (),
) -> dict[str, Any]:
    """Score of `model` on `part`: mean and standard deviation over source languages, the same over `targets`,
    and each language's own."""
    predicted = [tag_set.decode(path) for path in predict(model, part, worker=worker)]
    gold = part.tags.lists(tag_set.tags)
    scores = asdict(evaluate_tags(metric, gold, predicted, list(part.languages), targets=targets))
    # As JSON gives it back: a result that was found is the result that was made.
    return scores | {"targets": list(scores["targets"])}
