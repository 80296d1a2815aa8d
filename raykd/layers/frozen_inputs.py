"""Vectors from frozen encoders and word-vector files, side by side, as inputs of a model.

Shapes: B batch, T time (words), D size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.layers.contextual import contextual_parts

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.corpora.encoded_text import TokenBatch
    from raykd.layers.contextual import ContextualConfig, FrozenFeatures


class FrozenInputs(nn.Module):
    """The word vectors of several frozen encoders and tables, concatenated.

    Args:
        parts: the encoders and tables, in the order of their vectors.
    """

    def __init__(self, parts: Sequence[FrozenFeatures]):
        super().__init__()
        self.parts = tuple(parts)
        self.output_size = sum(part.output_size for part in self.parts)

    @staticmethod
    def from_config(config: ContextualConfig | None) -> FrozenInputs | None:
        """Return the encoders and tables of a section `contextual`; None where there are none.

        Args:
            config: the section.

        Raises:
            StoreError: there is no such checkpoint or file, it changed, or has no such layers.
        """
        parts = contextual_parts(config)
        return FrozenInputs([part.build() for part in parts]) if parts else None

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """Return the vectors of the words: those stored in the batch, else computed from its `context`.

        Args:
            batch: sentences with `features_BTD`, or with the pieces of each encoder in `context`.

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
        parts = [part.compute(part_batch) for part, part_batch in zip(self.parts, batch.context, strict=True)]
        return torch.cat(parts, -1).float()

    def external_parameters(self) -> dict[str, Sequence[nn.Parameter]]:
        """Return the parameters of encoders and tables by key."""
        return {part.key: part.parameters() for part in self.parts}
