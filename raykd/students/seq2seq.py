"""The student that writes a tree step by step: an encoder of Transformers, and a decoder with pointers to its words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from raykd.corpora.vocabulary import BERT_SPECIAL, BertConfig, PretrainedConfig
from raykd.forms import STEPS, LabelForm
from raykd.identity import PlainObject
from raykd.layers.checkpoint import weights_checksum
from raykd.layers.hf_config import HFConfig
from raykd.layers.tagger_config import Size
from raykd.students.encoder import EncoderStudent
from raykd.students.transformers_student import TransformersStudent
from raykd.students.vocabulary import StudentVocabulary

if TYPE_CHECKING:
    from raykd.layers.model_config import BuildInputs
    from raykd.layers.pointer_generator import PointerGenerator

DRAWN = ("embedding_dim", "layers", "heads", "feed_forward_dim", "positions", "architecture")
"""What says how an encoder is drawn."""


def _pieces(settings: PlainObject) -> BertConfig | PretrainedConfig:
    """The vocabulary where none is written."""
    path = settings.get("path")
    return PretrainedConfig(kind="pretrained", path=path) if path else BertConfig(kind="bert")


class Seq2SeqStudent(TransformersStudent):
    """An encoder of Transformers, a checkpoint or drawn at random, with a new decoder that generates trees of intents
    and slots and points to words (Rongali et al. 2020). The decoder has the encoder's size and attention heads.
    """

    kind: Literal["seq2seq"] = "seq2seq"
    path: Annotated[str, Field(min_length=1)] | None = None
    """A checkpoint of an encoder, by folder or name on the Hub, which is fine-tuned; null: one is drawn at random.
    `{seed}` in it stands for the run's seed."""
    freeze: tuple[Literal["embeddings"], ...] = ()
    """Of a checkpoint, what is not trained."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (`pinned` sets it); a checkpoint that changed is refused."""
    embedding_dim: Size | None = None
    """Of an encoder that is drawn: components of every state. It and the five that follow are as of kind `encoder`,
    which also says what null is; a checkpoint has its own."""
    layers: Size | None = None
    heads: Size | None = None
    feed_forward_dim: Size | None = None
    positions: Annotated[int, Field(ge=8)] | None = None
    architecture: Literal["bert", "roberta"] | None = None
    decoder_layers: Size = 3
    decoder_feed_forward_dim: Size = 512
    """Hidden size of the linear layers of the decoder that follow its attention."""
    beam: Size = 1
    """Hypotheses that are kept of each sentence while a tree is generated; 1 takes the best step each time."""
    scope: Literal["language", "all"] = "all"
    """One for each language, or one for all."""
    vocabulary: StudentVocabulary = Field(default_factory=_pieces)
    """Of an encoder that is drawn, by default `{kind: bert}`; a checkpoint has its own."""
    forms: ClassVar[tuple[LabelForm, ...]] = (STEPS,)
    export_obstacle: ClassVar[str] = "generates trees"

    @model_validator(mode="after")
    def _is_a_checkpoint_or_drawn(self) -> Self:
        if self.path is None:
            if self.embedding_dim is None:
                raise ValueError("the encoder has neither path nor embedding_dim; set one of them")
            if self.freeze:
                raise ValueError("freeze: the encoder is drawn at random; omit it, or set path")
            self._drawn()
            return self
        if given := [name for name in DRAWN if getattr(self, name) is not None]:
            raise ValueError(
                f"the checkpoint in path has its own {', '.join(given)}; omit what is written here"
            )
        own = self.vocabulary
        if not isinstance(own, PretrainedConfig) or own.path != self.path or own.pruned:
            raise ValueError("the checkpoint in path reads its own pieces, all of them; omit vocabulary")
        return self

    def pinned(self, language: str | None = None) -> Self:
        return (
            self if self.path is None else self.model_copy(update={"checksum": weights_checksum(self.path)})
        )

    @property
    def tokenizer(self) -> StudentVocabulary:
        return self.vocabulary

    @property
    def depth(self) -> int | None:
        return self._drawn().depth if self.path is None else None

    def build(self, inputs: BuildInputs) -> PointerGenerator:
        from raykd.layers.hf_seq2seq import of_checkpoint, pointer_generator

        if self.path is not None:
            given = HFConfig(path=self.path, checksum=self.checksum, freeze=self.freeze)
            return of_checkpoint(given, inputs, **self._decoder)
        special = inputs.special
        # Words and WordPieces of raykd's own have no pieces around a sentence, and the padding of BERT's.
        drawn = self._drawn().build(replace(inputs, special=special if special.prefix else BERT_SPECIAL))
        around = {"prefix": len(special.prefix), "suffix": len(special.suffix)}
        encoder, sizes = drawn.model.base_model, {"limit": drawn.piece_limit, **around}
        return pointer_generator(encoder, inputs.tag_set, dropout=inputs.dropout, **sizes, **self._decoder)

    def rebuild(self, architecture: PlainObject, inputs: BuildInputs) -> PointerGenerator:
        from raykd.layers.hf_seq2seq import rebuilt_pointer_generator

        return rebuilt_pointer_generator(architecture, inputs.tag_set, freeze=self.freeze, **self._decoder)

    def shape(self) -> PlainObject:
        return self.model_dump(exclude={"scope", "vocabulary", "freeze"})

    def _drawn(self) -> EncoderStudent:
        """The encoder that is drawn at random."""
        sizes = {name: own for name in DRAWN if (own := getattr(self, name)) is not None}
        return EncoderStudent(**sizes, vocabulary=self.vocabulary)

    @property
    def _decoder(self) -> PlainObject:
        """What says how trees are generated."""
        return self.model_dump(include={"decoder_layers", "decoder_feed_forward_dim", "beam"})
