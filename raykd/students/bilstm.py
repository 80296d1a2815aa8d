"""The BiLSTM student."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.vocabulary import WordPieceConfig
from raykd.layers import Tagger, TaggerShape
from raykd.layers.contextual import Context, ContextualConfig, pinned, shape_of
from raykd.spec import Frozen
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from raykd.corpora.tags import TagSet
    from raykd.layers import Model

Size = Annotated[int, Field(ge=1)]


class BiLSTMStudent(Frozen):
    """Embedded pieces through a BiLSTM to a CRF or MaxEnt decoder (Mukherjee & Awadallah 2020, §3).

    Predicts one label per word, at the word's first piece, or one per sentence. With a word vocabulary and
    characters it is the student of Wang et al., ACL 2021, §4.1.
    """

    kind: Literal["bilstm"] = "bilstm"
    scope: Literal["language", "all"] = "all"
    """One student for each language, or one for all. Of one per language the score is the mean, the size the sum."""
    embedding_dim: Annotated[int, Field(ge=0)]
    """E, components of a piece's vector; 0: it has none."""
    hidden_dim: Size
    """H, hidden size of each direction."""
    layers: Size = 1
    decoder: Literal["crf", "maxent"] = "crf"
    vocabulary: StudentVocabulary = WordPieceConfig(kind="wordpiece")
    character_dim: Annotated[int, Field(ge=0)] = 0
    """Components of a character's vector; 0: it reads no characters."""
    character_hidden: Size = 25
    """Hidden size of each direction of the character encoder."""
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of words (or pieces) read as unknown in training: a word vocabulary leaves none unknown there."""

    contextual: ContextualConfig | None = None
    """Frozen vectors that are read next to the pieces' own: of a Transformers encoder, of a word-vector file, or a list
    of these. They count in latency and size."""

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not (self.embedding_dim or self.character_dim or self.contextual):
            raise ValueError("it reads nothing; give embedding_dim, character_dim or contextual")
        return self

    def pinned(self, language: str | None = None) -> Self:
        """The same student with the checksums of what it is given; with the `language`'s own files, if it has one."""
        return self.model_copy(update={"contextual": pinned(self.contextual, language)})

    @property
    def tokenizer(self) -> StudentVocabulary:
        """How its text becomes pieces."""
        return self.vocabulary

    @property
    def depth(self) -> int:
        """Layers of its encoder."""
        return self.layers

    @property
    def reads_characters(self) -> bool:
        """Whether it reads words' characters too."""
        return self.character_dim > 0

    def build(
        self,
        *,
        vocabulary_size: int,
        tag_set: TagSet,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
    ) -> Model:
        """The untrained student, drawn from torch's generator.

        Args:
            vocabulary_size: how many pieces the embedding has.
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
        context = Context.of(self.contextual)
        return Tagger(shape, dropout=dropout, word_dropout=self.word_dropout, context=context)

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the numbers of pieces, characters and tags."""
        sizes = {"embedding_dim", "hidden_dim", "layers", "decoder"}
        spelling = {"character_dim", "character_hidden"} if self.reads_characters else set()
        return {**self.model_dump(include={"kind", *sizes, *spelling}), **shape_of(self.contextual)}
