"""Checkpoints: where a run is, kept in its folder, so that a run that was interrupted ends with the same weights."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pickle import UnpicklingError
from typing import Any, Protocol

import torch
from torch import Tensor

from raykd.errors import StoreError
from raykd.storage import Storage

CHECKPOINT = "checkpoint.pt"


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
    sums: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    best: float = -float("inf")
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_loss_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)


class Stateful(Protocol):
    """What a checkpoint holds the state of: model, loss, optimiser, learning rate, gradient scaler."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Any, /) -> Any: ...


def write_checkpoint(folder: Storage, progress: Progress, states: Mapping[str, Stateful]) -> None:
    """Replace the checkpoint in `folder`."""
    state = {"progress": vars(progress), **{name: each.state_dict() for name, each in states.items()}}
    buffer = io.BytesIO()
    torch.save(state, buffer)
    folder.write(CHECKPOINT, buffer.getvalue())


def read_checkpoint(folder: Storage, device: torch.device) -> tuple[Progress, dict[str, Any]] | None:
    """Where the run was, and the states by the names they were written with; None where there is no checkpoint.

    Raises:
        StoreError: the checkpoint is damaged.
    """
    if not folder.exists(CHECKPOINT):
        return None
    try:
        state = torch.load(io.BytesIO(folder.read(CHECKPOINT)), map_location=device, weights_only=True)
    except (RuntimeError, ValueError, UnpicklingError, EOFError) as error:
        name, hint = f"{folder.uri}/{CHECKPOINT}", "remove it: the run then starts from its beginning"
        raise StoreError(name, "the checkpoint is damaged", hint) from error
    return Progress(**state.pop("progress")), state
