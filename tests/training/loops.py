"""One training loop for the tests: built without a launcher, scored by its weights, compared bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from raykd.figures.results import Score
from raykd.recipes.run import Run
from raykd.storage.store import Storage
from raykd.training.data import TrainingData
from raykd.training.execute import build_model, training_plan
from raykd.training.stages import TrainingPlan
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker


def distiller(
    storage: Storage,
    run: Run,
    *,
    worker: Worker | None = None,
    folder: str = "scratch",
    plan: TrainingPlan | None = None,
    double: bool = False,
) -> Distiller:
    """The training loop of `run` with a new model, scored by `whim`.

    With `double` the model and the parameters of the loss are in float64.
    """
    model = build_model(storage, run)
    loop = Distiller(
        model.double() if double else model, plan or training_plan(storage.uri, run), evaluate=whim,
        folder=storage.child(folder), worker=worker or Worker(),
    )  # fmt: skip
    open_stage = loop._open_stage
    if double:
        loop._open_stage = lambda index: (open_stage(index), loop.loss.double())
    return loop


def opened(loop: Distiller, stage: int = 0) -> Distiller:
    """The loop with the data and the loss of one stage, before its first step."""
    loop._open_stage(stage)
    return loop


def first_batches(loop: Distiller) -> list[np.ndarray]:
    """The rows of the batches of the first epoch."""
    return opened(loop)._batches(0)


def stage_data(storage: Storage, run: Run, stage: int = 0) -> TrainingData:
    """The training data of a stage of `run`."""
    return training_plan(storage.uri, run).stages[stage].data()


def whim(model: nn.Module) -> Score:
    """A dev score sensitive to the last bit of the weights, and rises and falls over epochs."""
    total = sum(float(p.detach().double().sum()) for p in model.parameters())
    return Score.from_languages({"en": 100 * total % 1})


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the model's parameters and buffers."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """True if two models have the same weights, bit by bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def changed(first: dict[str, Tensor], second: dict[str, Tensor]) -> set[str]:
    """The modules of a model with different weights."""
    return {name.partition(".")[0] for name in first if not torch.equal(first[name], second[name])}


def without_times(value: Any) -> Any:
    """A result or history without times."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("wall_s", "tokens_per_second")}
    return [without_times(item) for item in value] if isinstance(value, list | tuple) else value
