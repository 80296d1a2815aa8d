"""Avoiding waits for a GPU: data are sent without waiting, and checks are read together.

A GPU computes while the program goes on. The program stops where it reads a value, and where it sends
one from memory that the system may move: each time until everything before is computed.
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
    """The tensor on a device; to a GPU it is sent from pinned memory, and nothing waits."""
    if torch.device(device).type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def to_cpu(tree: Tree) -> Tree:
    """Nested dicts and lists with all their tensors on the CPU; those of a GPU are waited for once."""
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
    """The numbers as int64 [N] on a device; to a GPU they are sent once, not each time that they are an index."""
    if device.type == "cpu":
        return torch.tensor(numbers, dtype=torch.long)
    return _cached_indices(numbers, device)


@lru_cache(maxsize=1024)
def _cached_indices(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    with torch.inference_mode(mode=False):  # else nothing that they index could be differentiated later
        return torch.tensor(numbers, dtype=torch.long).to(device)


def all_true(condition: Tensor) -> bool:
    """Return True where `condition` is true everywhere. Within `deferred_checks` a GPU is not waited for: True."""
    waiting = _deferred.get()
    if waiting is None or condition.device.type == "cpu":
        return bool(condition.all())
    waiting.append(condition.all())
    return True


@contextmanager
def deferred_checks() -> Iterator[list[Tensor]]:
    """Within it `holds` answers at once; yields the conditions, 0-dimensional, of which it has said that they hold.

    Where one of them turns out not to, what was computed is worth nothing: compute it again outside.
    """
    conditions: list[Tensor] = []
    token = _deferred.set(conditions)
    try:
        yield conditions
    finally:
        _deferred.reset(token)
