"""An objective with parameters: a projection of the student's hidden states to the teacher's scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import nn

from raykd.objectives import Gold, Mix, Objective, Part
from raykd.objectives.losses import Loss, Losses
from raykd.signals import Need, Sizes
from raykd.training.stages import StagePlan


class Projected(Objective):
    """Squared distance between the projected state of a sentence's first piece and the scores of its first word."""

    kind: Literal["projected"] = "projected"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("emissions"),)

    @property
    def label_layers(self) -> tuple[int, ...]:
        return (1,)

    def build(self, student: Sizes, teacher: Sizes, *, labelled: float = 1.0) -> Loss:
        return ProjectedLoss(student.hidden[1], teacher.tags)


class ProjectedLoss(Loss):
    def __init__(self, size: int, tags: int):
        super().__init__()
        self.projection = nn.Linear(size, tags, dtype=torch.float64)

    def forward(self, output: Any, targets: Any, teacher: Any, *, kd_weight: float = 1.0) -> Losses:
        states_BD = output.hidden[1][:, 0]
        projected_BY = self.projection(states_BD.double())
        loss_B = (projected_BY - teacher.chain.emissions_BTY[:, 0].clamp(-10)).square().sum(1)
        return Losses(loss_B, {"projected": loss_B})


def annealed_projection() -> Mix:
    """λ · projected + (1 − λ) · gold."""
    # The table of objectives does not have it, so the configuration is not validated.
    parts = (
        Part.model_construct(objective=Projected(), weight=1.0, anneal="falling"),
        Part(objective=Gold(), anneal="rising"),
    )
    return Mix.model_construct(parts=parts)


def with_projection(stage: StagePlan) -> StagePlan:
    """The stage with the objective; its run must read emissions."""
    return replace(stage, objective=annealed_projection())
