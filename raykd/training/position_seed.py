"""Seeds that depend on the position in a run alone, so that a resumed run draws the same numbers."""

from __future__ import annotations

import numpy as np
import torch


def position_seed(seed: int, first: int, second: int) -> int:
    """Return the seed for a position.

    Args:
        seed: of the run.
        first: number of the epoch, or of the stage for what is drawn at its beginning.
        second: number of the batch; at the beginning of a stage 0 for the loss, 1 for a new head.
    """
    return int(np.random.SeedSequence([seed, first, second]).generate_state(1, np.uint32)[0])


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators of the CPU and of `device` alone.

    `torch.manual_seed` also records each call, with its stack, for devices not in use: a millisecond and some kilobytes
    per optimiser step.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
