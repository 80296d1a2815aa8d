"""Avoid waits for a GPU: copy data without waiting, and read several checks together.

A GPU computes while the program goes on. The program waits until all earlier work is done if it reads a value from the
GPU, or copies one to it from pageable memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

Tree = TypeVar("Tree")

_deferred: ContextVar[list[Tensor] | None] = ContextVar("deferred", default=None)


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return the tensor on a device. Pinned memory lets a copy to a GPU run without waiting.

    Args:
        tensor: Any tensor.
        device: Target device.
    """
    if torch.device(device).type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def to_cpu(tree: Tree) -> Tree:
    """Return nested dicts and lists with all tensors on the CPU, after waiting at most once for a GPU.

    Args:
        tree: Dicts, lists and tuples of tensors and other values.
    """
    gpu_tensors = list[Tensor]()

    def copy(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: copy(part) for name, part in node.items()}
        if isinstance(node, list | tuple):
            return type(node)(copy(part) for part in node)
        if not isinstance(node, Tensor) or node.device.type == "cpu":
            return node
        gpu_tensors.append(node)
        buffer = torch.empty(node.shape, dtype=node.dtype, pin_memory=True)
        return buffer.copy_(node.detach(), non_blocking=True)

    copied = copy(tree)
    if gpu_tensors:
        torch.cuda.synchronize(gpu_tensors[0].device)
    return copied


def index_tensor(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Return numbers as an int64 tensor [N]. A GPU's copy is cached, so that indexing does not send it again.

    Args:
        numbers: Any integers.
        device: Target device.
    """
    if device.type == "cpu":
        return torch.tensor(numbers, dtype=torch.long)
    return _cached_indices(numbers, device)


@lru_cache(maxsize=1024)
def _cached_indices(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    with torch.inference_mode(mode=False):  # else autograd would refuse to index with them later
        return torch.tensor(numbers, dtype=torch.long).to(device)


def all_true(condition: Tensor) -> bool:
    """Return True if `condition` is true everywhere; within `deferred_checks` return True at once on a GPU."""
    conditions = _deferred.get()
    if conditions is None or condition.device.type == "cpu":
        return bool(condition.all())
    conditions.append(condition.all())
    return True


@contextmanager
def deferred_checks() -> Iterator[list[Tensor]]:
    """Let `all_true` answer True at once, and collect the conditions that it has not read.

    If one of the conditions turns out false, the results computed inside are invalid: compute them again outside.

    Yields:
        The collected conditions, 0-dimensional; the list grows.
    """
    conditions: list[Tensor] = []
    token = _deferred.set(conditions)
    try:
        yield conditions
    finally:
        _deferred.reset(token)
