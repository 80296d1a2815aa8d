"""The student that is a Transformers encoder, pretrained as a masked language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from raykd.corpora.pieces import Special
from raykd.corpora.vocabulary import BERT_SPECIAL, BertConfig
from raykd.layers.checkpoint import quietly
from raykd.layers.encoder import MaskedLanguageModel
from raykd.layers.tagger_config import Size
from raykd.spec import Frozen
from raykd.students.student import refuse_uneven_heads
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from raykd.forms import TagSet


class EncoderStudent(Frozen):
    """An encoder of Transformers, drawn at random, with the head of a masked language model (Devlin et al. 2019).

    What `raykd export` writes of it is read by `AutoModel`.
    """

    kind: Literal["encoder"] = "encoder"
    architecture: Literal["bert", "roberta"] = "bert"
    """The configuration of Transformers."""
    embedding_dim: Size
    """E, components of a piece's vector and of every state."""
    layers: Size = 4
    heads: Size = 4
    """Attention heads of a layer; E must be divisible by them."""
    feed_forward_dim: Size | None = None
    """Hidden size of the linear layers that follow the attention; null: 4 E."""
    initializer_range: Annotated[float, Field(gt=0)] = 0.02
    """Standard deviation of the weights that are drawn; 0.02 is BERT's."""
    positions: Annotated[int, Field(ge=8)] = 512
    """The most pieces that it reads at once."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""
    vocabulary: StudentVocabulary = BertConfig(kind="bert")
    decoder: ClassVar[Literal["maxent"]] = "maxent"
    projection: ClassVar[None] = None
    embeddings: ClassVar[None] = None
    contextual: ClassVar[None] = None
    encoding: ClassVar[Literal["relative_pos"]] = "relative_pos"
    reads_characters: ClassVar[bool] = False
    word_dropout: ClassVar[float] = 0.0

    @model_validator(mode="after")
    def _heads_divide_e(self) -> Self:
        refuse_uneven_heads(self.embedding_dim, self.heads)
        return self

    def pinned(self, language: str | None = None) -> Self:
        """The same; it is given nothing."""
        return self

    @property
    def tokenizer(self) -> StudentVocabulary:
        """How its text becomes pieces."""
        return self.vocabulary

    @property
    def depth(self) -> int:
        """Layers that have hidden states."""
        return self.layers

    def build(
        self,
        *,
        vocabulary_size: int,
        tag_set: TagSet,
        characters: int = 0,
        unit: Literal["word", "sentence"] = "word",
        dropout: float = 0.0,
        special: Special = BERT_SPECIAL,
    ) -> MaskedLanguageModel:
        """The untrained model, drawn from torch's generator. It predicts pieces, whatever `tag_set` and `unit` are.

        Args:
            vocabulary_size: how many pieces there are.
            dropout: of states and of attention, active in training.
            special: the pieces of its vocabulary that are none of a word.
        """
        from transformers import AutoConfig  # takes seconds to import

        # RoBERTa numbers positions from behind the padding's id.
        more = {"bert": 0, "roberta": special.padding + 1}[self.architecture]
        types = {"bert": 2, "roberta": 1}[self.architecture]
        config = AutoConfig.for_model(
            self.architecture, vocab_size=vocabulary_size, hidden_size=self.embedding_dim,
            num_hidden_layers=self.layers, num_attention_heads=self.heads,
            intermediate_size=self.feed_forward_dim or 4 * self.embedding_dim,
            max_position_embeddings=self.positions + more, type_vocab_size=types, pad_token_id=special.padding,
            bos_token_id=special.prefix[0], eos_token_id=special.suffix[-1],
            hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
            initializer_range=self.initializer_range,
            tie_word_embeddings=True,
        )  # fmt: skip
        return self._model(config, prefix=len(special.prefix), suffix=len(special.suffix))

    def rebuild(
        self, architecture: Mapping[str, Any], *, tag_set: TagSet, unit: Literal["word", "sentence"] = "word"
    ) -> MaskedLanguageModel:
        """The model of an `architecture` that `MaskedLanguageModel.architecture` gave."""
        from transformers import AutoConfig  # takes seconds to import

        around = {name: architecture[name] for name in ("prefix", "suffix")}
        return self._model(AutoConfig.for_model(**architecture["config"]), **around)

    def shape(self) -> dict[str, Any]:
        """What its latency depends on, apart from the number of pieces."""
        return self.model_dump(exclude={"scope", "vocabulary", "initializer_range"})

    def _model(self, config: Any, *, prefix: int, suffix: int) -> MaskedLanguageModel:
        from transformers import AutoModelForMaskedLM

        with quietly():
            model = AutoModelForMaskedLM.from_config(config, dtype=torch.float32)
        return MaskedLanguageModel(model, limit=self.positions, prefix=prefix, suffix=suffix)
