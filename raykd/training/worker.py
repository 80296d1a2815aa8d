"""The position of a process among the workers of a run."""

from __future__ import annotations

from collections.abc import Mapping
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

    def sum_over_workers(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the sums of values over all workers, by name; every worker must call it, with the same names.

        Args:
            values: of this worker.
        """
        if not self.grouped:
            return dict(values)
        dtype = torch.float64 if self.device.type == "cpu" else torch.float32
        sums = torch.tensor(list(values.values()), dtype=dtype).to(self.device)
        dist.all_reduce(sums)
        return dict(zip(values, sums.tolist(), strict=True))
