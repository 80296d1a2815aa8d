"""A Transformers encoder with the head of a masked language model: BERT, RoBERTa and what is built like them.

Shapes: B batch, P pieces, M masked pieces of a sentence, N of a chunk, D size, V pieces of the vocabulary.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch
from torch import nn

from raykd.errors import ExportError, StoreError
from raykd.identity import PlainObject
from raykd.layers.heads import full_precision
from raykd.layers.hf_model import Frozen, HFModel
from raykd.layers.model import Output
from raykd.layers.piece_vectors import first_of_pieces
from raykd.structures import UnscoredChain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto
    from torch import Tensor
    from transformers import PreTrainedModel

    from raykd.corpora.encoded_text import TokenBatch

HEADS = (
    ("cls",),
    ("lm_head",),
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ("head", "decoder"),
)
"""The modules that make scores of states, one after the other: of BERT, RoBERTa, DistilBERT and ModernBERT."""


class MaskedLanguageModel(HFModel):
    """Predicts the pieces at `first_BT`, independently: a chain without transitions over the vocabulary, which is not
    scored until it is read. Its head reads their states alone, and its last layer is the transposed embedding.

    Args:
        pieces: how many the vocabulary has, where the embedding has rows behind them; None: as many as it has rows.

    Raises StoreError where the head of `model` is none of `HEADS`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        limit: int,
        prefix: int,
        suffix: int,
        freeze: Sequence[Frozen] = (),
        pieces: int | None = None,
    ):
        super().__init__(model, limit=limit, prefix=prefix, suffix=suffix, freeze=freeze)
        self._pieces = pieces
        head = next((names for names in HEADS if all(hasattr(model, name) for name in names)), None)
        if head is None:
            problem = f"has a head that is not known ({type(model).__name__})"
            raise StoreError(str(model.config.name_or_path), problem, "use BERT, RoBERTa or DistilBERT")
        self._head = head

    def forward(
        self,
        batch: TokenBatch,
        *,
        layers: Sequence[int] = (),
        pieces: Sequence[int] = (),
        attention: Sequence[int] = (),
    ) -> Output:
        _, states, scores = self.states_of(batch, (*layers, *pieces, self.depth), attention)
        chain = self._chain(first_of_pieces(states[self.depth], batch), batch.lengths_B)
        hidden = {layer: first_of_pieces(states[layer], batch) for layer in layers}
        inside = {layer: states[layer] for layer in pieces}
        return Output(chain, hidden, inside, scores, batch.piece_lengths_B)

    def keep_rows(self, kept: Sequence[int]) -> None:
        before = self.model.get_output_embeddings()
        if before.weight is not self.model.get_input_embeddings().weight:
            problem = "has a last layer that is not its transposed embedding, and cannot be pruned"
            raise StoreError(str(self.model.config.name_or_path), problem, "set vocabulary: whole")
        super().keep_rows(kept)
        rows = torch.tensor(kept, dtype=torch.long)
        own = nn.Linear(before.in_features, len(rows))
        own.weight, self._pieces = self.embedding_matrix(), None
        own.bias = nn.Parameter(before.bias.detach()[rows].clone())
        for part in self.model.modules():
            # BERT and RoBERTa hold the bias of their last layer a second time.
            if getattr(part, "bias", None) is before.bias:
                part.bias = own.bias
        self.model.set_output_embeddings(own)

    def scores(self, states_XD: Tensor) -> Tensor:
        """Of all pieces [..., V], by its head, in float32 at least."""
        for name in self._head:
            states_XD = getattr(self.model, name)(states_XD)
        return full_precision(states_XD[..., : self._pieces])

    def _chain(self, states_BMD: Tensor, lengths_B: Tensor) -> UnscoredChain:
        # Scores are computed later, in the modes in which the states are computed now.
        kind, mode = states_BMD.device.type, nullcontext if torch.is_grad_enabled() else torch.no_grad
        mode = torch.inference_mode if torch.is_inference_mode_enabled() else mode
        precision = {"dtype": torch.get_autocast_dtype(kind), "enabled": torch.is_autocast_enabled(kind)}

        def score(states_ND: Tensor) -> Tensor:
            with mode(), torch.autocast(kind, **precision):
                return self.scores(states_ND)

        rows = len(self.model.get_output_embeddings().weight)
        head = nn.ModuleList([getattr(self.model, name) for name in self._head])
        return UnscoredChain(
            states_BMD, lengths_B, score, tags=self._pieces or rows, parameters=[*head.parameters()]
        )

    def architecture(self) -> PlainObject:
        pieces = {} if self._pieces is None else {"pieces": self._pieces}
        return {**super().architecture(), **pieces}

    def to_onnx(self) -> ModelProto:
        raise ExportError("a masked language model is a checkpoint of Transformers; raykd export writes that")
