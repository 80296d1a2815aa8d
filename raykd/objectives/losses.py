"""What objectives build: modules that give the loss of each sentence of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import TeacherBatch


@dataclass(frozen=True)
class Losses:
    """The loss of each sentence [B] in nats, summed over its labels, and its parts by the kinds that gave them."""

    total_B: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


class Loss(nn.Module):
    """A built objective. Its own parameters (projections) are trained with the student, and do not ship with it."""

    by_label: bool = False
    """As of `Objective`."""

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        """The losses of a batch, differentiable in the student. `kd_weight` is λ, which only a mix uses.

        Raises:
            ValueError: the batch lacks a signal that the objective needs.
        """
        raise NotImplementedError
