"""The learning rate over the steps of a run."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from raykd.layers.optimisation import TrainingConfig
from raykd.training.learning_rate import LearningRate, make_optimiser


def rates(steps, **settings):
    config = TrainingConfig(learning_rate=0.1, **settings)
    optimiser = make_optimiser(config, [nn.Parameter(torch.zeros(1))])
    schedule = LearningRate(config, optimiser, total_steps=steps)
    collected = []
    for _ in range(steps):
        collected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return collected


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_the_rate_rises_and_falls_as_stated(kind):
    actual = rates(20, learning_rate_schedule=kind, warmup=0.2, final_learning_rate=0.01)
    assert actual[:4] == pytest.approx([0.025, 0.05, 0.075, 0.1])
    progress = [step / 16 for step in range(16)]
    falling = {
        "constant": [0.1] * 16,
        "linear": [0.1 * (1 - d) for d in progress],
        "cosine": [0.01 + 0.09 * (1 + math.cos(math.pi * d)) / 2 for d in progress],
    }
    assert actual[4:] == pytest.approx(falling[kind])


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_the_optimiser_takes_the_steps_of_the_unfused_one(kind):
    settings = {"lr": 0.1, "weight_decay": 0.3}
    plain = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind]
    fused, expected = (nn.Parameter(torch.linspace(-2, 3, 15).view(5, 3)) for _ in range(2))
    config = TrainingConfig(optimiser=kind, learning_rate=settings["lr"], weight_decay=0.3)
    optimisers = (
        make_optimiser(config, [fused]), plain([expected], foreach=False, fused=False, **settings),
    )  # fmt: skip
    for step in range(5):
        for parameter in (fused, expected):
            parameter.grad = (parameter.detach() - step).cos()
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(fused, expected)


def test_cosine_is_that_of_torch():
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=9, eta_min=1e-8)
    expected = []
    for _ in range(9):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates(9, learning_rate_schedule="cosine") == pytest.approx(expected)


def test_plateau_has_no_warmup():
    with pytest.raises(ValidationError, match="plateau has no warmup"):
        TrainingConfig(learning_rate_schedule="plateau", warmup=0.1)
