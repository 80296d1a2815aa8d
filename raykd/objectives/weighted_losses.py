"""Losses of a mix: the loss of each part on its text, and the weighted sum."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from raykd.errors import RunError
from raykd.objectives.chunks import compute_losses
from raykd.objectives.losses import Loss, Losses

if TYPE_CHECKING:
    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.objectives.mix import Part
    from raykd.signals import TeacherBatch


class MixLoss(Loss):
    """Weighted sum of several losses; see `Mix`."""

    def __init__(self, parts: tuple[Part, ...], losses: list[Loss]):
        super().__init__()
        self.parts, self.losses = parts, nn.ModuleList(losses)

    @override
    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        factors = {"none": 1.0, "falling": kd_weight, "rising": 1 - kd_weight}
        weights = [part.weight * factors[part.anneal] for part in self.parts]
        active = [number for number, weight in enumerate(weights) if weight or self._needs_gradients(number)]
        # Gradients add up in the reverse of the order in which losses are computed, and rounding with them: labels
        # come first, wherever they are listed.
        order = sorted(active, key=lambda number: not self.parts[number].objective.reads_labels)
        losses: list[Any] = [self.losses[number] for number in order]
        results = compute_losses(losses, output, targets, teacher, kd_weight=kd_weight)
        losses_by_number = dict(zip(order, results, strict=True))
        if not losses_by_number:
            weights_text = ", ".join(
                f"{part.objective.kind} {part.weight:g} {part.anneal}" for part in self.parts
            )
            raise RunError(
                f"objective.parts: every weight of the mix is 0 at λ = {kd_weight:g} ({weights_text}); "
                "give one part a weight that λ does not set to 0"
            )
        total_B = functools.reduce(
            torch.add, [weights[number] * losses_by_number[number].total_B for number in active]
        )
        return Losses(total_B, _by_kind(losses_by_number[number].parts for number in active))

    def _needs_gradients(self, number: int) -> bool:
        # Losses of labels and losses with parameters are computed even at weight 0: then every parameter has a
        # gradient at every λ, which optimiser and DDP rely on.
        with_parameters = next(self.losses[number].parameters(), None) is not None
        return self.parts[number].objective.reads_labels or with_parameters


class TextLoss(Loss):
    """A loss on labelled or on unlabelled sentences alone: 0 on the others, divided by their `share`."""

    def __init__(self, loss: Loss, *, labelled: bool, share: float):
        super().__init__()
        self.loss, self._labelled, self._share = loss, labelled, share
        self.by_label = loss.by_label

    @override
    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        losses = self.loss(output, targets, teacher, kd_weight=kd_weight)
        counts_B = targets.labelled_B == self._labelled

        def counted(loss_B: Tensor) -> Tensor:
            return torch.where(counts_B, loss_B, 0.0) / self._share

        return Losses(
            counted(losses.total_B), {kind: counted(part_B) for kind, part_B in losses.parts.items()}
        )


def loss_on_text(part: Part, loss: Loss, share: float) -> Loss:
    """Return a part's loss, restricted to the part's text.

    Args:
        part: Part of the mix.
        loss: Built objective of the part.
        share: Share of the part's text in the stage's text, from 0 to 1.

    Raises:
        RunError: The stage has no such text.
    """
    if part.text == "all":
        return loss
    if share <= 0:
        raise RunError(
            f"objective.parts: {part.objective.kind} needs {part.text} text, and the stage has none; "
            "add such text to the corpus, or remove the part"
        )
    return TextLoss(loss, labelled=part.text == "labelled", share=share)


def _by_kind(parts: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the losses of all parts by kind; the second of a kind is `kind.2`."""
    losses, counts = {}, Counter()
    for kind, value_B in (item for part in parts for item in part.items()):
        counts[kind] += 1
        losses[kind if counts[kind] == 1 else f"{kind}.{counts[kind]}"] = value_B
    return losses
