"""The common configuration of `Tagger`s: inputs and dropout; subclasses add encoder and head."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.identity import PlainObject
from raykd.layers.contextual import ContextualConfig, contextual_shape, pinned_parts
from raykd.layers.model_config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.forms import TagSet
    from raykd.layers.heads import Head
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.sequence_encoder import SequenceEncoder
    from raykd.layers.tagger import Tagger

Size = Annotated[int, Field(ge=1)]


class TaggerConfig(ModelConfig):
    """A tagger of pieces, characters and frozen vectors; subclasses add an encoder and a head.

    Dropout is variational: of the encoder's inputs and outputs, and of a parser's projections.
    """

    embedding_dim: Annotated[int, Field(ge=0)]
    """E, components of a piece's vector; 0: it has none."""
    character_dim: Annotated[int, Field(ge=0)] = 0
    """Components of a character's vector; 0: it reads no characters."""
    character_hidden: Size = 25
    """Hidden size of each direction of the character encoder."""
    contextual: ContextualConfig | None = None
    """Frozen vectors that are read next to the pieces' own: of a Transformers encoder, of a word-vector file, or a list
    of these. They count in latency and size."""
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of words (or pieces) read as unknown in training. It trains the vector of unknown words, which do not
    occur in the training text of a word vocabulary."""
    sizes: ClassVar[tuple[str, ...]]
    """Keys of a subclass with an effect on latency."""

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not (self.embedding_dim or self.character_dim or self.contextual):
            raise ValueError("the model has no input; set embedding_dim, character_dim or contextual")
        return self

    @override
    def pinned(self, language: str | None = None) -> Self:
        return self.model_copy(update={"contextual": pinned_parts(self.contextual, language)})

    @property
    def reads_characters(self) -> bool:
        """True if the tagger reads words' characters too."""
        return self.character_dim > 0

    @property
    def projected_size(self) -> int:
        """Width of the projection, 0 where there is none."""
        return 0

    @override
    def build(self, inputs: BuildInputs) -> Tagger:
        from raykd.layers.frozen_inputs import FrozenInputs
        from raykd.layers.tagger import Tagger, TaggerShape

        shape = TaggerShape(
            pieces=inputs.vocabulary_size,
            tags=len(inputs.tag_set),
            embedding_dim=self.embedding_dim,
            projection=self.projected_size,
            unit=inputs.unit,
            characters=inputs.characters if self.reads_characters else 0,
            character_dim=self.character_dim,
            character_hidden=self.character_hidden,
        )
        return Tagger(
            shape,
            dropout=inputs.dropout,
            word_dropout=self.word_dropout,
            context=FrozenInputs.from_config(self.contextual),
            encoder=self._encoder(inputs.dropout),
            head=self._head(inputs.tag_set, inputs.dropout),
        )

    @override
    def shape(self) -> PlainObject:
        character_keys = {"character_dim", "character_hidden"} if self.reads_characters else set()
        sizes = self.model_dump(include={"kind", "embedding_dim", *self.sizes, *character_keys})
        return {**sizes, **contextual_shape(self.contextual)}

    @abstractmethod
    def _encoder(self, dropout: float) -> Callable[[int], SequenceEncoder]:
        """Return a builder of the encoder. The builder takes the size of the inputs."""

    @abstractmethod
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], Head]:
        """Return a builder of the head. The builder takes the size of the states."""
