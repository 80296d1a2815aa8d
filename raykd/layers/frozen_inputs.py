"""The vectors of words that a model reads of frozen encoders and word-vector files, side by side.

Shapes: B batch, T time (words), D size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.contextual import parts_of

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.contextual import ContextualConfig, FrozenFeatures


class Context(nn.Module):
    """The vectors of several encoders and tables side by side."""

    def __init__(self, parts: Sequence[FrozenFeatures]):
        super().__init__()
        self.parts = tuple(parts)
        self.output_size = sum(part.output_size for part in self.parts)

    @staticmethod
    def of(config: ContextualConfig | None) -> Context | None:
        """What a section `contextual` describes; None where it is None.

        Raises:
            StoreError: there is no such checkpoint or file, it changed, or has no such layers.
        """
        return Context([part.build() for part in parts_of(config)]) if parts_of(config) else None

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """The vectors of the words of `batch`: those that it brings, or else computed from its `context`.

        Raises:
            ValueError: it has neither.
        """
        if batch.features_BTD is not None:
            return batch.features_BTD.float()
        if len(batch.context) != len(self.parts):
            problem = (
                f"the model reads {len(self.parts)} encoders, the batch has pieces of {len(batch.context)}"
            )
            raise ValueError(f"{problem}: encode it with the model's vocabulary")
        parts = [part.compute(own) for part, own in zip(self.parts, batch.context, strict=True)]
        return torch.cat(parts, -1).float()

    def frozen(self) -> dict[str, Sequence[nn.Parameter]]:
        """By key, the parameters of each encoder and table."""
        return {part.key: part.parameters() for part in self.parts}
