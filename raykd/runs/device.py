"""The device on which work computes, the one that its role was given, and how much a model reads on it at once."""

from __future__ import annotations

import torch

from raykd.errors import RunError

CPU_PIECES = 1000
"""The pieces of a batch, padding included, that a model reads when it labels on a CPU. Its caches hold few: in batches
of 8000 a Transformer takes 1.7 times as long there, and a second-order parser three times."""
GPU_PIECES = 8192
"""The most that it reads on another device. Of a shard of 2,000 sentences 16 % is padding then, with twice as many
pieces 32 %."""
SAME_PIECES = 2048
"""What it reads on a GPU, whatever memory is free, where results must be equal bit by bit."""
BYTES_PER_PIECE = 2**20
"""Of a GPU's memory, more than a piece needs: all states of 24 layers of 1,024 components are 100 KiB in float32, and
what a layer computes from one to the next is some 50 KiB."""


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


def pieces_at_once(device: torch.device, *, share: float = 1.0) -> int:
    """Return how many pieces, padding included, a model reads at once when it labels on a device.

    On a GPU they follow the memory that is free, in powers of two: so batches stay the same while it changes a little.

    Args:
        device: on which the model is already.
        share: the part of the device that the process was given; more than 1 is 1.
    """
    if device.type != "cuda":
        return CPU_PIECES if device.type == "cpu" else GPU_PIECES
    if torch.are_deterministic_algorithms_enabled():
        return SAME_PIECES
    free, total = torch.cuda.mem_get_info(device)
    # PyTorch keeps memory that tensors have given back.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    pieces = int(min(free + kept, min(share, 1.0) * total)) // BYTES_PER_PIECE
    return min(GPU_PIECES, 2 ** max(0, pieces.bit_length() - 1))
