"""A Transformers encoder with the head of a masked language model: BERT, RoBERTa and what is built like them.

Shapes: B batch, P pieces, M masked pieces of a sentence, D size, V pieces of the vocabulary.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import torch

from raykd.errors import ExportError
from raykd.layers.dropout import OwnDropout
from raykd.layers.heads import full_precision
from raykd.layers.model import Model, Output, checked_layer
from raykd.layers.windows import in_windows
from raykd.structures import Chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto
    from torch import Tensor, nn

    from raykd.corpora.encoding import TokenBatch


class MaskedLanguageModel(Model):
    """Predicts the pieces at `first_BT`, independently: a chain without transitions over the vocabulary. Its head
    reads their states alone, and its last layer is the transposed embedding.

    Sentences longer than `limit` are read in overlapping windows (`layers/windows.py`).

    Args:
        model: of a class of Transformers with `ForMaskedLM` in its name.
        limit: the most pieces that it reads at once, `prefix` and `suffix` special ones around a sentence included.
    """

    def __init__(self, model: Any, *, limit: int, prefix: int, suffix: int):
        super().__init__()
        self.model = model
        self._limit, self._prefix, self._suffix = limit, prefix, suffix
        self._attention: str = model.config._attn_implementation

    def forward(self, batch: TokenBatch, *, layers: Sequence[int] = ()) -> Output:
        depth = self.model.config.num_hidden_layers
        wanted = {layer: checked_layer(layer, depth, "the encoder") for layer in layers}
        with OwnDropout() if self.training else nullcontext():
            read_BPD = in_windows(
                partial(self._read, (*wanted.values(), depth)), batch.pieces_BP, batch.piece_lengths_B,
                limit=self._limit, prefix=self._prefix, suffix=self._suffix,
            )  # fmt: skip
            states = read_BPD.take_along_dim(batch.first_BT[:, :, None], 1).chunk(len(wanted) + 1, -1)
            scores_BMV = full_precision(self.head(states[-1]))
        return Output(Chain(scores_BMV, batch.lengths_B), dict(zip(wanted, states[:-1], strict=True)))

    def train(self, mode: bool = True) -> Self:
        # The fused kernels of attention draw their dropout themselves, by the rows that one worker has.
        dropped = mode and self.model.config.attention_probs_dropout_prob > 0
        self.model.set_attn_implementation("eager" if dropped else self._attention)
        return super().train(mode)

    @property
    def head(self) -> nn.Module:
        """From states [B, M, D] to scores of all pieces [B, M, V]."""
        return self.model.cls if hasattr(self.model, "cls") else self.model.lm_head

    @property
    def piece_limit(self) -> int:
        return self._limit

    def architecture(self) -> dict[str, Any]:
        # As JSON, since a Transformers configuration holds types and numbers as keys.
        config = json.loads(self.model.config.to_json_string(use_diff=False))
        return {"config": config, "prefix": self._prefix, "suffix": self._suffix}

    def to_onnx(self) -> ModelProto:
        raise ExportError("a masked language model is a checkpoint of Transformers; raykd export writes that")

    def embedding_matrix(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    def hidden_size(self, layer: int) -> int:
        checked_layer(layer, self.model.config.num_hidden_layers, "the encoder")
        return self.model.config.hidden_size

    def layer_groups(self) -> Mapping[str, list[nn.Parameter]]:
        base = self.model.base_model
        below = {id(p): p for p in base.embeddings.parameters()}
        body = {id(p): p for p in base.parameters()}
        return {
            "head": [p for p in self.model.parameters() if id(p) not in body],
            "encoder": [p for key, p in body.items() if key not in below],
            "embeddings": list(below.values()),
        }

    def _read(self, layers: tuple[int, ...], pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        """The states of these layers [B, P, D…], side by side."""
        mask_BP = torch.arange(pieces_BP.shape[1], device=lengths_B.device) < lengths_B[:, None]
        found = self.model.base_model(
            input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=len(layers) > 1
        )
        if len(layers) == 1:
            return found.last_hidden_state
        return torch.cat([found.hidden_states[layer] for layer in layers], -1)
