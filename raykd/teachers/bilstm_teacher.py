"""The base of teachers with a BiLSTM: words and their characters, and the encoder."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.vocabulary_config import WordConfig, WordPieceConfig
from raykd.forms import FLAT, SPANS, UTTERANCES, LabelForm
from raykd.layers.optimisation import TrainingConfig
from raykd.layers.stage_schedule import Duration
from raykd.layers.tagger_config import Size, TaggerConfig
from raykd.teachers.ensemble import EnsembleTeacher

if TYPE_CHECKING:
    from collections.abc import Callable

    from raykd.forms import TagSet
    from raykd.layers.bilstm import BiLSTM
    from raykd.layers.heads import Head


class BiLSTMTeacher(EnsembleTeacher, Duration, TaggerConfig):
    """Words and characters through a BiLSTM to the decoder of a subclass."""

    scope: Literal["language", "all"] = "language"
    embedding_dim: Annotated[int, Field(ge=0)] = 100
    """Components of a word's own vector; 0: it has none."""
    hidden_dim: Size = 128
    """Hidden size of each direction."""
    layers: Size = 1
    character_dim: Annotated[int, Field(ge=0)] = 25
    """Components of a character's vector; 0: it reads no characters."""
    vocabulary: Annotated[WordConfig | WordPieceConfig, Field(discriminator="kind")] = WordConfig(kind="word")
    word_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of words read as unknown in training: the word vocabulary leaves none unknown there."""
    training: TrainingConfig = TrainingConfig()
    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, UTTERANCES)
    model_signals: ClassVar[tuple[str, ...]] = ("emissions", "transitions", "hidden", "hidden_int8")
    decoder: ClassVar[Literal["crf", "maxent", "spans", "arcs"]]
    trained: ClassVar[bool] = True
    sizes: ClassVar[tuple[str, ...]] = ("hidden_dim", "layers")

    @property
    @override
    def tokenizer(self) -> WordConfig | WordPieceConfig:
        return self.vocabulary

    @property
    @override
    def depth(self) -> int:
        return self.layers

    @override
    def hidden_size(self, layer: int) -> int:
        from raykd.layers.frozen_inputs import FrozenInputs
        from raykd.layers.model import resolve_layer

        if resolve_layer(layer, self.layers, self.title):
            return 2 * self.hidden_dim
        character_size = 2 * self.character_hidden if self.reads_characters else 0
        frozen_inputs = FrozenInputs.from_config(self.contextual)
        return self.embedding_dim + character_size + (frozen_inputs.output_size if frozen_inputs else 0)

    @override
    def _encoder(self, dropout: float) -> Callable[[int], BiLSTM]:
        from raykd.layers.bilstm import BiLSTM

        return partial(BiLSTM, hidden=self.hidden_dim, layers=self.layers, dropout=dropout)

    @override
    def _head(self, tag_set: TagSet, dropout: float) -> Callable[[int], Head]:
        from raykd.layers.heads import head_builder

        return head_builder(self.decoder, len(tag_set), tag_set.allowed_places())
