"""The Transformers encoder as a student, pretrained as a masked language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.corpora.vocabulary_config import BertConfig
from raykd.forms import PIECES, LabelForm
from raykd.identity import PlainObject
from raykd.layers.tagger_config import Size
from raykd.students.hf_student import HFStudent
from raykd.students.student_config import refuse_uneven_heads
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from raykd.layers.masked_language_model import MaskedLanguageModel
    from raykd.layers.model_config import BuildInputs


class EncoderStudent(HFStudent):
    """An encoder of Transformers, drawn at random, with the head of a masked language model (Devlin et al. 2019).

    `raykd export` writes it as a checkpoint that `AutoModel` reads.
    """

    kind: Literal["encoder"] = "encoder"
    architecture: Literal["bert", "roberta"] = "bert"
    """Architecture of the encoder, as Transformers names it."""
    embedding_dim: Size
    """E, components of a piece's vector and of every state."""
    layers: Size = 4
    heads: Size = 4
    """Attention heads of a layer; E must be divisible by them."""
    feed_forward_dim: Size | None = None
    """Hidden size of the linear layers that follow the attention; null: 4 E."""
    initializer_range: Annotated[float, Field(gt=0)] = 0.02
    """Standard deviation of the weights when drawn; 0.02 is BERT's."""
    positions: Annotated[int, Field(ge=8)] = 512
    """Largest number of pieces read at once, the special ones around a sentence included."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""
    vocabulary: StudentVocabulary = BertConfig(kind="bert")
    forms: ClassVar[tuple[LabelForm, ...]] = (PIECES,)
    export_obstacle: ClassVar[str] = "is a masked language model"

    @model_validator(mode="after")
    def _heads_divide_e(self) -> Self:
        refuse_uneven_heads(self.embedding_dim, self.heads)
        return self

    @property
    @override
    def tokenizer(self) -> StudentVocabulary:
        return self.vocabulary

    @property
    @override
    def depth(self) -> int:
        return self.layers

    @override
    def build(self, inputs: BuildInputs) -> MaskedLanguageModel:
        from transformers import AutoConfig  # takes seconds to import

        special = inputs.special
        # RoBERTa's positions start after the padding's id.
        extra_positions = {"bert": 0, "roberta": special.padding + 1}[self.architecture]
        token_types = {"bert": 2, "roberta": 1}[self.architecture]
        config = AutoConfig.for_model(
            self.architecture, vocab_size=inputs.vocabulary_size, hidden_size=self.embedding_dim,
            num_hidden_layers=self.layers, num_attention_heads=self.heads,
            intermediate_size=self.feed_forward_dim or 4 * self.embedding_dim,
            max_position_embeddings=self.positions + extra_positions, type_vocab_size=token_types,
            pad_token_id=special.padding, bos_token_id=special.prefix[0], eos_token_id=special.suffix[-1],
            hidden_dropout_prob=inputs.dropout, attention_probs_dropout_prob=inputs.dropout,
            initializer_range=self.initializer_range,
            tie_word_embeddings=True,
        )  # fmt: skip
        return self._model(config, prefix=len(special.prefix), suffix=len(special.suffix))

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> MaskedLanguageModel:
        from transformers import AutoConfig  # takes seconds to import

        special_pieces = {name: architecture[name] for name in ("prefix", "suffix")}
        return self._model(AutoConfig.for_model(**architecture["config"]), **special_pieces)

    @override
    def shape(self) -> PlainObject:
        return self.model_dump(exclude={"scope", "vocabulary", "initializer_range"})

    def _model(self, config: Any, *, prefix: int, suffix: int) -> MaskedLanguageModel:
        import torch
        from transformers import AutoModelForMaskedLM

        from raykd.layers.checkpoint import quiet_transformers
        from raykd.layers.masked_language_model import MaskedLanguageModel

        with quiet_transformers():
            model = AutoModelForMaskedLM.from_config(config, dtype=torch.float32)
        return MaskedLanguageModel(model, limit=self.positions, prefix=prefix, suffix=suffix)
