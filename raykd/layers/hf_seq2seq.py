"""Pointer-generators: teachers and students with a new decoder on a Transformers encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.identity import PlainObject
from raykd.layers.checkpoint import quiet_transformers, untrained_model
from raykd.layers.pointer_generator import DECODER_POSITIONS, PointerGenerator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedModel

    from raykd.forms import TagSet
    from raykd.layers.hf_config import HFConfig
    from raykd.layers.hf_model import FrozenPart
    from raykd.layers.model_config import BuildInputs


def pointer_generator(
    encoder: PreTrainedModel,
    labels: TagSet,
    *,
    decoder_layers: int,
    decoder_feed_forward_dim: int,
    dropout: float = 0.0,
    beam: int = 1,
    freeze: Sequence[FrozenPart] = (),
    **sizes: int,
) -> PointerGenerator:
    """Put a new decoder, drawn from torch's generator, on a Transformers encoder.

    The decoder has the encoder's size of states and number of attention heads.

    Args:
        encoder: the encoder.
        labels: labels that are generated.
        decoder_layers: layers of the decoder.
        decoder_feed_forward_dim: hidden size of the linear layers that follow its attention.
        dropout: dropout of the decoder.
        beam: hypotheses kept for a sentence; 1 is greedy.
        freeze: parts of the encoder that are not trained.
        **sizes: `limit`, `prefix` and `suffix` of `HFModel`.
    """
    from transformers import BertConfig, BertModel  # takes seconds to import

    if getattr(encoder, "pooler", None) is not None:
        encoder.register_module("pooler", None)  # its output is never read
    config = BertConfig(
        vocab_size=len(labels) + 1, hidden_size=encoder.config.hidden_size,
        num_hidden_layers=decoder_layers, num_attention_heads=encoder.config.num_attention_heads,
        intermediate_size=decoder_feed_forward_dim, max_position_embeddings=DECODER_POSITIONS,
        type_vocab_size=1, pad_token_id=None, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        is_decoder=True, add_cross_attention=True,
    )  # fmt: skip
    with quiet_transformers():
        decoder = BertModel(config, add_pooling_layer=False)
    return PointerGenerator(encoder, decoder, labels, beam=beam, freeze=freeze, **sizes)


def pointer_generator_from_checkpoint(
    config: HFConfig, inputs: BuildInputs, **decoder: int
) -> PointerGenerator:
    """Load the encoder of a checkpoint, with its own dropout, and put a new decoder on it.

    Args:
        config: the checkpoint.
        inputs: tags, vocabulary and dropout of the decoder.
        **decoder: settings of the decoder, see `pointer_generator`.

    Raises:
        StoreError: there is no such checkpoint, it changed, or it has no layer that `freeze` names.
    """
    encoder, _ = config.load("AutoModel")
    sizes = {**config.sizes(encoder), **decoder}
    model = pointer_generator(encoder, inputs.tag_set, dropout=inputs.dropout, freeze=config.freeze, **sizes)
    return model.prune(inputs.kept_pieces)


def rebuild_pointer_generator(
    architecture: PlainObject, labels: TagSet, *, freeze: Sequence[FrozenPart], **decoder: int
) -> PointerGenerator:
    """Build the model of a stored architecture, without the checkpoint and its weights.

    Args:
        architecture: result of `PointerGenerator.architecture`.
        labels: labels that are generated.
        freeze: parts of the encoder that are not trained.
        **decoder: settings of the decoder, see `pointer_generator`.
    """
    encoder = untrained_model("AutoModel", architecture["config"])
    sizes = {name: architecture[name] for name in ("limit", "prefix", "suffix")}
    return pointer_generator(encoder, labels, freeze=freeze, **sizes, **decoder)
