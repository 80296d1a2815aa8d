"""Logit regression: the student's scores are drawn to the logarithms of the teacher's probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.objectives.protocol import Objective, marginals_chain
from raykd.signals import Need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor, nn

    from raykd.forms.targets import Targets
    from raykd.layers.model import Output
    from raykd.signals import Sizes, TeacherBatch


class Logits(Objective):
    """½ Σ_t ‖r_s(t) − log p_t(t)‖² over labels (Mukherjee & Awadallah 2020, Eq. 4).

    p_t are the teacher's token marginals; their logarithms are its logits. Zero iff r_s(t) = log p_t(t) for every tag
    that is allowed at t. With `head: own` the scores r_s = W h + b come from an additional head on the student's last
    layer, as in the paper, whose gold labels have another head: it is trained with the student and does not ship.
    """

    kind: Literal["logits"] = "logits"
    head: Literal["student", "own"] = "student"
    """Source of r_s: the student's head (its emission scores), or a linear layer that belongs to the loss."""
    floor: Annotated[float, Field(ge=-80, lt=0)] = -20.0
    """Lowest value of log p that counts. log p has no lower bound: it is −∞ for a tag that the teacher excludes, and
    float32 probabilities end at −87."""
    anneals: ClassVar[bool] = False

    @property
    @override
    def needs(self) -> tuple[Need, ...]:
        return (Need("soft_marginals"),)

    @property
    @override
    def label_layers(self) -> tuple[int, ...]:
        return (-1,) if self.head == "own" else ()

    @override
    def modules(self, student: Sizes, teacher: Sizes) -> Sequence[nn.Module]:
        from torch import nn

        return [nn.Linear(student.hidden[-1], student.tags)] if self.head == "own" else []

    @override
    def batch_loss(
        self, output: Output, targets: Targets, teacher: TeacherBatch, modules: Sequence[nn.Module]
    ) -> Float[Tensor, " batch"]:
        from raykd.structures import token_marginals
        from raykd.structures.labelled_arcs import FORBIDDEN

        scores_BTY = _scores(output, modules)
        chain = marginals_chain(teacher, self.kind, softened=False, tags=scores_BTY.shape[2])
        target_BTY = token_marginals(chain).log().clamp_min(self.floor).to(scores_BTY.dtype)
        # Padding may hold anything, NaN included; forbidden tags have no logarithm to learn.
        unread_BTY = ~chain.mask_BT[:, :, None] | (scores_BTY <= FORBIDDEN)
        difference_BTY = (scores_BTY - target_BTY).masked_fill(unread_BTY, 0.0)
        return difference_BTY.square().sum((1, 2)) / 2


def _scores(output: Output, head: Sequence[nn.Module]) -> Float[Tensor, "batch time tag"]:
    """Return the scores of the additional head, or of the student's head if there is none."""
    import torch

    if not head:
        return output.distribution.emissions_BTY  # type: ignore[union-attr]
    scores_BTY = head[0](output.hidden[-1])
    return scores_BTY.to(torch.promote_types(scores_BTY.dtype, torch.float32))
