"""The mean of several models, as one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from torch import nn
from typing_extensions import override

from raykd.errors import ExportError
from raykd.layers.model import Model, Output
from raykd.structures import Mixture, log_linear_pool

if TYPE_CHECKING:
    from onnx import ModelProto

    from raykd.corpora.encoded_text import TokenBatch


class Ensemble(Model):
    """The mean of several models: of their scores (a log-linear pool), or of their distributions (a mixture).

    Args:
        members: the models.
        combine: average the `scores` or the `posteriors`.
    """

    def __init__(self, members: Sequence[Model], *, combine: Literal["scores", "posteriors"]):
        super().__init__()
        self.members, self.combine = nn.ModuleList(members), combine

    @override
    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        if layers:
            raise ValueError(
                "the mean of several models has no hidden states; read them from one of its members"
            )
        members = tuple(member(batch).distribution for member in self.members)
        pooled = log_linear_pool(members) if self.combine == "scores" else Mixture(members)
        return Output(pooled, legal=self.legal)

    @override
    def to_onnx(self) -> ModelProto:
        raise ExportError("it is the mean of several models; export one of its members")

    @override
    def external_parameters(self) -> Mapping[str, Sequence[nn.Parameter]]:
        return {
            key: parameters
            for member in self.members
            for key, parameters in member.external_parameters().items()  # type: ignore[operator]
        }
