"""The speed of data-parallel training (DDP) with several workers: a model of one training step.

A step computes for `fixed_s + token_s · tokens`. Then the workers average their gradients by all-reduces in a ring:
each worker sends and receives 2(N − 1)/N of the bytes, in 2(N − 1) messages for each all-reduce. Communication does
not overlap with the backward pass in this model: DDP can hide all but the last bucket, and the last bucket holds the
embedding, most of a small student. Deep models can hide more. The model leaves out waiting for the slowest worker and
the copies that DDP makes. Two real workers were slower than the model (docs/results/ddp.md), so efficiencies are upper
bounds.

Efficiency is the speed of N workers over N times the speed of one worker, with one batch divided among them (strong
scaling), as raykd does with `training.batch_tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

FIRST_BUCKET, BUCKET = 2**20, 25 * 2**20
"""Bytes at which DDP closes its first bucket of gradients and each further one; a bucket is one all-reduce."""


@dataclass(frozen=True)
class Network:
    """The connection between two workers."""

    gbit_per_s: float = 10.0
    latency_s: float = 50e-6
    """From one worker's call to the other's receipt of a message of no length."""


@dataclass(frozen=True)
class Step:
    """The computation of one worker in a training step."""

    fixed_s: float
    token_s: float

    def compute_s(self, tokens: float) -> float:
        """Seconds of a batch of so many tokens."""
        return self.fixed_s + self.token_s * tokens


@dataclass(frozen=True)
class Gradients:
    """The messages of one worker in a training step."""

    bytes: int
    calls: int
    """All-reduces, one for each bucket of DDP."""

    @classmethod
    def of(cls, size: int) -> Gradients:
        """Gradients of `size` bytes, in the largest number of buckets that DDP makes."""
        return cls(size, 1 + ceil(max(0, size - FIRST_BUCKET) / BUCKET))


def all_reduce_s(gradients: Gradients, workers: int, network: Network) -> float:
    """Seconds for averaging the gradients of all workers.

    Args:
        gradients: Bytes and all-reduces of one worker.
        workers: Number of workers.
        network: Bandwidth and latency between two workers.
    """
    sent = 2 * (workers - 1) / workers * gradients.bytes * 8 / (network.gbit_per_s * 1e9)
    return sent + gradients.calls * 2 * (workers - 1) * network.latency_s


def strong_efficiency(step: Step, tokens: float, workers: int, sent_s: float) -> float:
    """Efficiency of dividing one batch among several workers (strong scaling), a ratio of at most 1.

    Args:
        step: Computation of one worker.
        tokens: Tokens of the whole batch.
        workers: Number of workers.
        sent_s: Seconds of communication in each step.
    """
    return step.compute_s(tokens) / (workers * (step.compute_s(tokens / workers) + sent_s))


def strong_tokens(step: Step, workers: int, sent_s: float, efficiency: float) -> float:
    """The smallest global batch with a given efficiency by strong scaling, in tokens.

    Args:
        step: Computation of one worker.
        workers: Number of workers.
        sent_s: Seconds of communication in each step.
        efficiency: The efficiency to reach, below 1.

    Returns:
        Infinity if no batch reaches it.
    """
    if step.token_s == 0:
        return 0.0 if strong_efficiency(step, 0, workers, sent_s) >= efficiency else inf
    missing = (workers * efficiency - 1) * step.fixed_s + workers * efficiency * sent_s
    return max(0.0, missing / ((1 - efficiency) * step.token_s))
