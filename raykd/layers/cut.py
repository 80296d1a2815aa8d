"""The cut of a smaller Transformers encoder from a larger one: what stays of its layers, heads, neurons and vectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.spec import Frozen

if TYPE_CHECKING:
    from transformers import PretrainedConfig

Size = Annotated[int, Field(ge=1)]


class Cut(Frozen):
    """Parts of a Transformers encoder that stay; null stands for all of them.

    The importance of a head or a neuron is the mean length of the vector that it adds to the state of a piece, over
    pieces of the training text, in the encoder before the cut. Which heads and neurons stay is decided layer by layer.
    """

    layers: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None
    """Layers that stay: `[0, 1, 2]` are the three lowest of the checkpoint."""
    heads: Size | None = None
    """Number of attention heads that stay in each layer, the most important ones."""
    feed_forward: Size | None = None
    """Number of neurons that stay in the feed-forward part of each layer, the most important ones."""
    embedding_rank: Size | None = None
    """Rank of the matrix of piece vectors, which becomes the product of two by a truncated singular value
    decomposition: of V pieces and D components, V × rank and rank × D parameters stay."""

    @model_validator(mode="after")
    def _layers_in_order(self) -> Self:
        if self.layers is not None and list(self.layers) != sorted(set(self.layers)):
            raise ValueError(
                f"layers: a cut keeps the order of the layers, so write {sorted(set(self.layers))}"
            )
        return self

    @property
    def is_whole(self) -> bool:
        """True if all parts stay."""
        return not (self.is_narrow or self.layers or self.embedding_rank)

    @property
    def is_narrow(self) -> bool:
        """True if not all heads or neurons stay."""
        return bool(self.heads or self.feed_forward)

    @property
    def plain(self) -> Cut:
        """The cut alone, without the settings of a class that extends it."""
        return Cut(**{name: getattr(self, name) for name in Cut.model_fields})

    @staticmethod
    def from_plain(plain: PlainObject) -> Cut:
        """Read a cut back from plain data, as of `model_dump`."""
        return Cut.model_validate_json(json.dumps(plain))

    def check(self, config: PretrainedConfig, name: str) -> None:
        """Check that an encoder has the parts that stay.

        Args:
            config: configuration of the whole encoder.
            name: the checkpoint, for messages.

        Raises:
            StoreError: a layer is missing, the encoder is smaller than the cut, or its layers cannot be narrowed.
        """
        depth = config.num_hidden_layers
        if self.layers and self.layers[-1] >= depth:
            hint = f"set student.layers to numbers from 0 to {depth - 1}"
            raise StoreError(name, f"has no layer {self.layers[-1]}: it has {depth} layers, from 0", hint)
        if self.is_narrow and config.model_type not in FEED_FORWARD:
            problem = (
                f"is an encoder of type {config.model_type}, in which heads and neurons cannot be told apart"
            )
            hint = f"omit student.heads and student.feed_forward, or use one of {', '.join(FEED_FORWARD)}"
            raise StoreError(name, problem, hint)
        sizes: dict[str, tuple[str, int]] = {"heads": ("attention heads", config.num_attention_heads)}
        sizes["embedding_rank"] = ("components of a piece vector", vector_size(config))
        if config.model_type in FEED_FORWARD:
            sizes["feed_forward"] = ("neurons", getattr(config, FEED_FORWARD[config.model_type]))
        for setting, (what, largest) in sizes.items():
            kept = getattr(self, setting)
            if kept is not None and kept >= largest:
                hint = f"set student.{setting} below {largest}, or omit it"
                raise StoreError(
                    name, f"has {largest:,} {what}, and a cut to {kept:,} leaves nothing out", hint
                )


FEED_FORWARD = {
    "bert": "intermediate_size", "roberta": "intermediate_size", "xlm-roberta": "intermediate_size",
    "camembert": "intermediate_size", "electra": "intermediate_size", "distilbert": "hidden_dim",
}  # fmt: skip
"""Type of an encoder whose layers can be narrowed → its configuration's name for the number of neurons."""


def vector_size(config: Any) -> int:
    """Return the number of components of the piece vectors of an encoder, of which some have fewer than a state.

    Args:
        config: configuration of the encoder.
    """
    return getattr(config, "embedding_size", None) or config.hidden_size
