"""What a model reads next to its own embeddings: vectors of words from frozen encoders and from word-vector files.

Shapes: B batch, T time (words), D size.

What is frozen is no submodule: it is not trained, not stored with the model's weights, and named by its checksum. What
it gives for a sentence never changes, so it is computed once and stored (`precompute/features.py`); a model in
training reads it from there, and loads the encoder only where it meets text that has not been read before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import torch
from pydantic import Discriminator, Field, Tag
from torch import nn

from raykd.layers.frozen_encoder import EncoderConfig
from raykd.layers.word_vectors import WordVectorsConfig

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.corpora.encoding import TokenBatch


class FrozenFeatures(Protocol):
    """One encoder or one table of vectors, loaded when it first computes."""

    output_size: int
    key: str
    """What it is, wherever it lies: parts with the same key share their weights."""

    def compute(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """The vectors of the words of `batch`, which is in its own pieces, in float16; meaningless on padding."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """Its parameters, without their values."""
        ...

    def __deepcopy__(self, memo: object) -> FrozenFeatures:
        """Itself: what is frozen is shared."""
        ...


def _form(value: object) -> str:
    return "a table" if _has(value, "vectors") else "an encoder"


def _has(value: object, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else isinstance(value, WordVectorsConfig)


Part = EncoderConfig | WordVectorsConfig
FrozenConfig = Annotated[
    Annotated[EncoderConfig, Tag("an encoder")] | Annotated[WordVectorsConfig, Tag("a table")],
    Discriminator(_form),
]
ContextualConfig = Annotated[
    Annotated[FrozenConfig, Tag("one")]
    | Annotated[Annotated[tuple[FrozenConfig, ...], Field(min_length=1)], Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
]
"""One frozen encoder or word-vector file, or several side by side."""


def parts_of(config: Part | tuple[Part, ...] | None) -> tuple[Part, ...]:
    """The encoders and tables of a section `contextual`; none where it is None."""
    return () if config is None else config if isinstance(config, tuple) else (config,)


def pinned(config: Part | tuple[Part, ...] | None, language: str | None = None) -> tuple[Part, ...] | None:
    """The same with checksums, which make the identity that of the weights, and `{lang}` filled in."""
    return tuple(part.pinned(language) for part in parts_of(config)) or None


def shape_of(config: Part | tuple[Part, ...] | None) -> dict[str, Any]:
    """What latency depends on."""
    return {"contextual": [part.shape() for part in parts_of(config)]} if parts_of(config) else {}


class Context(nn.Module):
    """The vectors of several encoders and tables side by side."""

    def __init__(self, parts: Sequence[FrozenFeatures]):
        super().__init__()
        self.parts = tuple(parts)
        self.output_size = sum(part.output_size for part in self.parts)

    @staticmethod
    def of(config: Part | tuple[Part, ...] | None) -> Context | None:
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
