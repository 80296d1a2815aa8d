"""Checkpoints: where a run is, kept in its folder, so that a run that was interrupted ends with the same weights."""

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
"""What PyTorch calls a state: tensors, numbers, and lists and mappings of these, by name."""


@dataclass
class Progress:
    """Where a run is: all that a checkpoint holds beside the states of its `Stateful` objects."""

    stage: int = 0
    step: int = 0
    """Of the stage: which layer groups are trained."""
    first_epoch: int = 0
    """The epoch with which the step began."""
    epoch: int = 0
    """Counted over all stages."""
    batch: int = 0
    steps: int = 0
    """Optimiser steps of the finished epochs of the step."""
    all_steps: int = 0
    """The same over all stages."""
    sums: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    best: float = -float("inf")
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_loss_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[PlainObject] = field(default_factory=list)


class Stateful(Protocol):
    """What a checkpoint holds the state of: model, loss, optimiser, learning rate, gradient scaler."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State, /) -> object: ...


def write_checkpoint(folder: Storage, progress: Progress, states: Mapping[str, Stateful]) -> None:
    """Replace the checkpoint in `folder`."""
    state = {"progress": vars(progress), **{name: each.state_dict() for name, each in states.items()}}
    buffer = io.BytesIO()
    torch.save(to_cpu(state), buffer)
    state_bytes = buffer.getvalue()
    folder.write(CHECKPOINT, sha256(state_bytes).digest() + state_bytes)


def read_checkpoint(folder: Storage, device: torch.device) -> tuple[Progress, dict[str, State]] | None:
    """Where the run was, and the states by the names they were written with; None where there is no checkpoint.

    Raises:
        StoreError: the checkpoint is damaged.
        OtherVersionError: it is whole, and cannot be read.
    """
    found = folder.find(CHECKPOINT)
    if found is None:
        return None
    data = memoryview(found)
    digest, state_bytes = data[:DIGEST], data[DIGEST:]
    if sha256(state_bytes).digest() != digest:
        name, hint = f"{folder.address}/{CHECKPOINT}", "remove it: the run then starts from its beginning"
        raise StoreError(name, "the checkpoint is damaged: its checksum is not the one it begins with", hint)
    try:
        state = torch.load(io.BytesIO(state_bytes), map_location=device, weights_only=True)
        return Progress(**state.pop("progress")), state
    except torch.OutOfMemoryError:
        raise
    # It has its checksum, so nothing of it was damaged.
    except (UnpicklingError, RuntimeError, TypeError, LookupError, AttributeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        problem = f"the checkpoint is of another version of raykd or of PyTorch ({reason})"
        hint = "remove it: the run then starts from its beginning"
        raise OtherVersionError(f"{folder.address}/{CHECKPOINT}", problem, hint) from error


def reported_epochs(folder: Storage) -> list[PlainObject]:
    """The metrics of the epochs after which a run, interrupted or stopped, goes on; none where it would begin anew."""
    try:
        found = read_checkpoint(folder, torch.device("cpu"))
    except StoreError:
        return []  # the run says so itself
    return [] if found is None else found[0].history
