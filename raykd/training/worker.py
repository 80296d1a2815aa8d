"""A worker: which of those of a run a process is."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Worker:
    """Which of the workers of a run this is, and where it computes."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    share: float = 1.0
    """The part of the device that it was given."""

    @property
    def grouped(self) -> bool:
        """True in a process group: under Ray Train, also where the worker is the only one."""
        return dist.is_available() and dist.is_initialized()
