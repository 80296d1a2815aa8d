"""Checkpoints: the position of a run, stored in its folder, so that an interrupted run ends with the same weights."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pickle import UnpicklingError
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from raykd.errors import OtherVersionError, StoreError
from raykd.identity import PlainObject
from raykd.storage.layout import CHECKPOINT
from raykd.storage.store import Storage
from raykd.structures.device import to_cpu

DIGEST = 32

State: TypeAlias = dict[str, Any]
"""A state in PyTorch's sense: tensors, numbers, and lists and mappings of these, by name."""


@dataclass
class Progress:
    """The position of a run: everything in a checkpoint but the states of the `Stateful` objects."""

    stage: int = 0
    step: int = 0
    """Stage step, from 0; it decides which layer groups are trained."""
    first_epoch: int = 0
    """First epoch of the stage step."""
    epoch: int = 0
    """Epoch, from 0; counted over all stages."""
    batch: int = 0
    """Finished batches of the epoch."""
    steps: int = 0
    """Optimiser steps of the finished epochs of the stage step."""
    all_steps: int = 0
    """Optimiser steps of the finished epochs of all stages."""
    sums: dict[str, float] = field(default_factory=dict)
    """Name of each loss → its sum over the finished batches of the epoch."""
    seconds: float = 0.0
    """Seconds spent on the finished batches of the epoch."""
    best: float = -float("inf")
    """Best score of the stage step: of dev, or the negative loss on held-out text."""
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    """Weights of the model after the best epoch."""
    best_loss_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[PlainObject] = field(default_factory=list)
    """Metrics of the finished epochs of all stages."""


class Stateful(Protocol):
    """An object with a state for the checkpoint: model, loss, optimiser, learning rate, gradient scaler."""

    def state_dict(self) -> State:
        """Return the state."""
        ...

    def load_state_dict(self, state: State, /) -> object:
        """Set a state returned by `state_dict`."""


def write_checkpoint(folder: Storage, progress: Progress, states: Mapping[str, Stateful]) -> None:
    """Replace the checkpoint in `folder`."""
    state = {"progress": vars(progress), **{name: stateful.state_dict() for name, stateful in states.items()}}
    buffer = io.BytesIO()
    torch.save(to_cpu(state), buffer)
    state_bytes = buffer.getvalue()
    folder.write(CHECKPOINT, sha256(state_bytes).digest() + state_bytes)


def read_checkpoint(folder: Storage, device: torch.device) -> tuple[Progress, dict[str, State]] | None:
    """Return the position of a run and the states by name; None if there is no checkpoint.

    Args:
        folder: of the run.
        device: on which the tensors of the states are placed.

    Raises:
        StoreError: the checkpoint is damaged.
        OtherVersionError: the checkpoint is undamaged but cannot be read.
    """
    checkpoint = folder.find(CHECKPOINT)
    if checkpoint is None:
        return None
    data = memoryview(checkpoint)
    digest, state_bytes = data[:DIGEST], data[DIGEST:]
    if sha256(state_bytes).digest() != digest:
        name, hint = f"{folder.address}/{CHECKPOINT}", "remove it: the run then starts from its beginning"
        raise StoreError(
            name, "the checkpoint is damaged: its checksum differs from the one at its beginning", hint
        )
    try:
        state = torch.load(io.BytesIO(state_bytes), map_location=device, weights_only=True)
        return Progress(**state.pop("progress")), state
    except torch.OutOfMemoryError:
        raise
    # The checksum was right, so the file is not damaged: another version wrote it.
    except (UnpicklingError, RuntimeError, TypeError, LookupError, AttributeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        problem = f"the checkpoint is of another version of raykd or of PyTorch ({reason})"
        hint = "remove it: the run then starts from its beginning"
        raise OtherVersionError(f"{folder.address}/{CHECKPOINT}", problem, hint) from error


def reported_epochs(folder: Storage) -> list[PlainObject]:
    """Return the metrics of the epochs in the checkpoint; none if the run would start from its beginning.

    Args:
        folder: of the run, interrupted or stopped.
    """
    try:
        checkpoint = read_checkpoint(folder, torch.device("cpu"))
    except StoreError:
        return []  # the run raises this error itself when it is resumed
    return [] if checkpoint is None else checkpoint[0].history
