"""Several models as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from torch import nn

from raykd.layers.model import Model, Output
from raykd.structures import Mixture, log_linear_pool

if TYPE_CHECKING:
    from raykd.corpora.encoding import TokenBatch


class Ensemble(Model):
    """The mean of several models: of their scores (a log-linear pool), or of their distributions (a mixture)."""

    def __init__(self, members: Sequence[Model], *, combine: Literal["scores", "posteriors"]):
        super().__init__()
        self.members, self.combine = nn.ModuleList(members), combine

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        if layers:
            raise ValueError("several models together have no hidden states; ask one of them")
        members = tuple(member(batch).distribution for member in self.members)
        return Output(log_linear_pool(members) if self.combine == "scores" else Mixture(members))

    def all_parameters(self) -> Iterator[nn.Parameter]:
        # Members may share a frozen encoder.
        every = [p for member in self.members for p in member.all_parameters()]  # type: ignore[operator]
        yield from {id(parameter): parameter for parameter in every}.values()
