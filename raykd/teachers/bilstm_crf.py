"""The BiLSTM teachers: one encoder, with a CRF or a MaxEnt decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.vocabulary import WordConfig, WordPieceConfig
from raykd.layers import Tagger, TaggerShape
from raykd.layers.contextual import Context, ContextualConfig, pinned, shape_of
from raykd.layers.model import checked_layer
from raykd.teachers.ensemble import Seeded
from raykd.training import Duration, TrainingConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from raykd.corpora.tags import TagSet
    from raykd.layers import Model

Size = Annotated[int, Field(ge=1)]


class BiLSTMTeacher(Seeded, Duration):
    """Words and their characters through a BiLSTM to the decoder that the subclass names."""

    scope: Literal["language", "all"] = "language"
    embedding_dim: Annotated[int, Field(ge=0)] = 100
    """Components of a word's own vector; 0: it has none."""
    hidden_dim: Size = 128
    """Hidden size of each direction."""
    layers: Size = 1
    character_dim: Annotated[int, Field(ge=0)] = 25
    """Components of a character's vector; 0: it reads no characters."""
    character_hidden: Size = 25
    """Hidden size of each direction of the character encoder."""
    contextual: ContextualConfig | None = None
    """Frozen vectors that are read next to the words' own: of a Transformers encoder, of a word-vector file, or a list
    of these."""
    vocabulary: Annotated[WordConfig | WordPieceConfig, Field(discriminator="kind")] = WordConfig(kind="word")
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of words read as unknown in training: the word vocabulary leaves none unknown there."""
    training: TrainingConfig = TrainingConfig()
    own_signals: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "hidden", "hidden_int8")
    renamed = (("per", "scope"),)
    decoder: ClassVar[Literal["crf", "maxent", "spans"]]
    trained: ClassVar[bool] = True

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not (self.embedding_dim or self.character_dim or self.contextual):
            raise ValueError("it reads nothing; give embedding_dim, character_dim or contextual")
        return self

    def pinned(self, language: str | None = None) -> Self:
        """The same teacher with the checksums of what it is given; with the `language`'s own files, if it has one."""
        return self.model_copy(update={"contextual": pinned(self.contextual, language)})

    @property
    def tokenizer(self) -> WordConfig | WordPieceConfig:
        """How its text becomes pieces."""
        return self.vocabulary

    @property
    def reads_characters(self) -> bool:
        """Whether it reads words' characters too."""
        return self.character_dim > 0

    def build(
        self,
        *,
        vocabulary_size: int,
        tag_set: TagSet,
        characters: int,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
    ) -> Model:
        """The untrained teacher, drawn from torch's generator.

        Args:
            vocabulary_size: how many words (or pieces) the embedding has.
            tag_set: the tags it predicts.
            characters: how many characters the character embedding has, if it reads any.
            unit: what gets one label.
            dropout: variational dropout of the BiLSTM's inputs and outputs, active in training.

        Raises:
            StoreError: what `contextual` names cannot be read, or changed.
        """
        shape = TaggerShape(
            pieces=vocabulary_size,
            tags=len(tag_set),
            embedding_dim=self.embedding_dim,
            hidden_dim=self.hidden_dim,
            layers=self.layers,
            decoder=self.decoder,
            unit=unit,
            characters=characters if self.reads_characters else 0,
            character_dim=self.character_dim,
            character_hidden=self.character_hidden,
        )
        return Tagger(
            shape,
            dropout=dropout,
            word_dropout=self.word_dropout,
            context=Context.of(self.contextual),
            head=self._head(tag_set),
        )

    @property
    def depth(self) -> int:
        return self.layers

    def hidden_size(self, layer: int) -> int:
        if checked_layer(layer, self.layers, self.title):
            return 2 * self.hidden_dim
        spelling = 2 * self.character_hidden if self.reads_characters else 0
        context = Context.of(self.contextual)
        return self.embedding_dim + spelling + (context.output_size if context else 0)

    def _head(self, tag_set: TagSet) -> Callable[[int], nn.Module] | None:
        """What makes the head from the size of the encoder's states; None: what `decoder` names."""
        return None

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the numbers of words, characters and tags."""
        spelling = {"character_dim", "character_hidden"} if self.reads_characters else set()
        sizes = self.model_dump(include={"kind", "embedding_dim", "hidden_dim", "layers", *spelling})
        return {**sizes, **shape_of(self.contextual)}


class BiLSTMCRFTeacher(BiLSTMTeacher):
    """Words and their characters through a BiLSTM to a CRF (Lample et al. 2016), trained by raykd."""

    kind: Literal["bilstm_crf"] = "bilstm_crf"
    decoder: ClassVar[Literal["crf", "maxent"]] = "crf"


class BiLSTMMaxEntTeacher(BiLSTMTeacher):
    """The encoder of `bilstm_crf` with a softmax for each token: what `token` KD and case 3 start from."""

    kind: Literal["bilstm_maxent"] = "bilstm_maxent"
    decoder: ClassVar[Literal["crf", "maxent"]] = "maxent"
