"""The position of a process among the workers of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Worker:
    """One worker of a run, and its device.

    Attributes:
        rank: Number of the worker, from 0.
        world: Number of workers of the run.
    """

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    share: float = 1.0
    """The worker's share of the device, from 0 to 1."""

    @property
    def grouped(self) -> bool:
        """True in a process group; under Ray Train, a single worker is in one as well."""
        return dist.is_available() and dist.is_initialized()
