"""Pointer-generators: what teachers and students that put a new decoder on a Transformers encoder have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.identity import PlainObject
from raykd.layers.checkpoint import quietly, untrained
from raykd.layers.pointer_generator import STEPS, PointerGenerator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel

    from raykd.forms import TagSet
    from raykd.layers.hf_config import HFConfig
    from raykd.layers.hf_model import Frozen
    from raykd.layers.model_config import BuildInputs


def pointer_generator(
    encoder: PreTrainedModel,
    labels: TagSet,
    *,
    decoder_layers: int,
    decoder_feed_forward_dim: int,
    dropout: float = 0.0,
    beam: int = 1,
    freeze: Sequence[Frozen] = (),
    **sizes: int,
) -> PointerGenerator:
    """An `encoder` of Transformers with a decoder that is drawn from torch's generator, of the encoder's size and
    attention heads; `sizes` are those of its reading, as of every `HFModel`.
    """
    from transformers import BertConfig, BertModel  # takes seconds to import

    if getattr(encoder, "pooler", None) is not None:
        encoder.register_module("pooler", None)  # reads the first piece alone, and nothing reads it
    config = BertConfig(
        vocab_size=len(labels) + 1, hidden_size=encoder.config.hidden_size,
        num_hidden_layers=decoder_layers, num_attention_heads=encoder.config.num_attention_heads,
        intermediate_size=decoder_feed_forward_dim, max_position_embeddings=STEPS, type_vocab_size=1,
        pad_token_id=None, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        is_decoder=True, add_cross_attention=True,
    )  # fmt: skip
    with quietly():
        decoder = BertModel(config, add_pooling_layer=False)
    return PointerGenerator(encoder, decoder, labels, beam=beam, freeze=freeze, **sizes)


def of_checkpoint(config: HFConfig, inputs: BuildInputs, **decoder: int) -> PointerGenerator:
    """The encoder of `config`'s checkpoint, with its dropout, and a new decoder.

    Raises:
        StoreError: there is no such checkpoint, it changed, or it has no layer that `freeze` names.
    """
    encoder, _ = config.loaded("AutoModel")
    sizes = {**config.sizes(encoder), **decoder}
    model = pointer_generator(encoder, inputs.tag_set, dropout=inputs.dropout, freeze=config.freeze, **sizes)
    return model.pruned(inputs.kept)


def rebuilt_pointer_generator(
    architecture: PlainObject, labels: TagSet, *, freeze: Sequence[Frozen], **decoder: int
) -> PointerGenerator:
    """The model of an `architecture` that `PointerGenerator.architecture` gave, without the checkpoint and its
    weights.
    """
    encoder = untrained("AutoModel", architecture["config"])
    sizes = {name: architecture[name] for name in ("limit", "prefix", "suffix")}
    return pointer_generator(encoder, labels, freeze=freeze, **sizes, **decoder)
