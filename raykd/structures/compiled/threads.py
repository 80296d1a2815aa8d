"""Sharing the work on a batch among threads.

Threads are Python's, not numba's: the kernels release the interpreter lock, so a thread pool runs ranges of sentences
in parallel, without a threading layer that breaks after a fork, in a Ray actor or with a second caller. The number of
threads is torch's (`torch.get_num_threads`); with one there is no pool.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

WORTH_A_THREAD = 1_000_000  # multiplications: they take about as long as passing work to another thread
_pools: dict[int, ThreadPoolExecutor] = {}
# threads do not survive a fork; a child starts new ones
os.register_at_fork(after_in_child=_pools.clear)


def share_out(costs: np.ndarray, multiplications: float, work: Callable[[int, int], None]) -> None:
    """Call work(first, last) over all parts of a job, divided by relative costs; small jobs stay in this thread."""
    parts = len(costs)
    threads = 1 if multiplications < WORTH_A_THREAD else min(torch.get_num_threads(), parts)
    if threads <= 1:
        work(0, parts)
        return
    cumulative = np.cumsum(costs)
    edges = [0, *np.searchsorted(cumulative, cumulative[-1] * np.arange(1, threads) / threads), parts]
    ranges = [(int(a), int(b)) for a, b in pairwise(edges) if a < b]
    futures = [_pool(threads).submit(work, *part) for part in ranges[1:]]
    work(*ranges[0])
    for future in futures:
        future.result()


def _pool(threads: int) -> ThreadPoolExecutor:
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, thread_name_prefix="raykd-structures")
    return _pools[threads]
