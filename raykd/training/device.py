"""The device of a process, its batch size for labelling, and deterministic computation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from raykd.errors import RunError

CPU_PIECES = 1000
"""Pieces of a batch, padding included, when a model labels on a CPU. The caches of a CPU are small: in batches of 8000
a Transformer takes 1.7 times as long, and a second-order parser three times."""
GPU_PIECES = 8192
"""Largest batch on another device. Of a shard of 2,000 sentences 16 % is then padding; with twice as many pieces it
would be 32 %."""
SAME_PIECES = 2048
"""Pieces of a batch on a GPU if results must be equal bit by bit, so that free memory does not matter."""
BYTES_PER_PIECE = 2**20
"""GPU memory for one piece, on the safe side: all states of 24 layers of 1,024 components are 100 KiB in float32, and
the intermediate values of a layer some 50 KiB."""
NO_ALGORITHM = "does not have a deterministic implementation"
"""Part of PyTorch's error."""
WORKSPACE, DETERMINISTIC_WORKSPACES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")
"""The environment variable of cuBLAS's workspace, and the values with which cuBLAS is deterministic."""


def assigned_device(gpus: float) -> torch.device:
    """Return the device of a process by the GPUs of its role.

    Ray shows a process with GPUs only its own GPUs, and a process without any all of them.

    Args:
        gpus: number of GPUs, or the part of one (`gpus_per_worker`).

    Raises:
        RunError: the process has a GPU, and PyTorch sees none.
    """
    if not gpus:
        return torch.device("cpu")
    # cuBLAS reads the variable when it starts, and a deterministic run may come after others in one process.
    os.environ.setdefault(WORKSPACE, DETERMINISTIC_WORKSPACES[0])
    if not torch.cuda.is_available():
        raise RunError(
            f"gpus_per_worker: {gpus:g} was given, and PyTorch {torch.__version__} sees no GPU here; look at "
            "`nvidia-smi`, install a build of PyTorch with CUDA, or set gpus_per_worker: 0"
        )
    return torch.device("cuda")


@contextmanager
def deterministic(device: torch.device, *, enabled: bool) -> Iterator[None]:
    """Use only deterministic algorithms in the body; restore the process's settings afterwards.

    Args:
        device: of the computation.
        enabled: false: change nothing.

    Raises:
        RunError: an operation has no deterministic algorithm, or cuBLAS is configured otherwise.
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
    """Return the number of pieces, padding included, that a model reads at once when it labels.

    On a GPU the budget is a power of two that fits into the free memory, so that batches stay the same while the free
    memory changes a little.

    Args:
        device: with the model on it already.
        share: the share of the device that belongs to the process; values above 1 count as 1.
    """
    if device.type != "cuda":
        return CPU_PIECES if device.type == "cpu" else GPU_PIECES
    if torch.are_deterministic_algorithms_enabled():
        return SAME_PIECES
    free, total = torch.cuda.mem_get_info(device)
    # PyTorch reserves the memory of freed tensors, and uses it again.
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    pieces = int(min(free + reserved, min(share, 1.0) * total)) // BYTES_PER_PIECE
    return min(GPU_PIECES, 2 ** max(0, pieces.bit_length() - 1))
