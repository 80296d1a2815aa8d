"""Word vectors from a frozen Transformers encoder (Wang et al., ACL 2020, §4.1).

Shapes: B batch, P pieces (of the encoder's tokenizer), T time (words), D size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.corpora.encoded_text import TokenBatch
from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.layers.checkpoint import (
    checkpoint_folder,
    quiet_transformers,
    read_model,
    reading_limit,
    verified_weights_checksum,
)
from raykd.layers.piece_vectors import first_of_pieces, mean_of_pieces, to_float16
from raykd.layers.windows import read_in_windows
from raykd.structures.padding import length_mask

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.word_pieces import Special
    from raykd.layers.contextual import EncoderConfig


@dataclass(frozen=True, eq=False)
class LoadedEncoder:
    """A frozen encoder in memory.

    Attributes:
        model: the network.
        limit: most pieces read at once, special ones included.
        special: special pieces of the tokenizer.
    """

    model: nn.Module
    limit: int
    special: Special


class EncoderFeatures:
    """Word vectors from a frozen encoder, in float16.

    Apart from rounding, the vectors of a sentence do not depend on the other sentences of its batch.

    Args:
        outline: the encoder without weights.
        config: the encoder's configuration.
        folder: folder of the checkpoint.
    """

    def __init__(self, outline: PreTrainedModel, config: EncoderConfig, folder: str):
        self.config, self._checkpoint_folder, self._model_outline = config, folder, outline
        concatenated_layers = len(config.layers) if config.combine == "concat" else 1
        self.output_size: int = concatenated_layers * outline.config.hidden_size
        self.key = config.checksum or folder

    @cached_property
    def encoder(self) -> LoadedEncoder:
        """The encoder, read from its files on first use."""
        return _load(
            self._checkpoint_folder, verified_weights_checksum(self._checkpoint_folder, self.config.checksum)
        )

    def __deepcopy__(self, memo: object) -> EncoderFeatures:
        return self

    def parameters(self) -> Sequence[nn.Parameter]:
        """Return the encoder's parameters without values."""
        return tuple(self._model_outline.parameters())

    @torch.no_grad()
    def compute(self, batch: TokenBatch) -> Tensor:
        """Return the vectors [B, T, D] of the words; those of padding have no meaning.

        Args:
            batch: sentences in the encoder's own pieces.
        """
        special, device = self.encoder.special, batch.pieces_BP.device
        # One encoder serves all models of a process, so it moves to the device of each caller.
        self.encoder.model.to(device)
        with torch.autocast(device.type, enabled=False):
            states_BPD = read_in_windows(
                self._read, batch.pieces_BP, batch.piece_lengths_B,
                limit=self.encoder.limit, prefix=len(special.prefix), suffix=len(special.suffix),
            )  # fmt: skip
        if self.config.pooling == "first":
            return to_float16(first_of_pieces(states_BPD, batch))
        return to_float16(mean_of_pieces(states_BPD, batch, suffix=len(special.suffix)))

    def _read(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = length_mask(lengths_B, pieces_BP.shape[1])
        model, config = self.encoder.model, self.config
        output = model(input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=True)
        states = [output.hidden_states[layer].float() for layer in config.layers]
        return torch.cat(states, -1) if config.combine == "concat" else torch.stack(states).mean(0)


def encoder_features(config: EncoderConfig) -> EncoderFeatures:
    """Return the frozen encoder of a configuration; its weights are read when it first computes.

    Args:
        config: the encoder's configuration.

    Raises:
        StoreError: there is no such checkpoint, it changed, or it has no such layers.
    """
    folder = str(checkpoint_folder(config.path))
    outline = _model_outline(folder, verified_weights_checksum(config.path, config.checksum))
    states = outline.config.num_hidden_layers + 1
    if missing := [layer for layer in config.layers if not -states <= layer < states]:
        hint = f"choose from -{states} to {states - 1}"
        raise StoreError(config.path, f"has no layer {missing[0]}", hint)
    return EncoderFeatures(outline, config, folder)


@lru_cache(maxsize=16)
def _model_outline(folder: str, checksum: str) -> PreTrainedModel:
    """Return the encoder without weights: its configuration and the shapes of its parameters."""
    # Transformers takes seconds to import.
    from transformers import AutoConfig, AutoModel

    try:
        with torch.device("meta"), quiet_transformers():
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
            # In float32 as in `_load`, whatever the checkpoint is stored in.
            return _without_pooler(AutoModel.from_config(config, dtype=torch.float32))
    except (OSError, ValueError) as error:
        hint = "give a checkpoint that AutoModel reads"
        raise StoreError(folder, f"cannot be loaded ({error})", hint) from error


# Models of one process share their encoder: several teachers may be in memory at once.
@lru_cache(maxsize=2)
def _load(folder: str, checksum: str) -> LoadedEncoder:
    # Parameters that the checkpoint does not hold (for example a pooler's) are drawn at random.
    with torch.random.fork_rng(devices=[]):
        model = _without_pooler(read_model(folder, "AutoModel")[0])
    model.requires_grad_(False).eval()
    return LoadedEncoder(model, reading_limit(model, folder), HFVocabulary.load(folder).special)


def _without_pooler(model: PreTrainedModel) -> PreTrainedModel:
    # A pooler computes a vector of the whole sentence, which is never read.
    if getattr(model, "pooler", None) is not None:
        model.register_module("pooler", None)
    return model
