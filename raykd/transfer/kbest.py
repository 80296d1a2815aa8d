"""K best paths from stored emissions: always from the rounded ones, so that a later derivation gives the
same bytes. A teacher that is no chain tells its best path itself.

Decoding only adds and compares, sentence by sentence and token by token, so neither padding nor the
company of a batch changes a bit of it.

Shapes: N sentences of the shard, B of one bucket, P tokens of the shard, T time, Y tags, K best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch

from raykd.signals import path_dtype
from raykd.structures import Chain, kbest
from raykd.transfer.shard import Transitions, fixed, ragged, tokens_of


def buckets(lengths_N: np.ndarray, token_budget: int) -> list[slice]:
    """Cut sentences sorted by length into runs whose padded tokens stay within the budget.

    A single longer sentence is its own run. Raises ValueError when the lengths are not ascending.
    """
    if np.any(np.diff(lengths_N) < 0):
        raise ValueError("buckets are cut from sentences sorted by length")
    runs, first = [], 0
    for last, length in enumerate(lengths_N.tolist()):
        if last > first and (last + 1 - first) * length > token_budget:
            runs.append(slice(first, last))
            first = last
    return [*runs, slice(first, len(lengths_N))] if len(lengths_N) else []


def kbest_batch(emissions: pa.RecordBatch, said: Transitions, k: int, *, token_budget: int) -> pa.RecordBatch:
    """The columns of the K-best shard that belongs to an emission shard.

    Where a sentence has fewer than `k` paths, the paths that do not exist are 0 and their scores -inf.
    """
    lengths_N = emissions["length"].to_numpy()
    scores_PY = tokens_of(emissions, "emissions")
    ends = np.cumsum(lengths_N)
    paths_PK = np.empty((len(scores_PY), k), path_dtype(scores_PY.shape[1]))
    scores_NK = np.empty((len(lengths_N), k), np.float32)
    for run in buckets(lengths_N, token_budget):
        tokens = slice(int(ends[run.start] - lengths_N[run.start]), int(ends[run.stop - 1]))
        paths_PK[tokens], scores_NK[run] = _decode(scores_PY[tokens], lengths_N[run], said, k)
    columns = {"sentence": emissions["sentence"], "length": emissions["length"]}
    return pa.record_batch(columns | {"paths": ragged(lengths_N, paths_PK), "scores": fixed(scores_NK)})


def told_batch(tokens: pa.RecordBatch, tags: int, told: Sequence[tuple[np.ndarray, float]]) -> pa.RecordBatch:
    """The columns of the K-best shard (K = 1) that belongs to a shard of token marginals.

    told: path [T] and score of every sentence of the shard, in its order.
    """
    paths_P1 = np.concatenate([path for path, _ in told]).astype(path_dtype(tags))[:, None]
    scores_N1 = np.array([[score] for _, score in told], np.float32)
    columns = {"sentence": tokens["sentence"], "length": tokens["length"]}
    paths = ragged(tokens["length"].to_numpy(), paths_P1)
    return pa.record_batch(columns | {"paths": paths, "scores": fixed(scores_N1)})


def _decode(
    scores_PY: np.ndarray, lengths_B: np.ndarray, said: Transitions, k: int
) -> tuple[np.ndarray, np.ndarray]:
    inside_BT = np.arange(lengths_B.max()) < lengths_B[:, None]
    emissions_BTY = np.zeros((*inside_BT.shape, scores_PY.shape[1]), np.float32)
    emissions_BTY[inside_BT] = scores_PY
    chain = Chain(
        torch.from_numpy(emissions_BTY),
        torch.from_numpy(lengths_B.astype(np.int64)),
        transitions=torch.from_numpy(np.array(said.transitions_YY)),
        start=torch.from_numpy(np.array(said.start_Y)),
        end=torch.from_numpy(np.array(said.end_Y)),
    )
    paths_BKT, scores_BK = kbest(chain, k)
    paths_BTK = paths_BKT.transpose(1, 2).numpy()
    return paths_BTK[inside_BT], scores_BK.numpy()
