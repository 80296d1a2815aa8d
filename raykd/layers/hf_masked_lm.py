"""Masked language models from Transformers checkpoints: teachers, and students with continued pretraining."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.layers.checkpoint import untrained_model
from raykd.layers.cut import Cut
from raykd.layers.masked_language_model import MaskedLanguageModel

if TYPE_CHECKING:
    from raykd.layers.hf_config import HFConfig
    from raykd.layers.model_config import BuildInputs

AUTO_CLASS = "AutoModelForMaskedLM"


def masked_language_model(config: HFConfig, inputs: BuildInputs, *, trained: bool) -> MaskedLanguageModel:
    """Load a checkpoint with a masked-language-model head.

    Parameters that the head lacks are drawn from torch's generator. Its last layer is the transposed embedding.

    Args:
        config: the checkpoint.
        inputs: the vocabulary; the checkpoint's embedding may have more rows.
        trained: train the model further; else the checkpoint must have a trained head.

    Raises:
        StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be trained, or it has
            no layer that `freeze` names.
    """
    model, missing = config.load(AUTO_CLASS)
    if missing and not trained:
        problem = f"has no trained masked-language-model head ({missing[0]} is missing)"
        raise StoreError(config.path, problem, "set fine_tune: true")
    pieces, kept_pieces = inputs.vocabulary_size, inputs.kept_pieces
    used_rows = pieces if len(model.get_input_embeddings().get_parameter("weight")) > pieces else None
    encoder = MaskedLanguageModel(model, **config.sizes(model), freeze=config.freeze, pieces=used_rows)
    return encoder.prune(kept_pieces).cut(config.cut)


def rebuild_masked_lm(config: HFConfig, architecture: PlainObject) -> MaskedLanguageModel:
    """Build the model of a stored architecture, without the checkpoint and its weights.

    Args:
        config: the checkpoint's configuration.
        architecture: result of `MaskedLanguageModel.architecture`.
    """
    model = untrained_model(AUTO_CLASS, architecture["config"])
    names = ("limit", "prefix", "suffix", "pieces")
    # A model with as many pieces as rows has no entry `pieces`.
    sizes = {name: architecture[name] for name in names if name in architecture}
    encoder = MaskedLanguageModel(model, **sizes, freeze=config.freeze)
    return encoder.cut(Cut.from_plain(architecture.get("cut", {})))
