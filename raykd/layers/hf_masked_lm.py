"""Masked language models that start as a Transformers checkpoint: teachers, and students that are pretrained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raykd.errors import StoreError
from raykd.identity import PlainObject
from raykd.layers.checkpoint import untrained
from raykd.layers.encoder import MaskedLanguageModel

if TYPE_CHECKING:
    from raykd.layers.hf_config import HFConfig
    from raykd.layers.model_config import BuildInputs

AUTO_CLASS = "AutoModelForMaskedLM"


def masked_language_model(config: HFConfig, inputs: BuildInputs, *, trained: bool) -> MaskedLanguageModel:
    """The checkpoint of `config` with its own head; what that lacks is drawn from torch's generator, its last layer is
    the transposed embedding.

    Args:
        inputs: its embedding may have rows behind those of the vocabulary.
        trained: it is trained on; one that is not must have a trained head.

    Raises:
        StoreError: there is no such checkpoint, it changed, it has no trained head and is not to be trained, or it has
            no layer that `freeze` names.
    """
    model, missing = config.loaded(AUTO_CLASS)
    if missing and not trained:
        problem = f"has no trained head of a masked language model ({missing[0]})"
        raise StoreError(config.path, problem, "set fine_tune: true")
    pieces, kept = inputs.vocabulary_size, inputs.kept
    more = pieces if len(model.get_input_embeddings().get_parameter("weight")) > pieces else None
    encoder = MaskedLanguageModel(model, **config.sizes(model), freeze=config.freeze, pieces=more)
    return encoder.pruned(kept)


def rebuilt_masked_lm(config: HFConfig, architecture: PlainObject) -> MaskedLanguageModel:
    """The model of an `architecture` that `MaskedLanguageModel.architecture` gave, without the checkpoint and its
    weights.
    """
    model = untrained(AUTO_CLASS, architecture["config"])
    names = ("limit", "prefix", "suffix", "pieces")
    # One of as many pieces as rows does not say it.
    sizes = {name: architecture[name] for name in names if name in architecture}
    return MaskedLanguageModel(model, **sizes, freeze=config.freeze)
