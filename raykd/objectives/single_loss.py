"""Loss of a single objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from typing_extensions import override

from raykd.objectives.losses import Loss, Losses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.objectives.protocol import Objective
    from raykd.signals import TeacherBatch


class SingleLoss(Loss):
    """Loss of one objective, computed by `Objective.batch_loss`, with the loss's layers."""

    def __init__(self, objective: Objective, modules: Sequence[nn.Module]):
        super().__init__()
        self.objective, self.own = objective, nn.ModuleList(modules)
        self.by_label = objective.by_label

    @override
    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        loss_B = self.objective.batch_loss(output, targets, teacher, [*self.own])
        return Losses(loss_B, {self.objective.kind: loss_B})
