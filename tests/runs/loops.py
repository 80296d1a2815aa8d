"""One training loop as the tests look at it: built without a launcher, scored by a whim, compared bit by bit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from raykd.runs.data import training_data
from raykd.runs.distil import Distiller, TrainingPlan, Worker
from raykd.runs.execute import build_model, needs_of, training_plan_of
from raykd.runs.run import Run
from raykd.storage import Storage


def distiller(
    storage: Storage,
    run: Run,
    *,
    worker: Worker | None = None,
    folder: str = "scratch",
    training_plan: TrainingPlan | None = None,
    double: bool = False,
) -> Distiller:
    """The training loop of `run`, its model freshly initialised (in float64 if `double`), scored by `whim`."""
    model, data = build_model(storage, run), training_data(storage.uri, run, needs_of(run), verify=False)
    return Distiller(
        model.double() if double else model, data, training_plan or training_plan_of(run), evaluate=whim,
        folder=storage.child(folder), worker=worker or Worker(),
    )  # fmt: skip


def whim(model: nn.Module) -> dict[str, Any]:
    """A dev score that is told by the weights to the last bit, and rises and falls over epochs."""
    total = sum(float(p.detach().double().sum()) for p in model.parameters())
    return {"mean": 100 * total % 1, "standard_deviation": 0.0, "by_language": {"en": 0.0}}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of the model's parameters and buffers."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two models have the same weights, bit by bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_times(value: Any) -> Any:
    """A result or history without what the clock says."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in ("wall_s", "tokens_per_second")}
    return [without_times(item) for item in value] if isinstance(value, list) else value
