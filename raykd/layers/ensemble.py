"""Several taggers as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from torch import nn

from raykd.layers.model import Tagger
from raykd.structures import Mixture, log_linear_pool

if TYPE_CHECKING:
    from raykd.corpora.encoding import TokenBatch
    from raykd.structures import Distribution


class Ensemble(Tagger):
    """The mean of several taggers: of their scores (a log-linear pool), or of their distributions (a mixture)."""

    def __init__(self, members: Sequence[Tagger], *, combine: Literal["scores", "posteriors"]):
        super().__init__()
        self.members, self.combine = nn.ModuleList(members), combine

    def forward(self, batch: TokenBatch) -> Distribution:
        said = tuple(member(batch) for member in self.members)
        return log_linear_pool(said) if self.combine == "scores" else Mixture(said)

    def all_parameters(self) -> Iterator[nn.Parameter]:
        # Members may share a frozen encoder.
        every = [p for member in self.members for p in member.all_parameters()]  # type: ignore[operator]
        yield from {id(parameter): parameter for parameter in every}.values()
