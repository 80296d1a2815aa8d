"""The losses of a mix: each part's on its text, and their weighted sum."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from raykd.errors import RunError
from raykd.objectives.chunks import compute_losses
from raykd.objectives.losses import Loss, Losses

if TYPE_CHECKING:
    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.objectives.mix import Part
    from raykd.signals import TeacherBatch


class MixLoss(Loss):
    """See `Mix`."""

    def __init__(self, parts: tuple[Part, ...], losses: list[Loss]):
        super().__init__()
        self.parts, self.losses = parts, nn.ModuleList(losses)

    def forward(
        self, output: Output, targets: Targets, teacher: TeacherBatch, *, kd_weight: float = 1.0
    ) -> Losses:
        factors = {"none": 1.0, "falling": kd_weight, "rising": 1 - kd_weight}
        weights = [part.weight * factors[part.anneal] for part in self.parts]
        read = [number for number, weight in enumerate(weights) if weight or self._always(number)]
        # Gradients add up in the reverse of the order in which losses are computed, and rounding with them: labels
        # come first, wherever they are listed.
        order = sorted(read, key=lambda number: not self.parts[number].objective.reads_labels)
        losses: list[Any] = [self.losses[number] for number in order]
        given = compute_losses(losses, output, targets, teacher, kd_weight=kd_weight)
        own = dict(zip(order, given, strict=True))
        if not own:
            got = ", ".join(f"{part.objective.kind} {part.weight:g} {part.anneal}" for part in self.parts)
            raise RunError(
                f"objective.parts: every weight of the mix is 0 at λ = {kd_weight:g} ({got}); "
                "give one part a weight that λ does not set to 0"
            )
        total_B = functools.reduce(torch.add, [weights[number] * own[number].total_B for number in read])
        return Losses(total_B, _by_kind(own[number].parts for number in read))

    def _always(self, number: int) -> bool:
        # Labels are computed even at weight 0, and so are losses with parameters of their own: then every parameter
        # has a gradient at every λ, so that optimiser and DDP treat all alike.
        with_parameters = next(self.losses[number].parameters(), None) is not None
        return self.parts[number].objective.reads_labels or with_parameters


class TextLoss(Loss):
    """A loss on labelled or on unlabelled sentences alone, 0 on the others, divided by their `share`."""

    def __init__(self, loss: Loss, *, labelled: bool, share: float):
        super().__init__()
        self.loss, self._labelled, self._share = loss, labelled, share
        self.by_label = loss.by_label

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
    """The loss of a part on its text; RunError where there is none."""
    if part.text == "all":
        return loss
    if share <= 0:
        raise RunError(
            f"objective.parts: {part.objective.kind} is of {part.text} text, and the stage has no such sentence; "
            "give the corpus some, or omit the part"
        )
    return TextLoss(loss, labelled=part.text == "labelled", share=share)


def _by_kind(parts: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The losses of all parts by kind; the second of a kind is `kind.2`."""
    found, seen = {}, Counter()
    for kind, value_B in (item for part in parts for item in part.items()):
        seen[kind] += 1
        found[kind if seen[kind] == 1 else f"{kind}.{seen[kind]}"] = value_B
    return found
