"""The device on which work computes: the one that its role was given. How much a model reads on it at once, and whether
equal work gives equal bits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from raykd.errors import RunError

CPU_PIECES = 1000
"""The pieces of a batch, padding included, that a model reads when it labels on a CPU. Its caches hold few: in batches
of 8000 a Transformer takes 1.7 times as long there, and a second-order parser three times."""
GPU_PIECES = 8192
"""The most that it reads on another device. Of a shard of 2,000 sentences 16 % is padding then, with twice as many
pieces 32 %."""
SAME_PIECES = 2048
"""The same on a GPU where results must be equal bit by bit, whatever memory is free."""
BYTES_PER_PIECE = 2**20
"""Of a GPU's memory, more than a piece needs: all states of 24 layers of 1,024 components are 100 KiB in float32, and
what a layer computes from one to the next is some 50 KiB."""
NO_ALGORITHM = "does not have a deterministic implementation"
"""In PyTorch's errors."""
WORKSPACE, DETERMINISTIC_WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")
"""The variable that says how cuBLAS works, and those of its values with which it is deterministic."""


def assigned_device(gpus: float) -> torch.device:
    """Return the device of a process whose role was given so many GPUs, or a part of one: `gpus_per_worker`.

    Ray shows a process that asked for GPUs its own alone, and one that asked for none all of them.

    Raises:
        RunError: it was given a GPU, and PyTorch sees none.
    """
    if not gpus:
        return torch.device("cpu")
    # cuBLAS reads it when it starts, and runs that are to be deterministic come after others in one process.
    os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACES[0])
    if not torch.cuda.is_available():
        raise RunError(
            f"gpus_per_worker: {gpus:g} was given, and PyTorch {torch.__version__} sees no GPU here; look at "
            "`nvidia-smi`, install a build of PyTorch with CUDA, or set gpus_per_worker: 0"
        )
    return torch.device("cuda")


@contextmanager
def deterministic(device: torch.device, *, enabled: bool) -> Iterator[None]:
    """Compute with deterministic algorithms alone where that is `wanted`; afterwards the process is as it was.

    Raises:
        RunError: an operation has no such algorithm, or cuBLAS was told to work otherwise.
    """
    if not enabled:
        yield
        return
    workspace = os.environ.get(WORKSPACE)
    if device.type == "cuda" and workspace not in DETERMINISTIC_WORKSPACES:
        raise RunError(
            f"training.deterministic: true, and {WORKSPACE} is {workspace}; set it to "
            f"{' or '.join(DETERMINISTIC_WORKSPACES)} in the environment, or unset it"
        )
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    mode, warns = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True)
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    except RuntimeError as error:
        if NO_ALGORITHM not in str(error):
            raise
        operation = str(error).split()[0]
        raise RunError(
            f"training.deterministic: true, and PyTorch has no deterministic algorithm for {operation} on "
            f"{device.type}; set training.deterministic: false"
        ) from error
    finally:
        torch.use_deterministic_algorithms(mode, warn_only=warns)
        cudnn.deterministic, cudnn.benchmark = before


def piece_budget(device: torch.device, *, share: float = 1.0) -> int:
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
