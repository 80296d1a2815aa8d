"""Plans of global batches: the sentences of a batch, the order of batches, and the share of a worker.

A plan depends on lengths, budget, seed and epoch alone, never on the number of workers: one worker or four take the
same steps. If the signals or features read with the text are larger than memory should hold, batches are planned window
by window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# Lengths are changed at random by up to this share before sorting, so that the same sentences are not together in
# every epoch, while there is little more padding than with exact sorting.
LENGTH_NOISE = 0.1

# In the place of a window's number: the order of the shards is drawn apart from the batches of each window.
_ORDER_OF_SHARDS = 2**32 - 1


def plan_batches(
    lengths: np.ndarray, *, batch_tokens: int, seed: int, epoch: int, shuffle: bool = True, window: int = 0
) -> list[np.ndarray]:
    """Plan the global batches of one epoch.

    With `shuffle`, sentences of similar length are combined at random and the batches are in random order, both drawn
    from (seed, epoch, window). Without, batches ascend in length and are the same in all epochs.

    Args:
        lengths: Tokens of each sentence, int [N].
        batch_tokens: Most tokens of a batch *with padding* (sentences × longest); a longer sentence is a batch of its
            own.
        seed: Seed of the run.
        epoch: Epoch, from 0.
        shuffle: False keeps the order of lengths.
        window: Number of the window (`plan_windows`).

    Returns:
        Arrays of indices into `lengths`, all indices exactly once.

    Raises:
        ValueError: A length or the budget is below 1.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    if batch_tokens < 1 or (len(lengths) and lengths.min() < 1):
        received = f"batch_tokens {batch_tokens}, shortest sentence {lengths.min(initial=batch_tokens)}"
        raise ValueError(f"batches need a budget and lengths of at least 1 token, got {received}")
    if not shuffle:
        return _cut(np.argsort(lengths, kind="stable"), lengths, batch_tokens)
    generator = np.random.default_rng([seed, epoch, window])
    noisy = lengths * generator.uniform(1 - LENGTH_NOISE, 1 + LENGTH_NOISE, size=len(lengths))
    # Short sentences stay equal under a share: half a token separates them.
    noisy += generator.uniform(-0.5, 0.5, size=len(lengths))
    batches = _cut(np.argsort(noisy, kind="stable"), lengths, batch_tokens)
    return [batches[i] for i in generator.permutation(len(batches))]


def plan_windows(
    sizes: np.ndarray, *, max_bytes: int, seed: int, epoch: int, shuffle: bool = True
) -> list[np.ndarray]:
    """Plan the windows of one epoch: groups of shards of a corpus, trained on one after another.

    Args:
        sizes: Bytes of each shard, int [shards].
        max_bytes: Most bytes of a window; a larger shard is a window of its own.
        seed: Seed of the run.
        epoch: Epoch, from 0.
        shuffle: True draws the order of shards from (seed, epoch), if they do not fit into one window.

    Returns:
        Arrays of indices into `sizes`, all indices exactly once; at least one window.
    """
    order = np.arange(len(sizes))
    if int(np.sum(sizes)) <= max_bytes:
        return [order]
    if shuffle:
        order = np.random.default_rng([seed, epoch, _ORDER_OF_SHARDS]).permutation(len(sizes))
    bounds, filled = [], 0
    for place, size in enumerate(sizes[order].tolist()):
        filled += size
        if place and filled > max_bytes:
            bounds.append(place)
            filled = size
    return np.split(order, bounds)


def _cut(order: np.ndarray, lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Cut an order greedily into runs with a padded size within the budget."""
    bounds, start, longest = [], 0, 0
    for place, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        if place > start and longest * (place - start + 1) > batch_tokens:
            bounds.append(place)
            start, longest = place, length
    return np.split(order, bounds) if len(order) else []


def worker_slice(batch: np.ndarray, rank: int, world: int) -> np.ndarray:
    """Return one worker's share of a global batch: every `world`-th sentence, which divides the lengths evenly.

    Args:
        batch: Indices of the sentences of a batch.
        rank: Number of the worker.
        world: Number of workers.

    Returns:
        Indices; the slices of all ranks are disjoint and make up the batch. Empty if a batch has fewer sentences than
        there are workers.

    Raises:
        ValueError: `rank` is not in 0..world - 1.
    """
    if not 0 <= rank < world:
        raise ValueError(f"rank must lie in 0..{world - 1}, got {rank}")
    return batch[rank::world]


def sample_by_language(
    languages: Sequence[str] | np.ndarray, *, alpha: float, seed: int, epoch: int
) -> np.ndarray:
    """Sample sentences with exponentially smoothed shares of languages.

    Language l with n_l sentences gets a share ∝ n_l^alpha of the sentences: 1 leaves the corpus as it is, 0 makes
    languages equal. Within a language, all sentences are taken ⌊q⌋ or ⌈q⌉ times (q = share / n_l), so that chance does
    not omit one sentence and repeat another. The sentences taken once more are drawn from (seed, epoch).

    Args:
        languages: Language of each sentence [N].
        alpha: Exponent, 0 or more.
        seed: Seed of the run.
        epoch: Epoch, from 0.

    Returns:
        Ascending indices, int64 [N].
    """
    names, codes, counts = np.unique(np.asarray(languages), return_inverse=True, return_counts=True)
    generator = np.random.default_rng([seed, epoch])
    drawn_rows = []
    for code, quota in enumerate(_apportion(counts**alpha, len(codes))):
        members = np.flatnonzero(codes == code)
        whole, rest = divmod(quota, len(members))
        drawn_rows += [np.repeat(members, whole), generator.choice(members, size=rest, replace=False)]
    return np.sort(np.concatenate(drawn_rows)) if len(names) else np.empty(0, dtype=np.int64)


def _apportion(weights: np.ndarray, total: int) -> list[int]:
    """Return whole numbers proportional to weights with the sum `total` (largest remainders, ties to the first)."""
    shares = weights / weights.sum() * total
    # A share such as 2.9999999999999996 is 3: rounding error must not move a sentence.
    quotas = [math.floor(share + 1e-9) for share in shares]
    remainders = np.argsort(
        [quota - share for quota, share in zip(quotas, shares, strict=True)], kind="stable"
    )
    for place in remainders[: total - sum(quotas)]:
        quotas[place] += 1
    return quotas


def length_buckets(lengths_N: np.ndarray, token_budget: int) -> list[slice]:
    """Cut sentences sorted by length into runs with a limited number of padded tokens.

    Args:
        lengths_N: Ascending lengths of sentences, int [N].
        token_budget: Most padded tokens of a run; a longer sentence is a run of its own.

    Raises:
        ValueError: The lengths are not ascending.
    """
    if np.any(np.diff(lengths_N) < 0):
        raise ValueError("buckets are cut from sentences sorted by length")
    runs, first = [], 0
    for last, length in enumerate(lengths_N.tolist()):
        if last > first and (last + 1 - first) * length > token_budget:
            runs.append(slice(first, last))
            first = last
    return [*runs, slice(first, len(lengths_N))] if len(lengths_N) else []
