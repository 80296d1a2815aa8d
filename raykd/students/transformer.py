"""The Transformer student."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.layers.tagger_config import Size
from raykd.students.student_config import refuse_uneven_heads
from raykd.students.tagger_student import TaggerStudent

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.layers.transformer import Transformer


class TransformerStudent(TaggerStudent):
    """Embedded pieces through a small Transformer to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, Table 15).

    The state of a sentence is the mean over its pieces.
    """

    kind: Literal["transformer"] = "transformer"
    embedding_dim: Annotated[int, Field(ge=1)]
    """E, components of a piece's vector and of every state. With characters or frozen vectors the whole input of a
    piece is projected to E."""
    heads: Size = 4
    """Attention heads of a layer; E must be divisible by them."""
    feed_forward_dim: Size | None = None
    """Hidden size of the linear layers that follow the attention; null: 4 E."""
    sizes: ClassVar[tuple[str, ...]] = ("layers", "heads", "feed_forward_dim")

    @model_validator(mode="after")
    def _heads_divide_e(self) -> Self:
        refuse_uneven_heads(self.embedding_dim, self.heads)
        return self

    @override
    def _encoder(self, dropout: float) -> Callable[[int], Transformer]:
        from raykd.layers.transformer import Transformer

        return partial(
            Transformer,
            size=self.embedding_dim,
            layers=self.layers,
            heads=self.heads,
            feed_forward=self.feed_forward_dim or 4 * self.embedding_dim,
            dropout=dropout,
        )
