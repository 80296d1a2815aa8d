"""Built objectives: modules that return the loss of each sentence of a batch."""

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
    """Losses of a batch, summed over the labels or pieces of each sentence.

    Attributes:
        total_B: Loss of each sentence, which is trained.
        parts: Kind of objective to its loss [B], before the weights of a mix; `kind.2` is the second of a kind.
    """

    total_B: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


class Loss(nn.Module):
    """A built objective. Its parameters (projections) are trained with the student, and do not ship with it."""

    by_label: bool = False
    """See `Objective.by_label`."""

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        """Return the losses of a batch, differentiable in the student.

        Args:
            output: Output of the student.
            targets: Gold labels of the batch.
            teacher: Signals of the teacher.
            kd_weight: λ, the weight of the teacher; only a mix uses it.

        Raises:
            ValueError: The batch lacks a signal that the objective needs.
        """
        raise NotImplementedError
