"""The student of trees written step by step: an encoder of Transformers, and a decoder with pointers to its words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from raykd.corpora.vocabulary_config import BERT_SPECIAL, BertConfig, PretrainedConfig
from raykd.forms import STEPS, LabelForm
from raykd.identity import PlainObject
from raykd.layers.checkpoint import weights_checksum
from raykd.layers.hf_config import HFConfig
from raykd.layers.tagger_config import Size
from raykd.students.encoder import EncoderStudent
from raykd.students.hf_student import HFStudent
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.pointer_generator import PointerGenerator

RANDOM_ENCODER_KEYS = ("embedding_dim", "layers", "heads", "feed_forward_dim", "positions", "architecture")
"""Keys that describe an encoder drawn at random."""


def _default_vocabulary(settings: PlainObject) -> BertConfig | PretrainedConfig:
    """Return the vocabulary of a configuration that lacks the key `vocabulary`."""
    path = settings.get("path")
    return PretrainedConfig(kind="pretrained", path=path) if path else BertConfig(kind="bert")


class Seq2SeqStudent(HFStudent):
    """An encoder with a new decoder of trees: intents, slots and pointers to words (Rongali et al. 2020).

    The encoder is a checkpoint of Transformers, or drawn at random. The decoder has the encoder's size of states and
    number of attention heads.
    """

    kind: Literal["seq2seq"] = "seq2seq"
    path: Annotated[str, Field(min_length=1)] | None = None
    """A checkpoint of an encoder, by folder or name on the Hub, to be fine-tuned; null: one is drawn at random.
    `{seed}` in it stands for the run's seed."""
    freeze: tuple[Literal["embeddings"], ...] = ()
    """Parts of a checkpoint that are not trained."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (`pinned` sets it); a checkpoint that changed is refused."""
    embedding_dim: Size | None = None
    """Components of every state, for an encoder drawn at random. This key and the next five are those of kind
    `encoder`, where null is explained too; a checkpoint has its own sizes."""
    layers: Size | None = None
    heads: Size | None = None
    feed_forward_dim: Size | None = None
    positions: Annotated[int, Field(ge=8)] | None = None
    architecture: Literal["bert", "roberta"] | None = None
    decoder_layers: Size = 3
    decoder_feed_forward_dim: Size = 512
    """Hidden size of the linear layers of the decoder that follow its attention."""
    beam: Size = 1
    """Hypotheses kept for each sentence while a tree is generated; 1 takes the best step each time."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""
    vocabulary: StudentVocabulary = Field(default_factory=_default_vocabulary)
    """For an encoder drawn at random, by default `{kind: bert}`; a checkpoint has its own."""
    forms: ClassVar[tuple[LabelForm, ...]] = (STEPS,)
    export_obstacle: ClassVar[str] = "generates trees"

    @model_validator(mode="after")
    def _is_a_checkpoint_or_drawn(self) -> Self:
        if self.path is None:
            if self.embedding_dim is None:
                raise ValueError("the encoder has neither path nor embedding_dim; set one of them")
            if self.freeze:
                raise ValueError("freeze: the encoder is drawn at random; omit it, or set path")
            self._random_encoder()  # refuses sizes that do not fit together
            return self
        if fixed_keys := [name for name in RANDOM_ENCODER_KEYS if getattr(self, name) is not None]:
            raise ValueError(f"the checkpoint in path has its own {', '.join(fixed_keys)}; omit these keys")
        vocabulary = self.vocabulary
        if not isinstance(vocabulary, PretrainedConfig) or vocabulary.path != self.path or vocabulary.pruned:
            raise ValueError("the checkpoint in path reads its own pieces, all of them; omit vocabulary")
        return self

    @override
    def pinned(self, language: str | None = None) -> Self:
        return (
            self if self.path is None else self.model_copy(update={"checksum": weights_checksum(self.path)})
        )

    @property
    @override
    def tokenizer(self) -> StudentVocabulary:
        return self.vocabulary

    @property
    @override
    def depth(self) -> int | None:
        return self._random_encoder().depth if self.path is None else None

    @override
    def build(self, inputs: BuildInputs) -> PointerGenerator:
        from raykd.layers.hf_seq2seq import pointer_generator, pointer_generator_from_checkpoint

        if self.path is not None:
            checkpoint = HFConfig(path=self.path, checksum=self.checksum, freeze=self.freeze)
            return pointer_generator_from_checkpoint(checkpoint, inputs, **self._decoder_settings)
        special = inputs.special
        # Words and WordPieces of raykd have no pieces around a sentence, of which Transformers' configuration needs
        # numbers; their padding is BERT's.
        encoder_inputs = replace(inputs, special=special if special.prefix else BERT_SPECIAL)
        masked_lm = self._random_encoder().build(encoder_inputs)
        return pointer_generator(
            masked_lm.model.base_model, inputs.tag_set, limit=masked_lm.piece_limit, prefix=len(special.prefix),
            suffix=len(special.suffix), dropout=inputs.dropout, **self._decoder_settings,
        )  # fmt: skip

    @override
    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> PointerGenerator:
        from raykd.layers.hf_seq2seq import rebuild_pointer_generator

        return rebuild_pointer_generator(
            architecture, inputs.tag_set, freeze=self.freeze, **self._decoder_settings
        )

    @override
    def shape(self) -> PlainObject:
        return self.model_dump(exclude={"scope", "vocabulary", "freeze"})

    def _random_encoder(self) -> EncoderStudent:
        sizes = {name: size for name in RANDOM_ENCODER_KEYS if (size := getattr(self, name)) is not None}
        return EncoderStudent(**sizes, vocabulary=self.vocabulary)

    @property
    def _decoder_settings(self) -> PlainObject:
        return self.model_dump(include={"decoder_layers", "decoder_feed_forward_dim", "beam"})
