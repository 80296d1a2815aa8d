"""The device on which work computes: the one that its role was given, never another one in silence."""

from __future__ import annotations

import torch

from raykd.errors import RunError


def given_device(gpus: float) -> torch.device:
    """Return the device of a process whose role was given so many GPUs, or a part of one: `gpus_per_worker`.

    Ray shows a process that asked for GPUs its own alone, and one that asked for none all of them.

    Raises:
        RunError: it was given a GPU, and PyTorch sees none.
    """
    if not gpus:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RunError(
            f"gpus_per_worker: {gpus:g} was given, and PyTorch {torch.__version__} sees no GPU here; look at "
            "`nvidia-smi`, install a build of PyTorch with CUDA, or set gpus_per_worker: 0"
        )
    return torch.device("cuda")
